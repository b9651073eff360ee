"""Where each kernel of a profile was put, and what is written down about it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from opscope.ir import Capture, Graph, Groups, Table, column
from opscope.ir.columns import frozen
from opscope.ir.facts import SPLIT, TIMES
from opscope.ir.measurements import coverage_table

from .measured import Measured

Kind = TypeVar("Kind", bound=Capture)


class Put(NamedTuple):
    """A kernel belongs to an operator, or to a launch (a group `kernel`) of a stage; how we know."""

    stage: int
    node: int  # or -1
    launch: int  # or -1
    evidence: str


@dataclass(eq=False)
class Placing:
    """Collects where kernels and calls of a profile belong; `capture` is then the joined one."""

    base: Capture
    measured: Measured
    put: dict[int, Put] = field(default_factory=dict[int, Put])  # by kernel
    # By operator its runs, each the calls of the profile that it made.
    runs: dict[tuple[int, int], list[list[int]]] = field(default_factory=dict[tuple[int, int], list[list[int]]])
    launched: dict[tuple[int, int], list[list[int]]] = field(default_factory=dict[tuple[int, int], list[list[int]]])
    reasons: dict[int, str] = field(default_factory=dict[int, str])  # of kernels that are not placed
    same: dict[int, list[int]] = field(default_factory=dict[int, list[int]])  # stages with the same launches
    number: dict[int, int] = field(default_factory=dict[int, int])  # by kernel of an operator: its group in the graph
    # Operators of the profile that ran outside of compiled graphs: the stage of these, and their number there.
    outside: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])

    def operator(self, stage: int, node: int, call: int, evidence: str) -> None:
        """A call of the profile is this operator."""
        self.run(stage, node, [call], evidence)

    def run(self, stage: int, node: int, calls: list[int], evidence: str) -> None:
        """These calls of the profile are one run of this operator."""
        self.runs.setdefault((stage, node), []).append(calls)
        for call in calls:
            for kernel in self.measured.kernels_of[call]:
                self.put[kernel] = Put(stage, node, -1, evidence)

    def launch(self, stage: int, launch: int, kernels: list[int], evidence: str) -> None:
        """These kernels are one run of a launch."""
        self.launched.setdefault((stage, launch), []).append(kernels)
        for kernel in kernels:
            self.put[kernel] = Put(stage, -1, launch, evidence)

    def joined(self, capture: Kind) -> Kind:
        """The capture with the times, and with how much of the profile they are."""
        stages = list(capture.stages)
        joined = replace(capture, stages=stages, tables=dict(capture.tables), warnings=list(capture.warnings))
        for stage in sorted({stage for stage, _ in self.runs}):
            self._operators(joined, stage)
        for stage in sorted({stage for stage, _ in self.launched}):
            for other in self.same.get(stage, [stage]):
                joined.add(self._launches(stage, other))
        joined.add(self._coverage(joined))
        for table in self.measured.capture.tables.values():
            if table.fact == SPLIT.name:
                joined.add(table)
        return joined

    def _operators(self, joined: Capture, stage: int) -> None:
        """Every kernel that an operator started is a group of its own, and the operator has what they took together."""
        measured, old = self.measured, joined.stages[stage].graph
        seconds = measured.kernel_seconds
        found: dict[tuple[int, int, str], list[int]] = defaultdict(list)
        nodes = sorted(node for at, node in self.runs if at == stage)
        for node in nodes:
            for run in self.runs[stage, node]:
                for place, kernel in enumerate(k for call in run for k in measured.kernels_of[call]):
                    found[node, place, measured.kernel_names[kernel]].append(kernel)
        if found:
            self.number.update({kernel: group for group, rows in enumerate(found.values()) for kernel in rows})
            graph = _with_kernels(old, measured, found)
            for number, other in enumerate(joined.stages):
                if other.graph is old:
                    joined.stages[number] = replace(other, graph=graph)
            joined.add(_times(stage, "group:kernel", range(len(found)), [seconds[rows] for rows in found.values()]))
        runs = [self.runs[stage, node] for node in nodes]
        device = [[float(sum(seconds[measured.kernels_of[c]].sum() for c in run)) for run in own] for own in runs]
        cpu = [[float(sum(measured.cpu_seconds[c] for c in run)) for run in own] for own in runs]
        is_known = [all(np.isfinite(row)) for row in cpu]
        table = _times(stage, "node", nodes, device if measured.has_kernels else cpu)
        means = [float(np.mean(row)) if known else 0.0 for row, known in zip(cpu, is_known, strict=True)]
        table.columns["cpu"] = column(np.array(means), "s", is_known)
        joined.add(table)

    def _launches(self, stage: int, other: int) -> Table:
        seconds = self.measured.kernel_seconds
        launches = sorted(launch for at, launch in self.launched if at == stage)
        runs = [[float(seconds[kernels].sum()) for kernels in self.launched[stage, launch]] for launch in launches]
        return _times(other, "group:kernel", launches, runs)

    def _coverage(self, joined: Capture) -> Table:
        """How many kernels were placed by what evidence; and which were not, by name."""
        measured = self.measured
        rows: dict[tuple[str, str, str], list[float]] = {}
        for kernel, seconds in enumerate(measured.kernel_seconds.tolist()):
            put = self.put.get(kernel)
            if put is None:
                key = ("", measured.kernel_names[kernel], self.reasons.get(kernel, "nothing in the graph matches it"))
                figures = rows.setdefault(key, [0, 0.0, 0, 0])
            else:
                figures = rows.setdefault((put.evidence, "", ""), [0, 0.0, 0, 0])
                in_module, on_line = _reached(joined.stages[put.stage].graph, put)
                figures[2] += in_module
                figures[3] += on_line
            figures[0] += 1
            figures[1] += seconds
        return coverage_table(rows)


def _reached(graph: Graph, put: Put) -> tuple[bool, bool]:
    nodes = graph.groups["kernel"].members(put.launch) if put.launch >= 0 else np.array([put.node])
    return bool((graph.node_scope[nodes] > 0).any()), bool((graph.node_stack[nodes] > 0).any())


def _with_kernels(graph: Graph, measured: Measured, found: dict[tuple[int, int, str], list[int]]) -> Graph:
    pools, theirs = graph.pools, measured.graph
    groups = theirs.groups["kernel"]
    attrs = [pools.attr_texts.add(theirs.pools.attr_texts[int(groups.attrs[rows[0]])]) for rows in found.values()]
    kernels = Groups(
        "kernel",
        name=frozen([pools.string(name) for _, _, name in found]),
        code=frozen([0] * len(found)),
        attrs=frozen(attrs),
        start=frozen(range(len(found) + 1)),
        member=frozen([node for node, _, _ in found]),
    )
    return replace(graph, groups=MappingProxyType({**graph.groups, "kernel": kernels}))


def _times(stage: int, by: str, index: object, runs: list[list[float]] | list[object]) -> Table:
    """Times in seconds: of several runs their mean, the fastest and the slowest."""
    rows = [np.asarray(row, dtype=np.float64) for row in runs]
    columns = {"time": column(np.array([row.mean() for row in rows]), "s")}
    if any(len(row) > 1 for row in rows):
        columns["least"] = column(np.array([row.min() for row in rows]), "s")
        columns["most"] = column(np.array([row.max() for row in rows]), "s")
        columns["runs"] = column(np.array([len(row) for row in rows], dtype=np.int64))
    return Table(stage, by, frozen(list(index)), columns, TIMES.name)  # type: ignore[call-overload]
