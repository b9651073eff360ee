"""The rows of tables of costs: by module, operator, kind, node, kernel and phase, each with the sums of all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from opscope.analysis.values import made_by
from opscope.errors import OpscopeError
from opscope.ir import PHASE_ID, PHASES, scope_label
from opscope.ir.enumerations import ESTIMATED, EXACT, HOW, UNKNOWN, ZERO

from . import gaps, rollup
from .columns import Row
from .memory import activations_by_node
from .operators import sum_by
from .rollup import Sums, Tree
from .roofline import Roofline
from .sizes import Ints, Mask
from .stats import GraphStats


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
        "params": total.params,
        "param_bytes": total.param_bytes,
        "activations": total.activations,
        "activation_bytes": total.activation_bytes,
        "seconds": times.total if times is not None else None,
        **_measured(stats, np.zeros(len(costs), dtype=np.int64), 1)[0],
        "memory_unknown": len(stats.memory.unknown_activations),
        "params_unknown": stats.parameters.unknown,
    }
    if not stats.parameters.at_least:
        marks.pop("params_unknown")
    return _marked(row, marks)


def _marked(row: Row, marks: dict[str, int]) -> Row:
    """A row that says of which figures something is missing."""
    return row | {mark: row.get(mark, 0) + count for mark, count in marks.items()}


def _measured(stats: GraphStats, index: Any, count: int) -> list[Row]:
    """Measured seconds added up by `index`; `time_unknown` are the nodes among them that were not measured."""
    if stats.times is None:
        return [{}] * count
    seconds, known, _ = stats.times
    sums = np.bincount(index, seconds, minlength=count)
    found = np.bincount(index, known, minlength=count)
    missing = np.bincount(index, minlength=count) - found
    return [{"time": float(sums[i]) if found[i] else None, "time_unknown": int(missing[i])} for i in range(count)]


def _measured_inside(stats: GraphStats, tree: Tree) -> list[Row]:
    """The same by scope, with all that is inside."""
    count = len(tree.parent)
    if stats.times is None:
        return [{}] * count
    seconds, known, _ = stats.times
    scope = stats.graph.node_scope
    columns = [np.bincount(scope, seconds, minlength=count)]
    columns += [np.bincount(scope, mask, minlength=count) for mask in (known, ~known)]
    sums, found, missing = (_up(tree, column) for column in columns)
    return [{"time": float(sums[i]) if found[i] else None, "time_unknown": int(missing[i])} for i in range(count)]


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
    measured = _measured(stats, op, len(names))
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
    measured = _measured(stats, graph.node_phase, len(PHASES))
    missing = {mark: gaps.by_phase(stats.gaps, what) for mark, what in gaps.MARKS.items()}
    rows: list[Row] = []
    for phase, sums in stats.phases.items():
        number = PHASE_ID[phase]
        row: Row = {"name": phase, **_figures(sums), **measured[number]}
        row["seconds"] = float(seconds[number]) if seconds is not None else None
        rows.append(_marked(row, {mark: int(found[number]) for mark, found in missing.items()}))
    return rows, _total(stats, times)


def by_node(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    graph, costs = stats.graph, stats.costs
    _, activation_bytes = activations_by_node(graph, stats.memory)
    unsized = np.bincount(graph.value_producer[stats.memory.unknown_activations], minlength=graph.n_nodes)
    figures = made_by(graph, stats.figures)
    rows: list[Row] = []
    for node in graph.nodes:
        i = node.index
        sums = {name: int(getattr(costs, name)[i]) for name in ("macs", "other", "read", "written", "causal")}
        sums |= {"nodes": 1, "unknown": int(costs.lower[i]), "bytes_unknown": int(not costs.bytes_known[i])}
        sums["causal_unknown"] = int(not costs.causal_known[i])
        row: Row = {
            "name": node.op,
            "node": i,
            "op": node.op,
            "kind": stats.kinds.of(graph, i),
            "module": node.path,
            "phase": node.phase,
            "output": ", ".join(str(value.type) for value in node.outputs),
            **_figures(sums),
            "activation_bytes": int(activation_bytes[i]),
            "memory_unknown": int(unsized[i]),
            "how": HOW[costs.how[i]],
        }
        if stats.times is not None and stats.times.known[i]:
            row["time"] = float(stats.times.seconds[i])
        row |= {name: _plain(name, figure) for name, figure in figures.get(i, {}).items()}
        if times is not None:
            row["seconds"] = float(times.seconds[i])
            row["bound"] = "memory" if times.is_memory_bound[i] else "compute"
        rows.append(row)
    return rows, _total(stats, times)


def _plain(name: str, figure: float) -> float | int | str:
    """What JSON can hold: `nan` and `inf` as text, counts whole."""
    return str(figure) if not math.isfinite(figure) else int(figure) if name in ("nan", "inf") else figure


def by_kernel(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    """Kernels of one name together. An operator may run in several kernels, so these sums are those of the kernels."""
    graph = stats.graph
    kernels = graph.groups.get("kernel")
    found = rollup.by_kernel(graph, stats.costs)
    if kernels is None or found is None or not len(kernels):
        raise OpscopeError("no kernels are known: this framework, or this way of capturing, does not tell what ran")
    used, name = np.unique(kernels.name, return_inverse=True)
    name = name.reshape(-1)
    merged = Sums(*(sum_by(name, getattr(found, column), len(used)) for column in _SUMS))
    runs = np.bincount(name, minlength=len(used))
    measured = _measured_kernels(stats, name, len(used))
    rows: list[Row] = []
    for i, text in enumerate(used.tolist()):
        figures = _figures(merged.row(i))
        row: Row = {"name": graph.pools.strings[text] or "(no name)", **figures, "runs": int(runs[i]), **measured[i]}
        if times is not None:
            compute = row["flops"] / times.device.peak("float32") + row["other"] / times.device.other
            moving = row["bytes"] / times.device.bandwidth
            row["seconds"], row["bound"] = max(compute, moving), "memory" if moving >= compute else "compute"
        rows.append(row)
    whole = {column: int(getattr(merged, column).sum()) for column in _SUMS}
    total: Row = {"name": "total", **_figures(whole), "runs": len(kernels)}
    if stats.kernel_times is not None:
        total |= _measured_kernels(stats, np.zeros(len(kernels), dtype=np.int64), 1)[0]
    if times is not None:
        total["seconds"] = sum(row["seconds"] for row in rows)
    marks = {mark: sum(what in gap.touches for gap in stats.gaps) for mark, what in gaps.MARKS.items()}
    return rows, _marked(total, marks)


def _measured_kernels(stats: GraphStats, name: Any, count: int) -> list[Row]:
    if stats.kernel_times is None:
        return [{}] * count
    seconds, known = stats.kernel_times
    sums = np.bincount(name, seconds, minlength=count)
    found = np.bincount(name, known, minlength=count)
    missing = np.bincount(name, minlength=count) - found
    return [{"time": float(sums[i]) if found[i] else None, "time_unknown": int(missing[i])} for i in range(count)]


_SUMS = ("nodes", "macs", "other", "read", "written", "unknown", "bytes_unknown", "causal", "causal_unknown")


# -- the tree ------------------------------------------------------------------------------------------


def by_module(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    """Every scope, by its number; `_tree_rows` picks and folds them."""
    graph, costs = stats.graph, stats.costs
    scopes = stats.scopes
    tree, count = scopes.tree, len(graph.pools.scopes)
    elements, sizes = activations_by_node(graph, stats.memory)
    own: dict[str, Any] = {
        "activations": sum_by(graph.node_scope, elements, count),
        "activation_bytes": sum_by(graph.node_scope, sizes, count),
        "params": np.zeros(count, dtype=np.int64),
        "param_bytes": np.zeros(count, dtype=np.int64),
        "params_unknown": np.zeros(count, dtype=np.int64),
    }
    unsized = graph.value_producer[stats.memory.unknown_activations]
    own["memory_unknown"] = np.bincount(graph.node_scope[unsized], minlength=count)
    for parameter in stats.parameters.each:
        own["params_unknown"][parameter.scope] += parameter.elements is None
        own["params"][parameter.scope] += parameter.elements or 0
        own["param_bytes"][parameter.scope] += parameter.bytes or 0
    for phase in ("forward", "backward"):
        nodes = np.flatnonzero(graph.node_phase == PHASE_ID[phase])
        own[phase] = sum_by(graph.node_scope[nodes], costs.macs[nodes], count)
    inside = {name: tree.up(column) for name, column in own.items()}
    if times is not None:
        own["seconds"] = np.bincount(graph.node_scope, times.seconds, minlength=count)
        inside["seconds"] = _up(tree, own["seconds"])
    measured = _measured_inside(stats, tree)
    missing = {mark: gaps.by_scope(stats.gaps, tree, what) for mark, what in gaps.MARKS.items() if stats.gaps}
    if not stats.parameters.at_least:  # all are known, whoever reads them
        missing.pop("params_unknown", None)
    rows: list[Row] = []
    used: Mask = np.array(tree.has_nodes)
    used[np.flatnonzero(own["params"])] = True
    for scope in range(count):
        if not used[scope]:
            rows.append({})
            continue
        entry = graph.pools.scopes[scope]
        row: Row = {"name": scope_label(entry) if scope else "", "class": entry.cls, "scope": scope, "times": 1}
        for target, sums, more in ((row, scopes.inside, inside), (row.setdefault("own", {}), scopes.own, own)):
            target |= _figures(sums.row(scope))
            target |= {name: column[scope].item() for name, column in more.items()}
        row |= measured[scope]
        row = _marked(row, {mark: int(inside[scope]) for mark, (_, inside) in missing.items()})
        row["own"] = _marked(row["own"], {mark: int(own[scope]) for mark, (own, _) in missing.items()})
        rows.append(row)
    return rows, _total(stats, times)


def _up(tree: Tree, own: Any) -> Any:
    inside = own.copy()
    for scope in range(len(own) - 1, 0, -1):
        inside[tree.parent[scope]] += inside[scope]
    return inside
