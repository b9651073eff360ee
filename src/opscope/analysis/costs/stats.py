"""Everything that is known about the cost of one graph, computed when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opscope.analysis.times import Clocks, GroupTimes, InAll, Times
from opscope.analysis.values import Figure, OwnFigures
from opscope.ir import Gap, Graph, Value
from opscope.ir.attributes import WITHOUT_RECORDER
from opscope.ir.enumerations import ESTIMATED, HOW, ROLE_ID
from opscope.ops import Kinds, kinds_of

from .achieved import Work, shares_of, sums_by, work_of
from .communication import wire_by_dimension
from .devices import Device
from .gaps import touched
from .memory import Memory, memory
from .operators import CostTable, node_costs
from .parameters import Parameter, Parameters, parameters
from .rollup import ByScope, by_phase, by_scope


@dataclass(frozen=True)
class Total:
    """The whole graph. `at_least`: some operator's cost is not known, or operators are missing from the graph, so it
    is more than this; likewise `bytes_at_least` for the traffic, `activations_at_least` for activations and what is
    saved, `params_at_least` for parameters. `causal_at_most`: some attention has a mask that is not known, so
    `causal_macs` may be less than this. `wire` are the bytes that this rank sends to others; `wire_at_least`: of some
    operators that communicate it is not known."""

    macs: int
    other_flops: int
    at_least: bool
    read: int
    written: int
    bytes_at_least: bool
    params: int
    param_bytes: int
    activations: int
    activation_bytes: int
    saved_bytes: int | None
    peak_bytes: int
    samples: int | None
    tokens: int | None
    estimated: int  # operators whose cost is an estimate
    causal_macs: int  # if attention computes only what causal masks show
    causal_at_most: bool
    params_at_least: bool
    activations_at_least: bool
    wire: int
    wire_at_least: bool

    @property
    def flops(self) -> int:
        """Of matrix products, convolutions, attention and RNNs: two for each multiply-accumulate."""
        return 2 * self.macs

    @property
    def bytes(self) -> int:
        return self.read + self.written

    @property
    def intensity(self) -> float | None:
        """FLOPs of every kind for each byte of memory traffic."""
        return (self.flops + self.other_flops) / self.bytes if self.bytes else None


class GraphStats:
    """The cost of a graph, and what was measured of it. `held` are the parameters of a live model, if there is one;
    `guesses` the branches that were guessed because there were no numbers to decide them; `gaps` what ran and is not in
    the graph."""

    def __init__(
        self,
        graph: Graph,
        framework: str = "",
        *,
        held: Sequence[Parameter] = (),
        guesses: Sequence[str] = (),
        times: Times | None = None,
        kernel_times: GroupTimes | None = None,
        clocks: Clocks | None = None,
        in_all: InAll | None = None,
        gaps: Sequence[Gap] = (),
        figures: Mapping[str, Figure] | None = None,
        own: Mapping[str, OwnFigures] | None = None,
        device: Device | None = None,
    ) -> None:
        self.graph = graph
        self.framework = framework
        self.guesses = tuple(guesses)
        self.times = times  # measured by operator, where the capture has that
        self.kernel_times = kernel_times
        self.in_all = in_all  # of a profile that is on several stages
        self.clocks = clocks  # measured by a profile, on devices and on the CPU
        self.gaps = tuple(gaps)
        self.figures = figures or {}  # measured of values
        self.own = own or {}  # the user's own
        self.device = device  # that was measured, where its peaks are known
        self._held = held

    @cached_property
    def costs(self) -> CostTable:
        """By node."""
        return node_costs(self.graph, self.framework)

    def work(self, device: Device | None = None) -> Work | None:
        """What was measured on a device, piece by piece; None: nothing was, or nobody knows its peaks."""
        device = device or self.device
        found = work_of(self.graph, self.costs, self.clocks, None, device) if device is not None else None
        return found if found is not None and found.kernels.any() else None

    @cached_property
    def kinds(self) -> Kinds:
        return kinds_of(self.framework, self.graph)

    @cached_property
    def scopes(self) -> ByScope:
        return by_scope(self.graph, self.costs, [gap.scope for gap in self.gaps])

    @cached_property
    def memory(self) -> Memory:
        return memory(self.graph, self.costs)

    @cached_property
    def parameters(self) -> Parameters:
        return parameters(self.graph, self.costs, self._held, has_gaps=touched(self.gaps, "parameters"))

    @property
    def unknown_ops(self) -> dict[str, int]:
        """Operators whose cost is not known, and how many of each."""
        return dict(self.costs.unknown_ops.most_common())

    @cached_property
    def otherwise(self) -> dict[str, int]:
        """What runs without a recorder, and how many operators run instead because of it."""
        texts = self.graph.pools.attr_texts
        marked = [i for i in range(len(texts)) if f'"{WITHOUT_RECORDER}"' in texts[i]]
        if not marked:
            return {}
        counts = np.bincount(self.graph.node_attrs, minlength=len(texts))
        found: Counter[str] = Counter()
        for number in marked:
            found[str(self.graph.pools.attrs_of(number).get(WITHOUT_RECORDER, ""))] += int(counts[number])
        return {text: count for text, count in found.most_common() if count}

    @cached_property
    def phases(self) -> dict[str, dict[str, int]]:
        return by_phase(self.graph, self.costs)

    @cached_property
    def total(self) -> Total:
        costs, found = self.costs, self.costs.total
        samples, tokens = per_what(self.graph)
        return Total(
            macs=found.macs,
            other_flops=found.other,
            at_least=bool(costs.lower.any()) or touched(self.gaps, "compute"),
            read=found.read or 0,
            written=found.written or 0,
            bytes_at_least=not bool(costs.bytes_known.all()) or touched(self.gaps, "traffic"),
            params=self.parameters.count,
            param_bytes=self.parameters.bytes,
            activations=self.memory.activations,
            activation_bytes=self.memory.activation_bytes,
            saved_bytes=self.memory.saved_bytes,
            peak_bytes=self.memory.peak_bytes,
            samples=samples,
            tokens=tokens,
            estimated=int(np.count_nonzero(costs.how == HOW.index(ESTIMATED))),
            causal_macs=int(costs.causal.sum()),
            causal_at_most=not bool(costs.causal_known.all()),
            params_at_least=self.parameters.at_least,
            wire=int(costs.wire.sum()),
            wire_at_least=not bool(costs.wire_known.all()),
            activations_at_least=bool(len(self.memory.unknown_activations)) or touched(self.gaps, "memory"),
        )

    def _reached(self) -> dict[str, float | None]:
        """While kernels ran; `utilization` of `opscope info --json` has it of the whole step."""
        work = self.work()
        if work is None or not work.known.any():
            return {}
        shares = shares_of(sums_by(work, np.zeros(len(self.graph.node_op), dtype=np.int64), 1))
        return {name: float(share[0]) if np.isfinite(share[0]) else None for name, share in shares.items()}

    def _clocked(self) -> dict[str, float | None]:
        if self.clocks is None:
            return {}
        cpu = self.clocks.cpu[np.isfinite(self.clocks.cpu)]
        own = {
            "gpu_seconds": float(self.clocks.gpu.sum()),
            "cpu_seconds": float(cpu.sum()) if len(cpu) else None,
            **self._reached(),
        }
        if self.in_all is None:
            return own
        # The total is that of the profile; the rows are those of one stage.
        return {
            "gpu_seconds": self.in_all.gpu,
            "cpu_seconds": self.in_all.cpu,
            "stage_gpu_seconds": own["gpu_seconds"],
            "stage_cpu_seconds": own["cpu_seconds"],
        }

    @cached_property
    def wire_by_dimension(self) -> dict[str, int]:
        """Bytes sent to other ranks, by what the program calls their groups."""
        return wire_by_dimension(self.graph, self.costs)

    def totals(self) -> dict[str, Any]:
        """`total` of `opscope stats --json`; docs/stats.md lists the fields."""
        total, parameters = self.total, self.parameters
        return {
            "macs": total.macs,
            "flops": total.flops,
            "other_flops": total.other_flops,
            "at_least": total.at_least,
            "causal_macs": total.causal_macs,
            "causal_at_most": total.causal_at_most,
            "params": total.params,
            "param_bytes": total.param_bytes,
            "params_at_least": total.params_at_least,
            "params_trainable": parameters.trainable,
            "params_frozen": parameters.frozen,
            "params_unused": parameters.unused,
            "params_may_be_used": parameters.perhaps_unused,
            "params_tied": [list(names) for names in parameters.tied],
            "param_bytes_by_dtype": parameters.bytes_by_dtype,
            "activations": total.activations,
            "activation_bytes": total.activation_bytes,
            "activations_at_least": total.activations_at_least,
            "saved_bytes": total.saved_bytes,
            "peak_bytes": total.peak_bytes,
            "peak_at": self.memory.peak_at,
            "peak_by_class": self.memory.at_peak(),
            "read": total.read,
            "written": total.written,
            "wire_bytes": total.wire,
            "wire_at_least": total.wire_at_least,
            "wire_by_dimension": self.wire_by_dimension,
            "bytes_at_least": total.bytes_at_least,
            "samples": total.samples,
            "tokens": total.tokens,
            "estimated_ops": total.estimated,
            "unknown_ops": self.unknown_ops,
            "guesses": list(self.guesses),
            "otherwise": self.otherwise,
            **self._clocked(),
            "gaps": [
                {
                    "reason": gap.reason,
                    "count": gap.count,
                    "module": self.graph.pools.scope_path(gap.scope),
                    "phase": gap.phase or None,
                    "op": gap.op or None,
                    "touches": list(gap.touches),
                }
                for gap in self.gaps
            ],
        }


def per_what(graph: Graph) -> tuple[int | None, int | None]:
    """How many samples and tokens the first input holds: its leading dimension, and the first two of one that is made
    of whole numbers."""
    first = _first_input(graph)
    if first is None or first.type.shape is None or not first.type.shape:
        return None, None
    shape = first.type.shape
    samples = shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None
    is_text = first.type.dtype.startswith(("int", "uint")) and len(shape) == 2
    tokens = samples * shape[1] if samples and is_text and isinstance(shape[1], int) and shape[1] > 0 else None
    return samples, tokens


def _first_input(graph: Graph) -> Value | None:
    values = [int(value) for value in graph.inputs if graph.value_role[value] == ROLE_ID["input"]]
    values = values or np.flatnonzero(graph.value_role == ROLE_ID["input"]).tolist()
    return next((graph.value(value) for value in values), None)
