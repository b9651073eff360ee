"""Where two recordings of the same computation stop agreeing: the first operator whose error its inputs do not explain.

Nothing is matched by name. A tensor of one recording is found in the other by its numbers: as many of them, and the
same statistics within what the precision of its type and the errors of its inputs allow. So modules may have other
names, another order, fused or split products. Two ports take other ways to the same number, so a tensor without a
counterpart means nothing as long as something that is computed from it has one again. The two diverge at the first
operator from which on, along all that is computed from it, nothing has one, although what it reads has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import NULL, PHASES, ROLES, Capture, Graph, Table, column, frozen
from opscope.ir.dtypes import find
from opscope.ir.facts import OWN, VALUES
from opscope.ir.rows import Rows

Floats = npt.NDArray[np.float64]

_FIGURES = ("mean", "rms", "min", "max")
# Of the largest error of its inputs, and of its precision: how far a result may be off. Sums of many numbers in another
# order lose several digits; what is far beyond that is another formula.
_AMPLIFIED, _ROUNDED = 4.0, 6.0
_MOST_ASKED = 64  # tensors, on the way back from one
_HUGE = 1e30  # what masks add instead of −inf: statistics of such a tensor say nothing about its other numbers
_MOST_STEPS = 256  # operators whose rounding is believed to add up in one that was compiled
ERROR = "error"  # what the figure is called
_KEEPING = ("aten.detach", "aten.alias", "aten.view")  # what keeps tensors for the backward pass
_MOST = 0.05  # more than that is never called the same


@dataclass(frozen=True)
class Place:
    """One side of a divergence: an operator, or a value from outside (then `op` is its role)."""

    op: str
    path: str
    file: str
    line: int
    phase: str
    node: int
    name: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def __str__(self) -> str:
        inside = f" in {self.path}" if self.path else ""
        where = f" at {self.file}:{self.line}" if self.file else ""
        return f"{self.op}{f' {self.name}' if self.name else ''}{inside}{where}"


@dataclass(frozen=True)
class Numbers:
    """What both sides make at a divergence, number by number in order."""

    size: int
    differ: int  # by more than a thousandth of their rms
    worst: int  # the place of the largest difference
    a: float
    b: float

    def __str__(self) -> str:
        return f"{self.differ:,} of {self.size:,} numbers differ, most at {self.worst:,}: {self.a:.6g} and {self.b:.6g}"


@dataclass(frozen=True)
class Point:
    """Where the two diverge: `a` and `b` compute it on either side; None: the side computes nothing there."""

    a: Place | None
    b: Place | None
    error: float | None  # relative, of the nearest two results there; None: nothing there can be compared
    input_error: float  # the largest error of what `a` reads
    explained_by_inputs: bool  # what it reads has no counterpart either
    numbers: Numbers | None = None  # where both could run once more

    def to_dict(self) -> dict[str, Any]:
        return {
            "a": self.a.to_dict() if self.a is not None else None,
            "b": self.b.to_dict() if self.b is not None else None,
            "error": self.error,
            "input_error": self.input_error,
            "explained_by_inputs": self.explained_by_inputs,
            "numbers": vars(self.numbers) if self.numbers is not None else None,
        }


@dataclass(frozen=True)
class Divergence:
    """`first` is None where the two agree. `matched` of `compared` tensors have a counterpart; `error` is the largest
    error among these."""

    first: Point | None
    compared: int
    matched: int
    error: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "first": self.first.to_dict() if self.first is not None else None,
            "compared": self.compared,
            "matched": self.matched,
            "error": self.error,
        }

    def __str__(self) -> str:
        if self.first is None:
            return f"the two agree: {self.matched:,} of {self.compared:,} tensors match, to {self.error:.1e}"
        error = f", off by {self.first.error:.1e}" if self.first.error is not None else ""
        numbers = f"\n  {self.first.numbers}" if self.first.numbers is not None else ""
        return f"the two diverge{error} at\n  a: {self.first.a or 'nothing'}\n  b: {self.first.b or 'nothing'}{numbers}"


def diverge(a: Capture, b: Capture) -> Divergence:
    """Compare two recordings with `values="stats"`, each in its first stage."""
    left, right = _Side(a), _Side(b)
    matches = _match(left, right), _match(right, left)
    if left.is_compiled or right.is_compiled:
        lost = left.lost_ends(matches[0].at >= 0), right.lost_ends(matches[1].at >= 0)
    else:
        lost = left.lost(matches[0].at >= 0), right.lost(matches[1].at >= 0)
    compared = int((left.telling & left.reached).sum())
    matched = int(((matches[0].at >= 0) & left.telling & left.reached).sum())
    largest = float(np.max(matches[0].error[(matches[0].at >= 0) & left.telling], initial=0.0))
    first = _first(left, right, lost, matches)
    return Divergence(first, compared, matched, largest)


def with_errors(a: Capture, b: Capture) -> tuple[Capture, Capture]:
    """Both with a figure of each operator: how far what it makes is from its counterpart in the other, and 1 from where
    on there is none. Unknown: another way to the same numbers, which have counterparts again."""
    left, right = _Side(a), _Side(b)
    return _with_errors(a, left, _match(left, right)), _with_errors(b, right, _match(right, left))


def _with_errors(capture: Capture, side: _Side, match: _Match) -> Capture:
    has = match.at >= 0
    found = {value: float(match.error[value]) for value in np.flatnonzero(has & side.telling).tolist()}
    found |= dict.fromkeys(side.lost(has), 1.0)
    errors: dict[int, float] = {}
    for value, error in found.items():
        if (node := int(side.graph.value_producer[value])) >= 0:
            errors[node] = max(errors.get(node, 0.0), error)
    nodes = sorted(errors)
    figures = column(np.array([errors[node] for node in nodes]), "relative")
    told = replace(capture, tables=dict(capture.tables))
    told.add(Table(0, "node", frozen(nodes), {ERROR: figures}, OWN.name))
    return told


class _Match(NamedTuple):
    at: npt.NDArray[np.int64]  # by value of one side: its counterpart on the other, or -1
    error: Floats  # how far the two are apart, relatively


class _Side:
    """One recording, by value: size, statistics, precision, hash."""

    def __init__(self, capture: Capture) -> None:
        self.graph = graph = capture.graph
        self.rows = Rows(graph)
        count = graph.n_values
        self.figures: Floats = np.full((count, len(_FIGURES)), np.nan)
        self.has_inf = np.zeros(count, dtype=bool)
        self.hash: list[str] = [""] * count
        found = False
        for table in capture.facts(VALUES.name, 0):
            for place, name in enumerate(_FIGURES):
                column = table.columns.get(name)
                if column is not None:
                    rows = table.index[column.known]
                    self.figures[rows, place] = np.asarray(column.values, dtype=np.float64)[column.known]
                    found = True
            infinite = table.columns.get("inf")
            if infinite is not None:
                self.has_inf[table.index[infinite.known]] = np.asarray(infinite.values)[infinite.known] > 0
            hashes = table.columns.get("hash")
            for row, value in enumerate(table.index.tolist()):
                if hashes is not None and hashes.known[row]:
                    self.hash[value] = str(hashes.values[row])
        if not found:
            raise OpscopeError(
                "a capture holds no statistics of tensors: record both with values='stats' "
                "(opscope trace --values stats)"
            )
        self.size, self.precision = self._types(graph)
        self.scale = np.maximum(np.abs(self.figures[:, 1]), 1e-30)
        spread = self.figures[:, 3] - self.figures[:, 2]
        is_measured = ~np.isnan(self.figures[:, 1])
        # What can be told apart from other tensors: not a number, not whole numbers, not the same number everywhere.
        is_mask = np.nan_to_num(self.figures[:, 2]) < -_HUGE
        self.telling = is_measured & (self.size > 1) & (self.precision > 0) & (spread > 0) & ~is_mask & ~self.has_inf
        self.numbers = is_measured & (self.size == 1) & (self.precision > 0)
        self.reached = self._reached()
        self.is_compiled = any(node.op.startswith("compiled.") for node in graph.nodes)
        made = self.precision[(graph.value_producer >= 0) & self.telling]
        self.usual = float(np.median(made)) if len(made) else 0.0  # the precision that it computes in

    def _types(self, graph: Graph) -> tuple[npt.NDArray[np.int64], Floats]:
        sizes: list[int] = []
        precisions: list[float] = []
        for type_ in graph.pools.types:
            sizes.append(type_.elements if type_.elements is not None else -1)
            precisions.append(_precision(type_.dtype))
        own = graph.value_type
        return np.array(sizes, dtype=np.int64)[own], np.array(precisions)[own]

    def _reached(self) -> npt.NDArray[np.bool_]:
        """What takes part: read by an operator, or made by one."""
        graph = self.graph
        used = np.zeros(graph.n_values, dtype=bool)
        used[graph.use_value[graph.use_value >= 0]] = True
        return used | (graph.value_producer >= 0)

    def lost(self, has: npt.NDArray[np.bool_]) -> list[int]:
        """The values that tell something and have no counterpart, and from which nothing is computed that has one;
        in the order of the operators, values from outside first."""
        graph = self.graph
        recovers = has & self.telling
        for node in range(graph.n_nodes - 1, -1, -1):
            if any(recovers[value] for value in self.rows.made(node)):
                for value in self.rows.used(node):
                    if value >= 0:
                        recovers[value] = True
        wanted = (self.telling | self.numbers) & self.reached & ~has & ~recovers
        values = np.flatnonzero(wanted)
        return sorted(values.tolist(), key=lambda value: (int(graph.value_producer[value]), value))

    def steps(self, value: int, other: _Side) -> int:
        """How many operators' rounding is in what its operator makes of what it reads."""
        node = int(self.graph.value_producer[value])
        is_compiled = node >= 0 and self.graph.node(node).op.startswith("compiled.")
        return min(other.graph.n_nodes, _MOST_STEPS) if is_compiled else int(node >= 0)

    def lost_ends(self, has: npt.NDArray[np.bool_]) -> list[int]:
        """Of what comes to stay (the result, what a variable holds, gradients of parameters, what is written to these)
        that without counterpart. What a compiler fused has none in between, and keeps other tensors for the backward
        pass."""
        graph = self.graph
        names = graph.pools.strings
        outputs = {value for value in graph.outputs.tolist() if names[int(graph.value_name[value])]}
        forward: list[int] = np.flatnonzero(graph.node_phase == PHASES.index("forward")).tolist()
        last = next((node for node in reversed(forward) if graph.node(node).op not in _KEEPING), None)
        if last is not None:
            outputs.update(self.rows.made(last)[:1])
        found: list[int] = []
        for value in np.flatnonzero((self.telling | self.numbers) & ~has & (graph.value_producer >= 0)).tolist():
            is_gradient = names[int(graph.value_name[value])].endswith(".grad")
            is_kept = ROLES[int(graph.value_role[graph.value_storage[value]])] in ("parameter", "buffer", "state")
            if value in outputs or is_gradient or (is_kept and not self.readers(value)):
                found.append(value)
        return sorted(found, key=lambda value: (int(graph.value_producer[value]), value))

    def place(self, value: int) -> Place:
        graph = self.graph
        node = int(graph.value_producer[value])
        if node >= 0:
            at = graph.node(node)
            frame = self.rows.users_frame(node) or self.rows.frame(node)
            file, line = (frame.file, frame.line) if frame is not None else ("", 0)
            return Place(at.op, at.path, file, line, at.phase, node)
        readers = np.flatnonzero(graph.use_value == value)
        first = int(graph.use_node[readers[0]]) if len(readers) else -1
        path = graph.node(first).path if first >= 0 else ""
        phase = PHASES[int(graph.node_phase[first])] if first >= 0 else ""
        name = graph.pools.strings[int(graph.value_name[value])]
        return Place(ROLES[int(graph.value_role[value])], path, "", 0, phase, -1, name)

    def telling_inputs(self, value: int) -> list[int]:
        """What its operator reads; instead of a tensor that tells nothing, what that was made of."""
        found: list[int] = []
        todo, seen = self.inputs(value), {value}
        while todo and len(seen) < _MOST_ASKED:
            used = todo.pop(0)
            if used in seen:
                continue
            seen.add(used)
            if self.telling[used]:
                found.append(used)
            else:
                todo += self.inputs(used)
        return found

    def readers(self, value: int) -> list[int]:
        start, use = self.graph.value_uses
        return self.graph.use_node[use[start[value] : start[value + 1]]].tolist()

    def inputs(self, value: int) -> list[int]:
        node = int(self.graph.value_producer[value])
        return [used for used in self.rows.used(node) if used != NULL] if node >= 0 else []


def _precision(dtype: str) -> float:
    """The distance of neighbouring numbers around 1; 0: no floating-point numbers."""
    known = {"float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23, "complex64": 2.0**-23}
    if dtype in known:
        return known[dtype]
    found = find(dtype)
    if found is None or found.family not in ("float", "complex"):
        return 0.0
    if dtype == "bfloat16":
        return 2.0**-7
    return 2.0**-10 if found.bits is not None and found.bits >= 16 else 2.0**-2


def _match(one: _Side, other: _Side) -> _Match:
    """The counterpart of each value: equal bits first, otherwise the nearest within what rounding may do."""
    graph = one.graph
    at = np.full(graph.n_values, -1, dtype=np.int64)
    error = np.zeros(graph.n_values)
    by_size = _by_size(other)
    equal: dict[tuple[int, str], int] = {}
    for value in range(other.graph.n_values - 1, -1, -1):
        if other.hash[value]:
            equal[int(other.size[value]), other.hash[value]] = value
    # What a compiler fused has no counterparts in between, and adds up the rounding of every step.
    adds_up = one.is_compiled or other.is_compiled
    slack = np.zeros(graph.n_values)
    order: list[int] = np.argsort(graph.value_producer, kind="stable").tolist()
    for value in order:
        before = max((float(slack[used]) for used in one.inputs(value)), default=0.0)
        if adds_up:
            slack[value] = before + one.steps(value, other) * max(float(one.precision[value]), one.usual, other.usual)
        if not (one.telling[value] or one.numbers[value]):
            continue
        same = equal.get((int(one.size[value]), one.hash[value]), -1) if one.hash[value] else -1
        if same >= 0 and abs(other.precision[same] - one.precision[value]) == 0:
            at[value], slack[value] = same, 0.0
            continue
        found = _nearest(one, other, by_size, value, before)
        if found is not None:
            at[value], error[value] = found
            slack[value] = max(error[value], slack[value])
    return _Match(at, error)


class _Sorted(NamedTuple):
    values: npt.NDArray[np.int64]
    rms: Floats


def _by_size(side: _Side) -> dict[int, _Sorted]:
    found: dict[int, _Sorted] = {}
    usable = np.flatnonzero((side.telling | side.numbers) & side.reached)
    sizes = side.size[usable]
    for size in np.unique(sizes).tolist():
        values = usable[sizes == size]
        values = values[np.argsort(side.figures[values, 1], kind="stable")]
        found[size] = _Sorted(values, side.figures[values, 1])
    return found


def _nearest(
    one: _Side, other: _Side, by_size: dict[int, _Sorted], value: int, before: float
) -> tuple[int, float] | None:
    candidates = by_size.get(int(one.size[value]))
    if candidates is None:
        return None
    rms = float(one.figures[value, 1])
    width = abs(rms) * 2 * _MOST + 1e-30
    low, high = np.searchsorted(candidates.rms, [rms - width, rms + width])
    values = candidates.values[low:high]
    if not len(values):
        return None
    off = _apart(one, value, other, values)
    # What only one of two equally precise programs rounds coarsely is a difference between them.
    both = np.minimum(other.precision[values], one.precision[value])
    precision = np.maximum(both, max(one.usual, other.usual))
    allowed = np.minimum(_AMPLIFIED * before + _ROUNDED * precision, _MOST)
    best = int(np.argmin(off / np.maximum(allowed, 1e-30)))
    return (int(values[best]), float(off[best])) if off[best] <= allowed[best] else None


def _apart(one: _Side, value: int, other: _Side, values: npt.NDArray[np.int64]) -> Floats:
    """The largest difference of the statistics, relative to the size of the numbers: the mean's to the rms, the
    extremes' to themselves; these are single numbers, which rounding moves more."""
    mine, theirs = one.figures[value], other.figures[values]
    scale = max(float(one.scale[value]), 1e-30)
    ends = np.maximum(np.abs(mine[2:]), scale)
    return np.maximum.reduce(
        [
            np.abs(theirs[:, 0] - mine[0]) / scale,
            np.abs(theirs[:, 1] - mine[1]) / scale,
            np.abs(theirs[:, 2] - mine[2]) / ends[0] / 2,
            np.abs(theirs[:, 3] - mine[3]) / ends[1] / 2,
        ]
    )


def _first(
    left: _Side, right: _Side, lost: tuple[list[int], list[int]], matches: tuple[_Match, _Match]
) -> Point | None:
    """The first loss of the left side, and the one of the right side that stands in the same place."""
    if not lost[0] and not lost[1]:
        return None
    a = _earliest(left, lost[0], matches[0])
    b = _earliest(right, lost[1], matches[1])
    error = None
    if a is not None and b is not None:
        b = _partner(left, right, a, b, lost[1])
        if left.size[a] == right.size[b]:
            found = _apart(left, a, right, np.array([b]))[0]
            error = float(found) if math.isfinite(found) else None
    side, value, match = (left, a, matches[0]) if a is not None else (right, b, matches[1])
    assert value is not None
    inputs = side.inputs(value)
    gone = set(lost[0] if a is not None else lost[1])
    missing = [v for v in side.telling_inputs(value) if v in gone and side.graph.value_producer[v] >= 0]
    if a is not None and (given := _given(left, right, a, b, matches)) is not None:
        a, b = given[0], given[1] if given[1] is not None else b
        error = (
            float(_apart(left, a, right, np.array([b]))[0]) if b is not None and left.size[a] == right.size[b] else None
        )
    return Point(
        left.place(a) if a is not None else None,
        right.place(b) if b is not None else None,
        error,
        max((float(match.error[v]) for v in inputs), default=0.0),
        bool(missing),
    )


def _earliest(side: _Side, lost: list[int], match: _Match) -> int | None:
    """The first result that is computed of what has counterparts and has none, and is to blame for it.

    Of what comes from outside some has no counterpart in a correct port, too: a weight that is a part of another one
    there. And a table that is computed in another form is excused where it meets data that is lost for another reason.
    """
    made = side.graph.value_producer
    computed = [value for value in lost if made[value] >= 0]
    gone = set(computed)
    edge = [value for value in computed if any(match.at[v] >= 0 for v in side.telling_inputs(value))]
    roots = list(dict.fromkeys(_root(side, value, gone) for value in edge[:_MOST_ASKED]))
    blamed = next((value for value in roots if _is_to_blame(side, value, gone, match)), None)
    return blamed if blamed is not None else next(iter(roots or computed or lost), None)


def _is_to_blame(side: _Side, value: int, gone: set[int], match: _Match) -> bool:
    """Where what is computed of it first meets something else, that has a counterpart."""
    derived, todo = {value}, [value]
    while todo and len(derived) < _MOST_ASKED:
        for node in side.readers(todo.pop(0)):
            made = [v for v in side.rows.made(node) if v in gone]
            if not made:
                continue
            others = [v for v in side.telling_inputs(made[0]) if v not in derived]
            if any(v in gone for v in others):
                continue
            if any(match.at[v] >= 0 and side.graph.value_producer[v] >= 0 for v in others):
                return True
            fresh = [v for v in made if v not in derived]
            derived.update(fresh)
            todo += fresh
    return not any(side.readers(v) for v in derived)


def _root(side: _Side, value: int, gone: set[int]) -> int:
    """Back along what has no counterpart, to where that begins."""
    for _ in range(side.graph.n_nodes):
        before = [v for v in side.telling_inputs(value) if v in gone]
        if not before:
            break
        value = min(before, key=lambda v: int(side.graph.value_producer[v]))
    return value


def _given(
    left: _Side, right: _Side, a: int, b: int | None, matches: tuple[_Match, _Match]
) -> tuple[int, int | None] | None:
    """Where both operators are right and what they are given differs: the weights, buffers or inputs themselves."""
    ours = _outside(left, a, matches[0])
    if not ours:
        return None
    theirs = _outside(right, b, matches[1]) if b is not None else []
    for value in ours:
        same = next((other for other in theirs if right.size[other] == left.size[value]), None)
        if same is not None:
            return value, same
        if ROLES[int(left.graph.value_role[value])] != "parameter":
            return value, None
    return None


def _outside(side: _Side, value: int, match: _Match) -> list[int]:
    made = side.graph.value_producer
    return [v for v in side.inputs(value) if made[v] < 0 and side.telling[v] and match.at[v] < 0]


def _partner(left: _Side, right: _Side, a: int, b: int, lost: list[int]) -> int:
    """Of the right side's losses the first of the same size that comes soon and reads nothing that is lost: it is
    what `a` should have been."""
    size = left.size[a]
    computed = [value for value in lost if right.graph.value_producer[value] >= 0]
    early = computed[: computed.index(b) + 8] if b in computed else computed[:8]
    gone = set(computed)
    return next((v for v in early if right.size[v] == size and not any(u in gone for u in right.telling_inputs(v))), b)
