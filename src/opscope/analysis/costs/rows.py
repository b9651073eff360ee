"""The rows of tables of costs: by module, operator, kind, node, kernel and phase, each with the sums of all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from opscope.analysis.times import Clocks, shares
from opscope.analysis.values import OwnFigures, made_by
from opscope.errors import OpscopeError
from opscope.ir import PHASE_ID, PHASES, scope_label
from opscope.ir.columns import view
from opscope.ir.enumerations import ESTIMATED, EXACT, HOW, UNKNOWN, ZERO
from opscope.ir.rows import Rows as GraphRows

from . import achieved, gaps, rollup
from .columns import Row, order
from .memory import activations_by_node
from .operators import sum_by
from .rollup import Sums
from .roofline import Roofline
from .sizes import Ints
from .stats import GraphStats


class Rows(Sequence[Row]):
    """Rows that are made when they are looked at: a million of them are only numbers until then. `figures` are columns
    that rows can be sorted by without being made; what is not known is NaN there."""

    def __init__(
        self,
        numbers: Sequence[int],
        make: Callable[[int], Row],
        figures: Mapping[str, npt.NDArray[Any]] = MappingProxyType({}),
    ) -> None:
        self._numbers, self._make, self._figures = numbers, make, figures

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> Row | Rows:
        if isinstance(index, slice):
            return Rows(self._numbers[index], self._make, self._figures)
        return self._make(self._numbers[index])

    def sorted(self, keys: Sequence[str]) -> Rows:
        """By these columns, the largest first; by the second one where the first does not tell, and so on."""
        numbers = np.array(self._numbers, dtype=np.int64)
        for key in reversed(keys):
            if key in self._figures:
                place = np.argsort(-self._figures[key][numbers], kind="stable")
            else:
                found = [order(self._make(number).get(key)) for number in numbers.tolist()]
                place = np.array(sorted(range(len(found)), key=found.__getitem__), dtype=np.int64)
            numbers = numbers[place]
        return Rows(numbers.tolist(), self._make, self._figures)

    def largest(self, column: str) -> float:
        """The largest figure of a column."""
        if column in self._figures:
            return float(self._figures[column][np.array(self._numbers, dtype=np.int64)].max(initial=0))
        return max((row.get(column) or 0 for row in self), default=0)

    def each(self, change: Callable[[Row], Row]) -> Rows:
        """The same rows, each with something done to it."""
        make = self._make
        return Rows(self._numbers, lambda number: change(make(number)), self._figures)


def _figures(sums: dict[str, int]) -> Row:
    traffic = sums["read"] + sums["written"]
    flops = 2 * sums["macs"]
    return {
        "ops": sums["nodes"],
        "macs": sums["macs"],
        "flops": flops,
        "other": sums["other"],
        "read": sums["read"],
        "written": sums["written"],
        "bytes": traffic,
        "intensity": (flops + sums["other"]) / traffic if traffic else None,
        "unknown": sums["unknown"],
        "bytes_unknown": sums["bytes_unknown"],
        "causal": sums["causal"],
        "causal_unknown": sums["causal_unknown"],
        "wire": sums["wire"],
        "wire_unknown": sums["wire_unknown"],
    }


def _total(stats: GraphStats, times: Roofline | None) -> Row:
    costs, total = stats.costs, stats.total
    marks = {mark: sum(what in gap.touches for gap in stats.gaps) for mark, what in gaps.MARKS.items()}
    row: Row = {
        "name": "total",
        "ops": len(costs),
        "macs": total.macs,
        "flops": total.flops,
        "other": total.other_flops,
        "read": total.read,
        "written": total.written,
        "bytes": total.bytes,
        "intensity": total.intensity,
        "unknown": int(np.count_nonzero(costs.lower)),
        "bytes_unknown": int(np.count_nonzero(~costs.bytes_known)),
        "causal": total.causal_macs,
        "causal_unknown": int(np.count_nonzero(~costs.causal_known)),
        "wire": total.wire,
        "wire_unknown": int(np.count_nonzero(~costs.wire_known)),
        "params": total.params,
        "param_bytes": total.param_bytes,
        "activations": total.activations,
        "activation_bytes": total.activation_bytes,
        "seconds": times.total if times is not None else None,
        **_measured(stats, np.zeros(len(costs), dtype=np.int64), 1, times)[0],
        "memory_unknown": len(stats.memory.unknown_activations),
        "params_unknown": stats.parameters.unknown,
    }
    if not stats.parameters.at_least:
        marks.pop("params_unknown")
    return _marked(row, marks)


def _marked(row: Row, marks: dict[str, int]) -> Row:
    """A row that says of which figures something is missing."""
    return row | {mark: row.get(mark, 0) + count for mark, count in marks.items()}


def _measured(stats: GraphStats, index: Any, count: int, times: Roofline | None = None) -> list[Row]:
    """Measured seconds added up by `index`; `time_unknown` are the nodes among them that were not measured."""
    rows: list[Row] = [{} for _ in range(count)]
    if stats.times is not None:
        seconds, known, _ = stats.times
        sums = np.bincount(index, seconds, minlength=count)
        found = np.bincount(index, known, minlength=count)
        missing = np.bincount(index, minlength=count) - found
        for i, row in enumerate(rows):
            row |= {"time": float(sums[i]) if found[i] else None, "time_unknown": int(missing[i])}
    if stats.clocks is not None:
        for row, figures in zip(rows, _clocked(stats.clocks, index, count), strict=True):
            row |= figures
    for row, figures in zip(rows, _achieved(stats, index, count, times), strict=False):
        row |= figures
    return rows


def _achieved(stats: GraphStats, index: Any, count: int, times: Roofline | None) -> list[Row]:
    """What rows made of the device, by the work that is wholly theirs."""
    work = stats.work(times.device if times is not None else None)
    return _listed(achieved.shares_of(achieved.sums_by(work, np.asarray(index), count))) if work is not None else []


def _listed(shares: Mapping[str, npt.NDArray[np.float64]]) -> list[Row]:
    columns = [[None if math.isnan(x) else x for x in column.tolist()] for column in shares.values()]
    return [dict(zip(shares, row, strict=True)) for row in zip(*columns, strict=True)]


def _clocked(clocks: Clocks, index: Any, count: int) -> list[Row]:
    """Seconds on devices and on the CPU. A kernel that belongs to several rows is in no sum of theirs: it is shared."""
    own, shared = shares(clocks, np.asarray(index), count)
    is_known = ~np.isnan(clocks.cpu)
    cpu = np.bincount(index, np.nan_to_num(clocks.cpu), minlength=count)
    found = np.bincount(index, is_known, minlength=count)
    return [
        {"gpu_seconds": gpu, "shared_seconds": other, "cpu_seconds": spent if known else None}
        for gpu, other, spent, known in zip(own.tolist(), shared.tolist(), cpu.tolist(), found.tolist(), strict=True)
    ]


# -- flat tables ---------------------------------------------------------------------------------------


def by_op(stats: GraphStats, times: Roofline | None, kinds: bool = False) -> tuple[list[Row], Row]:
    graph, costs = stats.graph, stats.costs
    used, op = np.unique(graph.node_op, return_inverse=True)
    names: list[str] = [graph.pools.strings[int(i)] for i in used]
    op = op.reshape(-1)
    kind_of = stats.kinds
    labels = [kind_of.by_op[int(i)] for i in used]
    if kinds:
        place = {label: i for i, label in enumerate(dict.fromkeys([*labels, *kind_of.by_node.values()]))}
        op = np.array([place[label] for label in labels], dtype=np.int64)[op]
        for node, label in kind_of.by_node.items():
            op[node] = place[label]
        here: Ints = np.unique(op)  # a name may have lost all its nodes to other kinds
        every = list(place)
        names, op = [every[int(i)] for i in here], np.searchsorted(here, op)
    else:
        labels = _labels(labels, op, kind_of.by_node)
    found = rollup.sums(costs, op, len(names))
    seconds = np.bincount(op, times.seconds, minlength=len(names)) if times is not None else None
    worst = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(worst, op, _CERTAIN[costs.how])
    measured = _measured(stats, op, len(names), times)
    rows: list[Row] = []
    for i, name in enumerate(names):
        row: Row = {"name": name, **_figures(found.row(i)), "how": _LESS_CERTAIN[worst[i]], **measured[i]}
        if not kinds:
            row["kind"] = labels[i]
        row["seconds"] = float(seconds[i]) if seconds is not None else None
        if stats.gaps:
            marks = {
                mark: gaps.by_op(stats.gaps, stats.framework, name, what, kinds=kinds)
                for mark, what in gaps.MARKS.items()
            }
            row = _marked(row, marks)
        rows.append(row)
    return rows, _total(stats, times)


def _labels(labels: list[str], op: Any, by_node: Mapping[int, str]) -> list[str]:
    """The kinds of each name: its own, unless all its nodes are others, and those of single nodes."""
    others = [Counter[str]() for _ in labels]
    for node, label in by_node.items():
        others[op[node]][label] += 1
    counts = np.bincount(op, minlength=len(labels)).tolist()
    own = [[label] if other.total() < count else [] for label, other, count in zip(labels, others, counts, strict=True)]
    return [", ".join([*mine, *sorted(other)]) for mine, other in zip(own, others, strict=True)]


_LESS_CERTAIN = (ZERO, EXACT, ESTIMATED, UNKNOWN)  # what several nodes are together: the last that one of them is
_CERTAIN = np.array([_LESS_CERTAIN.index(how) for how in HOW])


def by_kind(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    return by_op(stats, times, kinds=True)


def by_phase(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    graph = stats.graph
    seconds = np.bincount(graph.node_phase, times.seconds, minlength=len(PHASES)) if times is not None else None
    measured = _measured(stats, graph.node_phase, len(PHASES), times)
    missing = {mark: gaps.by_phase(stats.gaps, what) for mark, what in gaps.MARKS.items()}
    rows: list[Row] = []
    for phase, sums in stats.phases.items():
        number = PHASE_ID[phase]
        row: Row = {"name": phase, **_figures(sums), **measured[number]}
        row["seconds"] = float(seconds[number]) if seconds is not None else None
        rows.append(_marked(row, {mark: int(found[number]) for mark, found in missing.items()}))
    return rows, _total(stats, times)


def by_node(stats: GraphStats, times: Roofline | None) -> tuple[Rows, Row]:
    graph, costs, read = stats.graph, stats.costs, GraphRows(stats.graph)
    _, activation_bytes = activations_by_node(graph, stats.memory)
    unsized = np.bincount(graph.value_producer[stats.memory.unknown_activations], minlength=graph.n_nodes)
    figures = made_by(graph, stats.figures)
    kinds = stats.kinds
    summed = {name: view(getattr(costs, name)) for name in (*rollup.FIGURES, "causal", "wire")}
    lower, how, sizes, unsizes = view(costs.lower), view(costs.how), view(activation_bytes), view(unsized)
    bytes_known, causal_known = view(costs.bytes_known), view(costs.causal_known)
    wire_known = view(costs.wire_known)
    seconds = times.seconds if times is not None else None
    is_memory_bound = times.is_memory_bound if times is not None else None
    every = np.arange(graph.n_nodes)
    clocked = _clocked(stats.clocks, every, graph.n_nodes) if stats.clocks is not None else None
    reached = _achieved(stats, every, graph.n_nodes, times)

    def row(i: int) -> Row:
        sums = {name: column[i] for name, column in summed.items()}
        sums |= {"nodes": 1, "unknown": int(lower[i]), "bytes_unknown": int(not bytes_known[i])}
        sums |= {"causal_unknown": int(not causal_known[i]), "wire_unknown": int(not wire_known[i])}
        op = read.strings[read.op[i]]
        found: Row = {
            "name": op,
            "node": i,
            "op": op,
            "kind": kinds.of(graph, i),
            "module": read.path(read.scope[i]),
            "phase": read.phase(i),
            "output": ", ".join([read.type_text(read.value_type[value]) for value in read.made(i)]),
            **_figures(sums),
            "activation_bytes": sizes[i],
            "memory_unknown": unsizes[i],
            "how": HOW[how[i]],
        }
        if stats.times is not None and stats.times.known[i]:
            found["time"] = float(stats.times.seconds[i])
        if clocked is not None:
            found |= clocked[i]
        if reached:
            found |= reached[i]
        found |= {name: _plain(name, figure) for name, figure in figures.get(i, {}).items()}
        found |= {name: float(of.numbers[i]) for name, (of, *_) in stats.own.items() if of.known[i]}
        if seconds is not None and is_memory_bound is not None:
            found["seconds"] = float(seconds[i])
            found["bound"] = "memory" if is_memory_bound[i] else "compute"
        return found

    columns: dict[str, npt.NDArray[Any]] = {
        "node": np.arange(graph.n_nodes),
        "macs": costs.macs,
        "flops": costs.macs,
        "other": costs.other,
        "read": costs.read,
        "written": costs.written,
        "bytes": costs.read + costs.written,
        "causal": costs.causal,
        "wire": costs.wire,
        "activation_bytes": activation_bytes,
        **_measured_columns(graph.n_nodes, figures, stats.figures),
        **{name: np.where(of.known, of.numbers, np.nan) for name, (of, *_) in stats.own.items()},
    }
    if seconds is not None:
        columns["seconds"] = seconds
    if clocked is not None:
        for name in ("gpu_seconds", "shared_seconds", "cpu_seconds"):
            columns[name] = np.array([figures[name] for figures in clocked], dtype=np.float64)
    for name in achieved.SHARES if reached else ():
        columns[name] = np.array([math.nan if row[name] is None else row[name] for row in reached])
    if stats.times is not None:
        columns["time"] = np.where(stats.times.known, stats.times.seconds, np.nan)
    return Rows(range(graph.n_nodes), row, columns), _total(stats, times)


def _measured_columns(
    count: int, figures: Mapping[int, Mapping[str, float]], names: Iterable[str]
) -> dict[str, npt.NDArray[np.float64]]:
    """Measured figures by node, to be sorted by. One that is itself NaN is of interest, so it stands with infinity."""
    columns = {name: np.full(count, np.nan) for name in names}
    for node, measured in figures.items():
        for name, figure in measured.items():
            columns[name][node] = math.inf if math.isnan(figure) else figure
    return columns


def _plain(name: str, figure: float) -> float | int | str:
    """What JSON can hold: `nan` and `inf` as text, counts whole."""
    return str(figure) if not math.isfinite(figure) else int(figure) if name in ("nan", "inf") else figure


def by_kernel(stats: GraphStats, times: Roofline | None) -> tuple[Rows, Row]:
    """Kernels of one name together. An operator may run in several kernels, so these sums are those of the kernels."""
    graph = stats.graph
    kernels = graph.groups.get("kernel")
    found = rollup.by_kernel(graph, stats.costs)
    if kernels is None or found is None or not len(kernels):
        raise OpscopeError("no kernels are known: this framework, or this way of capturing, does not report what ran")
    used, name = np.unique(kernels.name, return_inverse=True)
    name = name.reshape(-1)
    merged = Sums(*(sum_by(name, getattr(found, column), len(used)) for column in _SUMS))
    runs = np.bincount(name, minlength=len(used))
    measured = _measured_kernels(stats, name, len(used))
    for own, reached in zip(measured, _achieved_kernels(stats, found, name, len(used), times), strict=False):
        own |= reached

    def row(i: int) -> Row:
        made: Row = {"name": graph.pools.strings[int(used[i])] or "(no name)", **_figures(merged.row(i))}
        made |= {"runs": int(runs[i]), **measured[i]}
        if times is not None:
            compute = made["flops"] / times.device.peak("float32") + made["other"] / times.device.other
            moving = made["bytes"] / times.device.bandwidth
            made["seconds"], made["bound"] = max(compute, moving), "memory" if moving >= compute else "compute"
        return made

    columns: dict[str, npt.NDArray[Any]] = {
        "runs": runs,
        "ops": merged.nodes,
        "flops": merged.macs,
        "bytes": merged.read + merged.written,
        **{column: getattr(merged, column) for column in ("macs", "other", "read", "written", "causal")},
    }
    whole = {column: int(getattr(merged, column).sum()) for column in _SUMS}
    total: Row = {"name": "total", **_figures(whole), "runs": len(kernels)}
    if stats.kernel_times is not None:
        total |= _measured_kernels(stats, np.zeros(len(kernels), dtype=np.int64), 1)[0]
    if times is not None:
        total["seconds"] = sum(row(i)["seconds"] for i in range(len(used)))
    marks = {mark: sum(what in gap.touches for gap in stats.gaps) for mark, what in gaps.MARKS.items()}
    return Rows(range(len(used)), row, columns), _marked(total, marks)


def _achieved_kernels(stats: GraphStats, found: Sums, name: Any, count: int, times: Roofline | None) -> list[Row]:
    """Of kernels, by their name: only of those that alone compute their operators, whose cost is then theirs."""
    work = stats.work(times.device if times is not None else None)
    kernels = stats.graph.groups.get("kernel")
    if work is None or kernels is None or stats.kernel_times is None:
        return []
    piece = {work.groups.members(i).tobytes(): i for i in np.flatnonzero(work.known & (work.kernels == 1)).tolist()}
    sums = np.zeros((4, count))
    for kernel, label in enumerate(name.tolist()):
        at = piece.get(np.unique(kernels.members(kernel)).tobytes())
        if at is not None:
            sums[:, label] += (work.seconds[at], work.products[at], work.memory[at], work.bound[at])
    return _listed(achieved.shares_of(sums))


def _measured_kernels(stats: GraphStats, name: Any, count: int) -> list[Row]:
    if stats.kernel_times is None:
        return [{} for _ in range(count)]
    seconds, known = stats.kernel_times
    sums = np.bincount(name, seconds, minlength=count)
    found = np.bincount(name, known, minlength=count)
    missing = np.bincount(name, minlength=count) - found
    rows: list[Row] = [
        {"time": float(sums[i]) if found[i] else None, "time_unknown": int(missing[i])} for i in range(count)
    ]
    if stats.clocks is not None:
        for i, row in enumerate(rows):
            row |= {"gpu_seconds": float(sums[i]) if found[i] else None, "shared_seconds": 0.0, "cpu_seconds": None}
    return rows


_SUMS = rollup.COLUMNS


# -- the tree ------------------------------------------------------------------------------------------


class ModuleRows:
    """The figures of every scope, with all that is inside it and of itself, made into rows when asked for."""

    def __init__(self, stats: GraphStats, times: Roofline | None) -> None:
        graph, costs = stats.graph, stats.costs
        self._scopes, self.tree = graph.pools.scopes.rows(), stats.scopes.tree
        self._sums, self._own_sums = stats.scopes.inside, stats.scopes.own
        tree, count = self.tree, len(self._scopes)
        elements, sizes = activations_by_node(graph, stats.memory)
        self._own: dict[str, npt.NDArray[Any]] = {
            "activations": sum_by(graph.node_scope, elements, count),
            "activation_bytes": sum_by(graph.node_scope, sizes, count),
            "params": np.zeros(count, dtype=np.int64),
            "param_bytes": np.zeros(count, dtype=np.int64),
            "params_unknown": np.zeros(count, dtype=np.int64),
        }
        unsized = graph.value_producer[stats.memory.unknown_activations]
        self._own["memory_unknown"] = np.bincount(graph.node_scope[unsized], minlength=count)
        for parameter in stats.parameters.each:
            self._own["params_unknown"][parameter.scope] += parameter.elements is None
            self._own["params"][parameter.scope] += parameter.elements or 0
            self._own["param_bytes"][parameter.scope] += parameter.bytes or 0
        for phase in ("forward", "backward"):
            nodes = np.flatnonzero(graph.node_phase == PHASE_ID[phase])
            self._own[phase] = sum_by(graph.node_scope[nodes], costs.macs[nodes], count)
        self._inside: dict[str, npt.NDArray[Any]] = {name: tree.up(column) for name, column in self._own.items()}
        if times is not None:
            spent = np.bincount(graph.node_scope, times.seconds, minlength=count).astype(np.float64)
            self._own["seconds"], self._inside["seconds"] = spent, tree.up_seconds(spent)
        if stats.times is not None:
            seconds, known, _ = stats.times
            scope = graph.node_scope
            found = tree.up(np.bincount(scope[known], minlength=count))
            spent = tree.up_seconds(np.bincount(scope, seconds, minlength=count).astype(np.float64))
            self._inside["time"] = np.where(found > 0, spent, np.nan)
            self._inside["time_unknown"] = tree.up(np.bincount(scope[~known], minlength=count))
        for name, figures in stats.own.items():
            self._inside |= _rolled(name, figures, graph.node_scope, tree.parent.tolist())
        if stats.clocks is not None:
            self._clock(stats.clocks, graph.node_scope, count)
        work = stats.work(times.device if times is not None else None)
        if work is not None:
            self._reach(work, graph.node_scope, count)
        self._mark(stats)

    def _reach(self, work: achieved.Work, scope: npt.NDArray[Any], count: int) -> None:
        """What modules made of the device: work counts for the module that has all of it, and for those around that."""
        parents = self.tree.parent.tolist()
        place = np.zeros(len(work), dtype=np.int64)
        for piece in range(len(work)):
            common = -1
            for at in np.unique(scope[work.groups.members(piece)]).tolist():
                common = at if common < 0 else common
                while common != at:  # parents have smaller numbers
                    common, at = (parents[common], at) if common > at else (common, parents[at])
            place[piece] = max(common, 0)
        known = np.flatnonzero(work.known)
        columns = (work.seconds, work.products, work.memory, work.bound)
        own = np.array([np.bincount(place[known], column[known], minlength=count) for column in columns], dtype=float)
        self._own |= achieved.shares_of(own)
        self._inside |= achieved.shares_of(np.array([self.tree.up_seconds(column) for column in own]))

    def _clock(self, clocks: Clocks, scope: npt.NDArray[Any], count: int) -> None:
        """A module has the kernels that run wholly inside of it, and beside these the ones that it shares."""
        parents: list[int] = self.tree.parent.tolist()
        levels: list[int] = self.tree.level.tolist()
        own, shared = np.zeros(count), np.zeros(count)
        kernels = clocks.kernels
        for kernel, seconds in enumerate(clocks.gpu.tolist()):
            places = set(scope[kernels.members(kernel)].tolist())
            partly: set[int] = set()
            while len(places) > 1:  # up to the module that has all of it
                deepest = max(places, key=levels.__getitem__)
                places.remove(deepest)
                partly.add(deepest)
                places.add(parents[deepest])
            for place in places:
                own[place] += seconds
            shared[list(partly)] += seconds
        cpu = np.bincount(scope, np.nan_to_num(clocks.cpu), minlength=count).astype(np.float64)
        found = self.tree.up(np.bincount(scope[~np.isnan(clocks.cpu)], minlength=count))
        self._own["gpu_seconds"], self._inside["gpu_seconds"] = own, self.tree.up_seconds(own)
        self._inside["shared_seconds"] = shared
        self._inside["cpu_seconds"] = np.where(found > 0, self.tree.up_seconds(cpu), np.nan)

    def _mark(self, stats: GraphStats) -> None:
        """Count the gaps among what is missing from the figures."""
        for mark, what in gaps.MARKS.items() if stats.gaps else ():
            if mark == "params_unknown" and not stats.parameters.at_least:
                continue  # all are known, whoever reads them
            own, inside = gaps.by_scope(stats.gaps, self.tree, what)
            self._own[mark], self._inside[mark] = self._known(mark, own=True) + own, self._known(mark) + inside

    def _known(self, column: str, *, own: bool = False) -> npt.NDArray[Any]:
        found = self.figures(column, own=own)
        assert found is not None
        return found

    def label(self, scope: int) -> str:
        return scope_label(self._scopes[scope]) if scope else ""

    def cls(self, scope: int) -> str:
        return self._scopes[scope].cls

    def figures(self, column: str, *, own: bool = False) -> npt.NDArray[Any] | None:
        """A column of figures by scope, NaN where it is not known; None: it has no such figures."""
        sums, more = (self._own_sums, self._own) if own else (self._sums, self._inside)
        if column in more:
            return more[column]
        if column in _OF_SUMS:
            return _OF_SUMS[column](sums)
        return None

    def row(self, scopes: Sequence[int] | Ints) -> Row:
        """Of one scope, or of several together; names are those of the first."""
        first = scopes[0]
        row: Row = {"name": self.label(first), "class": self.cls(first), "scope": first, "times": 1}
        row |= self._figures(scopes, self._sums, self._inside)
        row["own"] = self._figures(scopes, self._own_sums, self._own)
        return row

    def each(self, scopes: Sequence[int]) -> list[Row]:
        """`row` of each of these alone, whole columns at a time: a table may have a million."""
        whole = self._columns(scopes, self._sums, self._inside)
        own = self._columns(scopes, self._own_sums, self._own)
        return [
            {"name": self.label(scope), "class": self.cls(scope), "scope": scope, "times": 1, **row, "own": of_its_own}
            for scope, row, of_its_own in zip(scopes, whole, own, strict=True)
        ]

    def _columns(self, scopes: Sequence[int], sums: Sums, more: Mapping[str, npt.NDArray[Any]]) -> Iterator[Row]:
        summed = dict(zip(rollup.COLUMNS, sums.rows(scopes), strict=True))
        macs, other, read, written = (summed[name] for name in rollup.FIGURES)
        flops = [2 * count for count in macs]
        traffic = [taken + given for taken, given in zip(read, written, strict=True)]
        work = zip(flops, other, traffic, strict=True)
        intensity = [(count + rest) / moved if moved else None for count, rest, moved in work]
        found: dict[str, Sequence[Any]] = {
            "ops": summed["nodes"],
            "macs": macs,
            "flops": flops,
            "other": other,
            "read": read,
            "written": written,
            "bytes": traffic,
            "intensity": intensity,
            **{name: summed[name] for name in rollup.COLUMNS[1 + len(rollup.FIGURES) :]},
        }
        for name, column in more.items():
            figures: list[Any] = column[scopes].tolist()
            is_whole = column.dtype.kind in "iub"
            found[name] = figures if is_whole else [None if f != f else f for f in figures]  # NaN
        names = tuple(found)
        return (dict(zip(names, row, strict=True)) for row in zip(*found.values(), strict=True))

    def _figures(self, scopes: Sequence[int] | Ints, sums: Sums, more: Mapping[str, npt.NDArray[Any]]) -> Row:
        if len(scopes) == 1:
            (scope,) = scopes
            found = _figures(sums.row(scope))
            for name, column in more.items():
                figure = column[scope].item()
                found[name] = None if figure != figure else figure  # NaN
            return found
        found = _figures({name: int(getattr(sums, name)[scopes].sum()) for name in rollup.COLUMNS})
        found["intensity"] = _figures(sums.row(scopes[0]))["intensity"]  # a ratio is not added
        for name, column in more.items():
            figures = column[scopes]
            together = {"mean": np.nanmean, "max": np.nanmax}.get(name.rpartition(":")[2], np.nansum)
            found[name] = None if figures[0] != figures[0] else together(figures).item()
        return found


_OF_SUMS: dict[str, Callable[[Sums], npt.NDArray[Any]]] = {
    "ops": lambda sums: sums.nodes,
    "macs": lambda sums: sums.macs,
    "flops": lambda sums: 2 * sums.macs,
    "other": lambda sums: sums.other,
    "read": lambda sums: sums.read,
    "written": lambda sums: sums.written,
    "bytes": lambda sums: sums.read + sums.written,
    "intensity": lambda sums: _intensity(sums),
    "unknown": lambda sums: sums.unknown,
    "bytes_unknown": lambda sums: sums.bytes_unknown,
    "causal": lambda sums: sums.causal,
    "wire": lambda sums: sums.wire,
}


def _intensity(sums: Sums) -> npt.NDArray[np.float64]:
    moved = (sums.read + sums.written).astype(np.float64)
    moved[moved == 0] = np.nan
    return (2 * sums.macs + sums.other) / moved


def by_module(stats: GraphStats, times: Roofline | None) -> tuple[ModuleRows, Row]:
    """The figures of all scopes; `tree_rows` picks and folds them."""
    return ModuleRows(stats, times), _total(stats, times)


def _rolled(
    name: str, figures: OwnFigures, node_scope: npt.NDArray[Any], parent: Sequence[int]
) -> dict[str, npt.NDArray[np.float64]]:
    """The user's figures of modules: what a table says of a module itself counts, else what is inside of it."""
    numbers, known = figures.by_node
    count = len(parent)
    scope, own = node_scope[known], numbers[known]
    total: list[float] = np.bincount(scope, own, minlength=count).astype(np.float64).tolist()
    found: list[int] = np.bincount(scope, minlength=count).tolist()
    greatest = np.full(count, -np.inf)
    np.maximum.at(greatest, scope, own)
    most: list[float] = greatest.tolist()
    said, is_said = figures.by_scope
    for at in range(count - 1, -1, -1):  # parents come first
        if is_said[at]:
            total[at] = most[at] = float(said[at])
            found[at] = 1
        if at and found[at]:
            around = parent[at]
            total[around] += total[at]
            found[around] += found[at]
            most[around] = max(most[around], most[at])
    is_known = np.array(found) > 0
    sums, counts, mosts = np.array(total), np.maximum(found, 1), np.array(most)
    return {
        name: np.where(is_known, sums, np.nan),
        f"{name}:mean": np.where(is_known, sums / counts, np.nan),
        f"{name}:max": np.where(is_known, mosts, np.nan),
    }
