"""Costs summed: by module with all that is inside it, by op, by phase, by kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.ir import PHASES, Graph

from .operators import CostTable, sum_by
from .sizes import NOT_KNOWN, Ints, Mask, value_bytes

FIGURES = ("macs", "other", "read", "written")


@dataclass(frozen=True, eq=False)
class Sums:
    """Figures by row: nodes, MACs, other FLOPs, bytes read and written, and of how many nodes the cost is not known;
    MACs with causal attention, and of how many nodes the mask is not known."""

    nodes: Ints
    macs: Ints
    other: Ints
    read: Ints
    written: Ints
    unknown: Ints
    bytes_unknown: Ints
    causal: Ints
    causal_unknown: Ints

    def row(self, index: int) -> dict[str, int]:
        return {name: int(getattr(self, name)[index]) for name in COLUMNS}


COLUMNS = ("nodes", *FIGURES, "unknown", "bytes_unknown", "causal", "causal_unknown")


def sums(table: CostTable, row: npt.NDArray[Any], count: int, nodes: npt.NDArray[Any] | None = None) -> Sums:
    """`row[i]` is where node `nodes[i]` (or i) goes."""

    def taken(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return column if nodes is None else column[nodes]

    return Sums(
        nodes=np.bincount(row, minlength=count),
        macs=sum_by(row, taken(table.macs), count),
        other=sum_by(row, taken(table.other), count),
        read=sum_by(row, taken(table.read), count),
        written=sum_by(row, taken(table.written), count),
        unknown=np.bincount(row[taken(table.lower)], minlength=count),
        bytes_unknown=np.bincount(row[~taken(table.bytes_known)], minlength=count),
        causal=sum_by(row, taken(table.causal), count),
        causal_unknown=np.bincount(row[~taken(table.causal_known)], minlength=count),
    )


class Tree:
    """The scopes of a graph that have nodes, as a tree; `also` those that should have some."""

    def __init__(self, graph: Graph, also: Iterable[int] = ()) -> None:
        self.graph = graph
        count = len(graph.pools.scopes)
        self.parent: Ints = np.fromiter((scope.parent for scope in graph.pools.scopes), np.int64, count)
        own = np.bincount(graph.node_scope, minlength=count)
        own[[scope for scope in also if 0 <= scope < count]] += 1
        self.has_nodes: Mask = self.up(own) > 0

    @cached_property
    def level(self) -> Ints:
        level = np.zeros(len(self.parent), dtype=np.int64)
        for scope, parent in enumerate(self.parent[1:].tolist(), 1):  # parents come first
            level[scope] = level[parent] + 1
        return level

    def up(self, own: Ints) -> Ints:
        """Every scope with all that is inside it."""
        inside = own.astype(np.int64, copy=True)
        order = np.argsort(self.level, kind="stable")
        ends = np.searchsorted(self.level[order], np.arange(int(self.level.max(initial=0)) + 2))
        for level in range(len(ends) - 2, 0, -1):  # the deepest first; the root has no parent
            scopes = order[ends[level] : ends[level + 1]]
            np.add.at(inside, self.parent[scopes], inside[scopes])
        return inside

    @cached_property
    def first_node(self) -> Ints:
        """The first node that runs in each scope or inside it."""
        graph = self.graph
        first = np.full(len(self.parent), graph.n_nodes, dtype=np.int64)
        first[graph.node_scope[::-1]] = np.arange(graph.n_nodes - 1, -1, -1)
        for scope in range(len(first) - 1, 0, -1):
            parent = self.parent[scope]
            if first[scope] < first[parent]:
                first[parent] = first[scope]
        return first

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """By scope, in the order in which they first run."""
        found: dict[int, list[int]] = {}
        used = np.flatnonzero(self.has_nodes)
        for scope in used[np.argsort(self.first_node[used], kind="stable")].tolist():
            if scope:
                found.setdefault(int(self.parent[scope]), []).append(scope)
        return found

    @cached_property
    def span(self) -> tuple[Ints, Ints]:
        """Numbers for the scopes such that those inside scope s are `begin[s]` up to `end[s]`."""
        begin = np.zeros(len(self.parent), dtype=np.int64)
        end = np.zeros(len(self.parent), dtype=np.int64)
        todo: list[tuple[int, bool]] = [(0, False)]
        number = 0
        while todo:
            scope, is_done = todo.pop()
            if is_done:
                end[scope] = number
                continue
            begin[scope] = number
            number += 1
            todo.append((scope, True))
            todo.extend((child, False) for child in reversed(self.children.get(scope, [])))
        return begin, end


@dataclass(frozen=True, eq=False)
class ByScope:
    tree: Tree
    own: Sums
    inside: Sums


def by_scope(graph: Graph, table: CostTable, also: Iterable[int] = ()) -> ByScope:
    """What runs in each scope itself, and with all that is inside it."""
    tree = Tree(graph, also)
    own = sums(table, graph.node_scope, len(graph.pools.scopes))
    return ByScope(tree, own, Sums(*(tree.up(getattr(own, name)) for name in COLUMNS)))


def by_phase(graph: Graph, table: CostTable) -> dict[str, dict[str, int]]:
    found = sums(table, graph.node_phase, len(PHASES))
    return {phase: found.row(i) for i, phase in enumerate(PHASES) if found.nodes[i]}


def by_kernel(graph: Graph, table: CostTable) -> Sums | None:
    """One row for each kernel that ran. A kernel reads from memory what others made, once, and writes what others
    read: what it makes for itself never gets there."""
    kernels = graph.groups.get("kernel")
    if kernels is None:
        return None
    count = len(kernels)
    group = np.repeat(np.arange(count, dtype=np.int64), np.diff(kernels.start))
    found = sums(table, group, count, kernels.member)
    size = np.maximum(value_bytes(graph), 0)
    unsized = value_bytes(graph) == NOT_KNOWN
    size[table.inside] = 0

    # (kernel, value) for all that its members read or make
    uses = np.diff(graph.use_start)[kernels.member]
    row = np.repeat(np.arange(len(group)), uses)
    use = (
        np.repeat(graph.use_start[kernels.member], uses) + np.arange(len(row)) - np.repeat(np.cumsum(uses) - uses, uses)
    )
    value = graph.use_value[use]
    read = _pairs(group[row][value >= 0], value[value >= 0], graph.n_values)
    start, item = graph.node_outputs
    outputs = np.diff(start)[kernels.member]
    row = np.repeat(np.arange(len(group)), outputs)
    made = _pairs(
        group[row],
        item[
            np.repeat(start[kernels.member], outputs)
            + np.arange(len(row))
            - np.repeat(np.cumsum(outputs) - outputs, outputs)
        ],
        graph.n_values,
    )
    from_others = np.setdiff1d(read, made, assume_unique=True)
    views = np.zeros(graph.n_values, dtype=bool)
    producer = graph.value_producer
    views[producer >= 0] = table.view[producer[producer >= 0]]
    size[views] = 0
    unknown = np.zeros(count, dtype=np.int64)
    for pairs in (from_others, made):
        np.add.at(unknown, pairs[unsized[pairs % max(graph.n_values, 1)]] // max(graph.n_values, 1), 1)
    return Sums(
        found.nodes,
        found.macs,
        found.other,
        _sized(from_others, size, graph.n_values, count),
        _sized(made, size, graph.n_values, count),
        found.unknown,
        unknown,
        found.causal,
        found.causal_unknown,
    )


def _pairs(group: Ints, value: npt.NDArray[Any], values: int) -> Ints:
    return np.unique(group * values + value)


def _sized(pairs: Ints, size: Ints, values: int, count: int) -> Ints:
    return sum_by(pairs // max(values, 1), size[pairs % max(values, 1)], count)
