"""Costs as tables that people read: rows with figures, and which columns to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import Graph, scope_label
from opscope.ir.graph import PHASE_ID, PHASES, ROLE_ID
from opscope.ops import canonical
from opscope.ops.cost import ESTIMATED, EXACT, HOW, UNKNOWN, ZERO

from .cost import sum_by
from .devices import Device
from .memory import activations_by_node
from .rollup import Sums, Tree, by_kernel
from .roofline import Roofline, roofline
from .sizes import Mask, element_counts
from .stats import GraphStats

BY = ("module", "op", "kind", "node", "kernel", "phase")
FITS = 40  # rows that a tree is unfolded to by itself

Row = dict[str, Any]


class Column(NamedTuple):
    """`kind` says how a figure is written: text, count, short (1.23 G), bytes, share, bar, ratio, seconds."""

    title: str
    kind: str


COLUMNS = {
    "name": Column("", "text"),
    "class": Column("class", "text"),
    "output": Column("output", "text"),
    "ops": Column("ops", "count"),
    "params": Column("params", "short"),
    "param_bytes": Column("param bytes", "bytes"),
    "macs": Column("MACs", "short"),
    "causal": Column("causal MACs", "short"),
    "flops": Column("FLOPs", "short"),
    "forward": Column("forward MACs", "short"),
    "backward": Column("backward MACs", "short"),
    "other": Column("other FLOPs", "short"),
    "activations": Column("activations", "short"),
    "activation_bytes": Column("activations", "bytes"),
    "read": Column("read", "bytes"),
    "written": Column("written", "bytes"),
    "bytes": Column("traffic", "bytes"),
    "intensity": Column("FLOPs/byte", "ratio"),
    "self": Column("self", "share"),
    "share": Column("share", "share"),
    "bar": Column("", "bar"),
    "op": Column("op", "text"),
    "kind": Column("kind", "text"),
    "module": Column("module", "text"),
    "phase": Column("phase", "text"),
    "how": Column("how", "text"),
    "runs": Column("runs", "count"),
    "node": Column("#", "count"),
    "seconds": Column("time ≥", "seconds"),
    "bound": Column("bound by", "text"),
}

_COMMON = ("macs", "causal", "flops", "other", "read", "written", "bytes", "intensity", "share", "bar")
_TIMED = ("seconds",)
AVAILABLE = {
    "module": (
        "class", "output", "ops", "params", "param_bytes", "forward", "backward", "activations", "activation_bytes",
        "self", *_COMMON, *_TIMED,
    ),
    "op": ("ops", "kind", "how", *_COMMON, *_TIMED),
    "kind": ("ops", *_COMMON, *_TIMED),
    "node": ("node", "op", "kind", "module", "phase", "output", "activation_bytes", "how", *_COMMON, *_TIMED, "bound"),
    "kernel": ("runs", "ops", *_COMMON, *_TIMED, "bound"),
    "phase": ("ops", *_COMMON, *_TIMED),
}  # fmt: skip
DEFAULT = {
    "module": ("output", "params", "macs", "activation_bytes", "self", "share", "bar"),
    "op": ("ops", "macs", "other", "bytes", "how", "share", "bar"),
    "kind": ("ops", "macs", "other", "bytes", "share", "bar"),
    "node": ("node", "module", "phase", "output", "macs", "other", "read", "written", "how", "share"),
    "kernel": ("runs", "ops", "macs", "other", "read", "written", "intensity", "share", "bar"),
    "phase": ("ops", "macs", "other", "bytes", "share", "bar"),
}
_NAMES = {
    "module": "module",
    "op": "op",
    "kind": "kind of operator",
    "node": "op",
    "kernel": "kernel",
    "phase": "phase",
}


@dataclass
class Report:
    """A table: rows with every figure, the columns to show, and the sums."""

    by: str
    columns: list[str]
    rows: list[Row]
    total: Row
    share_of: str  # what the shares are shares of
    left_out: int = 0  # rows beyond the first `top`
    notes: list[str] = field(default_factory=list[str])

    def title(self, column: str) -> str:
        return _NAMES[self.by] if column == "name" else COLUMNS[column].title


def report(
    stats: GraphStats,
    by: str = "module",
    *,
    columns: Sequence[str] | None = None,
    depth: int | None = None,
    sort: str | None = None,
    top: int | None = None,
    device: Device | None = None,
    fold: bool = True,
) -> Report:
    """The table of one graph. `depth` counts modules from the outermost; without it, as deep as stays readable."""
    if by not in BY:
        raise OpscopeError(f"there is no table by {by!r} (there are: {', '.join(BY)})")
    if depth is not None and depth < 1:
        raise OpscopeError(f"a depth of {depth} shows nothing: 1 is the outermost modules")
    if top is not None and top < 1:
        raise OpscopeError(f"the first {top} rows are none: 1 or more")
    shown = list(columns) if columns is not None else _default(stats, by, device)
    for name in [*shown, *([sort] if sort is not None else [])]:
        if name not in AVAILABLE[by] and name != "name":
            raise OpscopeError(f"the table by {by} has no column {name!r} (it has: {', '.join(AVAILABLE[by])})")
    if any(name in ("seconds", "bound") for name in [*shown, sort]) and device is None:
        raise OpscopeError("times need a device to run on: --device h100, for example")
    times = roofline(stats.graph, stats.costs, device) if device is not None else None
    share_of = _share_of(stats, sort, times)
    rows, total = _MAKE[by](stats, times)
    _shares(rows, total, share_of)
    found = Report(by, [name for name in shown if name != "name"], rows, total, share_of)
    if by == "module":
        found.rows = _tree_rows(stats, found, depth, sort, fold)
        _shares(found.rows, total, share_of)
    elif sort is not None or by not in ("phase",):
        keys = dict.fromkeys((sort or share_of, "macs", "other", "bytes"))
        found.rows.sort(key=lambda row: [_order(row.get(key)) for key in keys])
    if top is not None:
        found.left_out = max(len(found.rows) - top, 0)
        found.rows = found.rows[:top]
    return found


def _default(stats: GraphStats, by: str, device: Device | None) -> list[str]:
    columns = list(DEFAULT[by])
    if by == "module" and not stats.total.params:
        columns.remove("params")
    total = stats.total
    if "macs" in columns and (total.causal_macs != total.macs or total.causal_at_most):
        columns.insert(columns.index("macs") + 1, "causal")  # only where it says something
    if device is not None:
        columns[-2:-2] = ["seconds", "bound"] if "bound" in AVAILABLE[by] else ["seconds"]
    return columns


def _order(figure: Any) -> Any:
    """The largest first; text by the alphabet; nothing last."""
    if isinstance(figure, str):
        return (0, figure)
    return (1, 0) if figure is None else (0, -figure)


def _share_of(stats: GraphStats, sort: str | None, times: Roofline | None) -> str:
    if (
        sort is not None
        and COLUMNS[sort].kind in ("count", "short", "bytes", "seconds")
        and sort not in ("node", "runs")
    ):
        return sort
    if times is not None:
        return "seconds"
    total = stats.costs.total
    return "macs" if total.macs else "other" if total.other else "bytes"


def _shares(rows: Iterable[Row], total: Row, of: str) -> None:
    whole = total.get(of) or 0
    total["share"] = 1.0 if whole else None
    for row in rows:
        row["share"] = (row.get(of) or 0) / whole if whole else None
        own = row.get("own", row).get(of)
        row["self"] = own / whole if whole and own is not None else None


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
    return {
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
    }


# -- flat tables ---------------------------------------------------------------------------------------


def _by_op(stats: GraphStats, times: Roofline | None, kinds: bool = False) -> tuple[list[Row], Row]:
    graph, costs = stats.graph, stats.costs
    used, op = np.unique(graph.node_op, return_inverse=True)
    names = [graph.pools.strings[int(i)] for i in used]
    labels = [canonical(stats.framework, name) for name in names]
    if kinds:
        place = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        op = np.array([place[label] for label in labels], dtype=np.int64)[op.reshape(-1)]
        names = list(place)
    from .rollup import sums

    op = op.reshape(-1)
    found = sums(costs, op, len(names))
    seconds = np.bincount(op, times.seconds, minlength=len(names)) if times is not None else None
    worst = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(worst, op, _CERTAIN[costs.how])
    rows: list[Row] = []
    for i, name in enumerate(names):
        row: Row = {"name": name, **_figures(found.row(i)), "how": _LESS_CERTAIN[worst[i]]}
        if not kinds:
            row["kind"] = labels[i]
        row["seconds"] = float(seconds[i]) if seconds is not None else None
        rows.append(row)
    return rows, _total(stats, times)


_LESS_CERTAIN = (ZERO, EXACT, ESTIMATED, UNKNOWN)  # what several nodes are together: the last that one of them is
_CERTAIN = np.array([_LESS_CERTAIN.index(how) for how in HOW])


def _by_kind(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    return _by_op(stats, times, kinds=True)


def _by_phase(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    graph = stats.graph
    seconds = np.bincount(graph.node_phase, times.seconds, minlength=len(PHASES)) if times is not None else None
    rows = [
        {
            "name": phase,
            **_figures(sums),
            "seconds": float(seconds[PHASE_ID[phase]]) if seconds is not None else None,
        }
        for phase, sums in stats.phases.items()
    ]
    return rows, _total(stats, times)


def _by_node(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    graph, costs = stats.graph, stats.costs
    _, activation_bytes = activations_by_node(graph, stats.memory)
    kinds = {op: canonical(stats.framework, graph.pools.strings[op]) for op in np.unique(graph.node_op).tolist()}
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
            "kind": kinds[int(graph.node_op[i])],
            "module": node.path,
            "phase": node.phase,
            "output": ", ".join(str(value.type) for value in node.outputs),
            **_figures(sums),
            "activation_bytes": int(activation_bytes[i]),
            "how": HOW[costs.how[i]],
        }
        if times is not None:
            row["seconds"] = float(times.seconds[i])
            row["bound"] = "memory" if times.is_memory_bound[i] else "compute"
        rows.append(row)
    return rows, _total(stats, times)


def _by_kernel(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
    """Kernels of one name together. An operator may run in several kernels, so these sums are those of the kernels."""
    graph = stats.graph
    kernels = graph.groups.get("kernel")
    found = by_kernel(graph, stats.costs)
    if kernels is None or found is None or not len(kernels):
        raise OpscopeError("no kernels are known: this framework, or this way of capturing, does not tell what ran")
    used, name = np.unique(kernels.name, return_inverse=True)
    name = name.reshape(-1)
    merged = Sums(*(sum_by(name, getattr(found, column), len(used)) for column in _SUMS))
    runs = np.bincount(name, minlength=len(used))
    rows: list[Row] = []
    for i, text in enumerate(used.tolist()):
        row: Row = {"name": graph.pools.strings[text] or "(no name)", **_figures(merged.row(i)), "runs": int(runs[i])}
        if times is not None:
            compute = row["flops"] / times.device.peak("float32") + row["other"] / times.device.other
            moving = row["bytes"] / times.device.bandwidth
            row["seconds"], row["bound"] = max(compute, moving), "memory" if moving >= compute else "compute"
        rows.append(row)
    whole = {column: int(getattr(merged, column).sum()) for column in _SUMS}
    total: Row = {"name": "total", **_figures(whole), "runs": len(kernels)}
    if times is not None:
        total["seconds"] = sum(row["seconds"] for row in rows)
    return rows, total


_SUMS = ("nodes", "macs", "other", "read", "written", "unknown", "bytes_unknown", "causal", "causal_unknown")


# -- the tree ------------------------------------------------------------------------------------------


def _by_module(stats: GraphStats, times: Roofline | None) -> tuple[list[Row], Row]:
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
    }
    for parameter in stats.parameters.each:
        own["params"][parameter.scope] += parameter.elements or 0
        own["param_bytes"][parameter.scope] += parameter.bytes or 0
    for phase in ("forward", "backward"):
        nodes = np.flatnonzero(graph.node_phase == PHASE_ID[phase])
        own[phase] = sum_by(graph.node_scope[nodes], costs.macs[nodes], count)
    inside = {name: tree.up(column) for name, column in own.items()}
    if times is not None:
        own["seconds"] = np.bincount(graph.node_scope, times.seconds, minlength=count)
        inside["seconds"] = _up(tree, own["seconds"])
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
        rows.append(row)
    return rows, _total(stats, times)


def _up(tree: Tree, own: Any) -> Any:
    inside = own.copy()
    for scope in range(len(own) - 1, 0, -1):
        inside[tree.parent[scope]] += inside[scope]
    return inside


@dataclass
class _Branch:
    row: Row
    children: list[_Branch]


def _tree_rows(stats: GraphStats, found: Report, depth: int | None, sort: str | None, fold: bool) -> list[Row]:
    graph, tree = stats.graph, stats.scopes.tree
    outputs = Outputs(graph, tree) if "output" in found.columns else None

    def branch(scope: int, level: int, most: int) -> _Branch:
        row = dict(found.rows[scope])
        row["path"] = graph.pools.scope_path(scope)
        row["output"] = outputs.of(scope) if outputs is not None else ""
        children = tree.children.get(scope, []) if level < most else []
        inner = [branch(child, level + 1, most) for child in children]
        return _Branch(row, _ordered(list(filter(is_shown, inner)), sort))

    figures = [name for name in found.columns if COLUMNS[name].kind not in ("text", "share", "bar")]

    def is_shown(branch: _Branch) -> bool:
        """A module without any figure says nothing."""
        return bool(branch.row["unknown"] or any(branch.row.get(name) for name in figures) or not figures)

    def at(most: int) -> list[Row]:
        tops = _ordered(list(filter(is_shown, (branch(scope, 1, most) for scope in tree.children.get(0, [])))), sort)
        if fold:
            tops = _folded(tops, found.columns)
        root: Row = found.rows[0].get("own", {})
        if root:
            outside: Row = {"name": "(outside of modules)", "class": "", "path": "", "times": 1, "output": "", **root}
            tops += filter(is_shown, [_Branch({**outside, "own": root}, [])])
        return list(_flat(tops, 0))

    if depth is not None:
        return at(depth)
    rows = at(1)
    for most in range(2, int(tree.level.max(initial=1)) + 1):
        deeper = at(most)
        if len(deeper) > FITS:
            break
        rows = deeper
    return rows


def _ordered(branches: list[_Branch], sort: str | None) -> list[_Branch]:
    return branches if sort is None else sorted(branches, key=lambda b: _order(b.row.get(sort)))


def _flat(branches: list[_Branch], level: int) -> Iterable[Row]:
    for branch in branches:
        yield {**branch.row, "depth": level}
        yield from _flat(branch.children, level + 1)


def _folded(branches: list[_Branch], columns: list[str]) -> list[_Branch]:
    """Neighbours of one class that do not differ in anything shown become one, with the figures of all."""
    folded: list[_Branch] = []
    keys: list[Any] = []
    for branch in branches:
        branch = _Branch(branch.row, _folded(branch.children, columns))
        key = _key(branch, columns, is_top=True)
        if folded and keys[-1] == key and branch.row["class"]:
            folded[-1] = _merged(folded[-1], branch)
        else:
            folded.append(branch)
            keys.append(key)
    return folded


def _key(branch: _Branch, columns: list[str], is_top: bool) -> Any:
    row = branch.row
    figures = [row.get(name) for name in columns if COLUMNS[name].kind not in ("share", "bar")]
    shown = (
        row["class"],
        row["times"],
        row.get("output"),
        row["macs"],
        row["unknown"],
        *figures,
        *(row["own"].get(n) for n in columns),
    )
    # conv1 and conv2 are alike, k_proj and v_proj only happen to be as large
    label = re.sub(r"\d+", "#", row["name"].partition(" … ")[0]) if is_top else row["name"]
    return (label, shown, tuple(_key(child, columns, False) for child in branch.children))


_NOT_ADDED = ("scope", "times", "depth", "intensity")


def _merged(a: _Branch, b: _Branch) -> _Branch:
    row = _added(a.row, b.row)
    first = a.row["name"].partition(" … ")[0]
    row |= {
        "name": f"{first} … {b.row['name']}",
        "times": a.row["times"] + 1,
        "own": _added(a.row["own"], b.row["own"]),
    }
    children: list[_Branch] = []
    for x, y in zip(a.children, b.children, strict=True):
        child = _merged_child(x, y)
        children.append(child)
    return _Branch(row, children)


def _merged_child(a: _Branch, b: _Branch) -> _Branch:
    row = _added(a.row, b.row) | {"own": _added(a.row["own"], b.row["own"])}
    return _Branch(row, [_merged_child(x, y) for x, y in zip(a.children, b.children, strict=True)])


def _added(a: Row, b: Row) -> Row:
    return {
        name: figure + (b.get(name) or 0)
        if isinstance(figure, int | float) and not isinstance(figure, bool) and name not in _NOT_ADDED
        else figure
        for name, figure in a.items()
    }


class Outputs:
    """What modules hand out: of the values that are made inside and read outside, the largest; of these the last."""

    def __init__(self, graph: Graph, tree: Tree) -> None:
        self._graph = graph
        self._span = tree.span
        begin, _ = self._span
        late = np.isin(graph.node_phase, [PHASE_ID[phase] for phase in ("init", "backward", "recompute", "optimizer")])
        state = np.isin(graph.value_role, [ROLE_ID[role] for role in ("parameter", "buffer", "state")])
        made = np.flatnonzero((graph.value_producer >= 0) & ~state)
        made = made[~late[graph.value_producer[made]]]
        if not len(made):  # only gradients were captured: then these
            made, late = np.flatnonzero(graph.value_producer >= 0), np.zeros(graph.n_nodes, dtype=bool)
        count = len(tree.parent)
        first = np.full(graph.n_values, count, dtype=np.int64)  # the range of scopes that read it
        last = np.full(graph.n_values, -1, dtype=np.int64)
        read = np.flatnonzero(graph.use_value >= 0)
        read = read[~late[graph.use_node[read]]]
        reader = begin[graph.node_scope[graph.use_node[read]]]
        np.minimum.at(first, graph.use_value[read], reader)
        np.maximum.at(last, graph.use_value[read], reader)
        first[graph.outputs] = -1
        place = begin[graph.node_scope[graph.value_producer[made]]]
        order = np.argsort(place, kind="stable")
        self._value, self._place = made[order], place[order]
        self._first, self._last = first[self._value], last[self._value]
        self._elements = element_counts(graph)[self._value]
        self._producer = graph.value_producer[self._value]

    def of(self, scope: int) -> str:
        begin, end = int(self._span[0][scope]), int(self._span[1][scope])
        low, high = np.searchsorted(self._place, [begin, end]).tolist()
        if low == high:
            return ""
        leaves = (self._first[low:high] < begin) | (self._last[low:high] >= end)
        rows = low + np.flatnonzero(leaves)
        if not len(rows):  # nobody reads it: the last thing that was made
            rows = low + np.flatnonzero(self._producer[low:high] == self._producer[low:high].max())
        best = rows[np.lexsort((self._producer[rows], self._elements[rows]))[-1]]
        type_ = self._graph.pools.types[int(self._graph.value_type[self._value[best]])]
        return "" if type_.shape is None else "×".join("?" if d is None else str(d) for d in type_.shape) or "number"


_MAKE: dict[str, Callable[[GraphStats, Roofline | None], tuple[list[Row], Row]]] = {
    "module": _by_module,
    "op": _by_op,
    "kind": _by_kind,
    "node": _by_node,
    "kernel": _by_kernel,
    "phase": _by_phase,
}
