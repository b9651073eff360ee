"""The table by module as a tree: as deep as stays readable, with neighbours that do not differ folded into one row."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opscope.ir import PHASE_ID, ROLE_ID, Graph

from .columns import COLUMNS, Row, order
from .gaps import MARKS
from .rollup import Tree
from .sizes import element_counts
from .stats import GraphStats

FITS = 40  # rows that a tree is unfolded to by itself


@dataclass
class _Branch:
    row: Row
    children: list[_Branch]


def tree_rows(
    stats: GraphStats, scopes: list[Row], columns: list[str], depth: int | None, sort: str | None, fold: bool
) -> list[Row]:
    """`scopes` are the rows of `rows.by_module`, one for each scope."""
    graph, tree = stats.graph, stats.scopes.tree
    outputs = Outputs(graph, tree) if "output" in columns else None

    def branch(scope: int, level: int, most: int) -> _Branch:
        row = dict(scopes[scope])
        row["path"] = graph.pools.scope_path(scope)
        row["output"] = outputs.of(scope) if outputs is not None else ""
        children = tree.children.get(scope, []) if level < most else []
        inner = [branch(child, level + 1, most) for child in children]
        return _Branch(row, _ordered(list(filter(is_shown, inner)), sort))

    figures = [name for name in columns if COLUMNS[name].kind not in ("text", "share", "bar")]

    def is_shown(branch: _Branch) -> bool:
        """A module without any figure says nothing."""
        row = branch.row
        return bool(any(row.get(mark) for mark in MARKS) or any(row.get(name) for name in figures) or not figures)

    def at(most: int) -> list[Row]:
        tops = _ordered(list(filter(is_shown, (branch(scope, 1, most) for scope in tree.children.get(0, [])))), sort)
        if fold:
            tops = _folded(tops, columns)
        root: Row = scopes[0].get("own", {})
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
    return branches if sort is None else sorted(branches, key=lambda b: order(b.row.get(sort)))


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
        *(bool(row.get(mark)) for mark in MARKS),
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
