"""Two measured runs compared: by module and by operator, never by the names of kernels.

A kernel belongs to the innermost module around all that it computes, so that an eager step and a compiled one have the
same rows. Times are those of one step: of a recording of several, the mean.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.analysis.search import find
from opscope.analysis.times import clocks, measured_stages, node_times
from opscope.errors import OpscopeError
from opscope.ir import PHASES, Capture, Graph

from .compiled_limits import modules_like
from .limits import Limit, exceeded_by

_STEP = re.compile(r"step \d+")
_OVERLOAD = re.compile(r"^(?:torch\.ops\.)?(\w+)[.:]+(\w+?)_?(?:\.\w+)?$")
GPU, CPU = "gpu", "cpu"
MOST = 20  # rows that are printed
_LEAST = 1e-3  # of all of the time: a difference that is printed


class Piece(NamedTuple):
    """Something that was measured, and the operators that it computed."""

    stage: int
    seconds: float
    nodes: npt.NDArray[Any]


@dataclass(frozen=True)
class Change:
    """One row: a module, or an operator in a module. None: it is not there."""

    module: str
    before: float | None
    after: float | None
    op: str = ""

    @property
    def grown(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)

    def to_dict(self) -> dict[str, Any]:
        op = {"op": self.op} if self.op else {}
        return {"module": self.module, **op, "before": self.before, "after": self.after}


@dataclass(frozen=True)
class TimeDiff:
    """The seconds of a step before and after, and where they changed; the largest change first."""

    clock: str  # "gpu" or "cpu"
    before: float
    after: float
    modules: list[Change]
    operators: list[Change]

    def to_dict(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "before": self.before,
            "after": self.after,
            "modules": [change.to_dict() for change in self.modules],
            "operators": [change.to_dict() for change in self.operators],
        }

    def lines(self) -> list[str]:
        what = "GPU" if self.clock == GPU else "CPU"
        found = [f"{what} time of a step: {_change(self.before, self.after)}"]
        least = _LEAST * max(self.before, self.after)
        rows = [change for change in self.operators if abs(change.grown) >= least]
        for change in rows[:MOST]:
            where = f"{change.op} in {change.module}" if change.module else change.op
            found.append(f"  {_change(change.before, change.after):34} {where}")
        if len(rows) > MOST:
            found.append(f"  … and {len(rows) - MOST} more (--json has all)")
        return found


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return f"only {'before' if after is None else 'after'}: {_ms(before if after is None else after)}"
    share = f" ({100 * (after - before) / before:+.1f} %)" if before else ""
    return f"{_ms(before)} → {_ms(after)}{share}"


def _ms(seconds: float | None) -> str:
    return f"{1e3 * (seconds or 0.0):.3f} ms"


def compare_times(before: Capture, after: Capture) -> TimeDiff | None:
    """None where one of the two was not measured, or not by a clock that measured the other as well."""
    clock = _clock(before, after)
    if clock is None:
        return None
    sides = [_Side(capture, clock) for capture in (before, after)]
    modules = [side.by_module() for side in sides]
    operators = [side.by_operator() for side in sides]
    changes = [Change(m, modules[0].get(m), modules[1].get(m)) for m in {**modules[0], **modules[1]}]
    ops = [
        Change(key[0], operators[0].get(key), operators[1].get(key), key[1]) for key in {**operators[0], **operators[1]}
    ]
    for rows in (changes, ops):
        rows.sort(key=lambda change: -abs(change.grown))
    return TimeDiff(clock, sides[0].total, sides[1].total, changes, ops)


def exceeded_time(limit: Limit, before: Capture, after: Capture | None) -> str | None:
    """Why a condition on time holds: `time>+5%`, `time(scope:layers.*)>+5%`, in microseconds without a percentage."""
    if after is None:
        raise OpscopeError(f"--fail-on {limit.text!r} is about a difference, which takes two captures")
    clock = _clock(before, after)
    if clock is None:
        raise OpscopeError(f"--fail-on {limit.text!r}: both must have measured times (--profile for each)")
    old, new = (_Side(capture, clock).seconds(limit.query) for capture in (before, after))
    if old is None or new is None:
        side = "first" if old is None else "second"
        raise OpscopeError(f"--fail-on {limit.text!r}: nothing that fits was measured in the {side} capture")
    return exceeded_by(limit, round(old * 1e6, 3), round(new * 1e6, 3), " µs")


def _clock(before: Capture, after: Capture) -> str | None:
    for clock in (GPU, CPU):
        if all(any(True for _ in _pieces(capture, clock)) for capture in (before, after)):
            return clock
    return None


def _pieces(capture: Capture, clock: str) -> Iterator[Piece]:
    for stage in measured_stages(capture):
        found = clocks(capture, stage)
        if found is None:  # recorded without a profiler: a clock of its own, by operator
            times = node_times(capture, stage)
            if times is not None and clock == CPU:
                for node in np.flatnonzero(times.known).tolist():
                    yield Piece(stage, float(times.seconds[node]), np.array([node]))
        elif clock == GPU:
            for kernel in np.flatnonzero(found.gpu_known).tolist():
                yield Piece(stage, float(found.gpu[kernel]), found.kernels.members(kernel))
        else:
            for node in np.flatnonzero(np.isfinite(found.cpu)).tolist():
                yield Piece(stage, float(found.cpu[node]), np.array([node]))


class _Side:
    """The measured pieces of one capture."""

    def __init__(self, capture: Capture, clock: str) -> None:
        self._capture = capture
        self._pieces = list(_pieces(capture, clock))
        scopes = capture.pools.scopes.rows()
        self._chains: list[tuple[int, ...]] = [()]  # a scope and those around it, outermost first
        for number in range(1, len(scopes)):
            self._chains.append((*self._chains[scopes[number].parent], number))
        names = [scope.name for scope in scopes]
        self._is_step = [_STEP.fullmatch(name) is not None for name in names]
        used = {s for piece in self._pieces for s in self._chains[self._scope(piece)] if self._is_step[s]}
        self._steps = max(1, len(used))

    @property
    def total(self) -> float:
        return sum(piece.seconds for piece in self._pieces) / self._steps

    def _graph(self, piece: Piece) -> Graph:
        return self._capture.stages[piece.stage].graph

    def _scope(self, piece: Piece) -> int:
        """The innermost scope around all that a piece computed."""
        scopes: list[int] = np.unique(self._graph(piece).node_scope[piece.nodes]).tolist()
        chain = self._chains[scopes[0]] if scopes else ()
        for scope in scopes[1:]:
            other = self._chains[scope]
            same = 0
            while same < min(len(chain), len(other)) and chain[same] == other[same]:
                same += 1
            chain = chain[:same]
        return chain[-1] if chain else 0

    def _path(self, scope: int) -> str:
        pools = self._capture.pools
        return ".".join(pools.scopes[s].name for s in self._chains[scope] if not self._is_step[s])

    def by_module(self) -> dict[str, float]:
        """By path, with all that is inside."""
        found: dict[str, float] = defaultdict(float)
        for piece in self._pieces:
            paths = {self._path(scope) for scope in self._chains[self._scope(piece)]} - {""}
            for path in paths:
                found[path] += piece.seconds / self._steps
        return dict(found)

    def by_operator(self) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = defaultdict(float)
        for piece in self._pieces:
            graph = self._graph(piece)
            strings, nodes = graph.pools.strings, piece.nodes.tolist()
            ops = list(dict.fromkeys(_short(strings[int(graph.node_op[node])]) for node in nodes))
            phases = {PHASES[int(graph.node_phase[node])] for node in nodes}
            name = " + ".join(ops[:4]) + (f" + {len(ops) - 4} more" if len(ops) > 4 else "")
            key = f"{name} ({phases.pop()})" if len(phases) == 1 else name
            found[self._path(self._scope(piece)), key] += piece.seconds / self._steps
        return dict(found)

    def seconds(self, query: str) -> float | None:
        """Of what belongs wholly to the operators that a query finds; None where nothing measured does."""
        if not query:
            return self.total if self._pieces else None
        wanted: dict[int, npt.NDArray[np.bool_]] = {}
        for stage in {piece.stage for piece in self._pieces}:
            graph = self._capture.stages[stage].graph
            mask = np.zeros(graph.n_nodes, dtype=bool)
            for _, nodes in modules_like(graph, query):
                mask |= nodes
            if not query.startswith("scope:") or not mask.any():
                mask[find(graph, query, self._capture.origin.framework)] = True
            wanted[stage] = mask
        own = [piece.seconds for piece in self._pieces if len(piece.nodes) and wanted[piece.stage][piece.nodes].all()]
        return sum(own) / self._steps if own else None


def _short(op: str) -> str:
    """`aten.addmm.default` and `aten.addmm` are one, and so is what works in place."""
    found = _OVERLOAD.match(op)
    return f"{found[1]}.{found[2]}" if found else op
