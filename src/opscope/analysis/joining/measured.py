"""A measured run, as a profile's own capture has it, in the order in which it ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from opscope.analysis.times import in_seconds
from opscope.ir import Capture, Graph
from opscope.ir.facts import IDS, TIMES

Floats = npt.NDArray[np.float64]

# A compiled region as PyTorch's profiler names it: what is inside belongs to one compiled graph.
_REGION = re.compile(r"## Call CompiledFxGraph|CompiledFunction(?:Backward)?\d*$|Torch-Compiled Region")
# The replay of a whole compiled graph is one call: all of its kernels are started by that.
_REPLAY = re.compile(r"CompiledFunction|## Call CompiledFxGraph|Torch-Compiled Region|cu(?:da)?GraphLaunch")
_OVERLOAD = re.compile(r"^(?:torch\.ops\.)?(\w+\.\w+)\..+$")


@dataclass(frozen=True, eq=False)
class Measured:
    """A profile's capture. What it calls a kernel ran once; kernels are in the order of their beginning."""

    capture: Capture

    @property
    def graph(self) -> Graph:
        return self.capture.graph

    @cached_property
    def ops(self) -> list[str]:
        strings = self.graph.pools.strings
        return [operator_name(strings[op]) for op in self.graph.node_op.tolist()]

    @cached_property
    def kernel_names(self) -> list[str]:
        strings = self.graph.pools.strings
        return [strings[name] for name in self.graph.groups["kernel"].name.tolist()] if self.has_kernels else []

    @property
    def has_kernels(self) -> bool:
        return "kernel" in self.graph.groups

    @cached_property
    def kernel_node(self) -> list[int]:
        """The operator that started each kernel."""
        return self.graph.groups["kernel"].member.tolist() if self.has_kernels else []

    @cached_property
    def kernel_seconds(self) -> Floats:
        for table in self.capture.facts(TIMES.name, 0):
            if table.by == "group:kernel":
                return in_seconds(table.columns["time"])
        return np.zeros(0)

    @cached_property
    def cpu_seconds(self) -> Floats:
        """By operator; NaN where it is not known."""
        for table in self.capture.facts(TIMES.name, 0):
            if table.by == "node" and "cpu" in table.columns:
                cpu = table.columns["cpu"]
                return np.where(cpu.known, in_seconds(cpu), np.nan)
        return np.full(self.graph.n_nodes, np.nan)

    @cached_property
    def kernels_of(self) -> list[list[int]]:
        """The kernels that each operator started."""
        found: list[list[int]] = [[] for _ in range(self.graph.n_nodes)]
        for kernel, node in enumerate(self.kernel_node):
            found[node].append(kernel)
        return found

    @cached_property
    def records(self) -> dict[int, int]:
        """The number of a call in an execution trace of the same run -> the operator."""
        return numbered(self.capture)

    @cached_property
    def regions(self) -> list[list[int]]:
        """The operators of each compiled region that ran, in order."""
        pools, graph = self.graph.pools, self.graph
        region_of: dict[int, int] = {0: -1}

        def region(scope: int) -> int:
            if scope not in region_of:
                outer = region(pools.scopes[scope].parent)
                here = _REGION.match(pools.scopes[scope].name)
                region_of[scope] = scope if here else outer
            return region_of[scope]

        found: dict[int, list[int]] = {}
        alone: list[list[int]] = []
        for node, scope in enumerate(graph.node_scope.tolist()):
            if _REPLAY.match(self.ops[node]):
                alone.append([node])
            elif (inside := region(scope)) >= 0:
                found.setdefault(inside, []).append(node)
        return sorted([*found.values(), *alone])

    def is_replay(self, node: int) -> bool:
        return _REPLAY.match(self.ops[node]) is not None


def numbered(capture: Capture) -> dict[int, int]:
    """The framework's own number of an operator -> the operator."""
    for table in capture.facts(IDS.name, 0):
        if table.by == "node":
            ids = table.columns["id"]
            numbers = np.asarray(ids.values)[ids.known]
            return dict(zip(numbers.tolist(), table.index[ids.known].tolist(), strict=True))
    return {}


def operator_name(op: str) -> str:
    """`torch.ops.aten.add.Tensor` and `aten.add` are one: profiles do not say the overload."""
    short = _OVERLOAD.match(op)
    name = short[1] if short else op.removeprefix("torch.ops.")
    return f"aten.{name.removeprefix('extern_kernels.')}" if name.startswith("extern_kernels.") else name


def operator_names(graph: Graph) -> Sequence[str]:
    strings = graph.pools.strings
    by_op = {op: operator_name(strings[op]) for op in np.unique(graph.node_op).tolist()}
    return [by_op[op] for op in graph.node_op.tolist()]
