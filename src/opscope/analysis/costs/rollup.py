"""Costs summed: by module with all that is inside it, by op, by phase, by kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    MACs with causal attention, and of how many nodes the mask is not known; bytes sent to other ranks, and of how many
    nodes that is not known."""

    nodes: Ints
    macs: Ints
    other: Ints
    read: Ints
    written: Ints
    unknown: Ints
    bytes_unknown: Ints
    causal: Ints
    causal_unknown: Ints
    wire: Ints
    wire_unknown: Ints

    def row(self, index: int) -> dict[str, int]:
        return dict(zip(COLUMNS, self._by_row[index].tolist(), strict=True))

    def rows(self, indices: Sequence[int]) -> list[list[int]]:
        """The figures of these rows, each of COLUMNS as a list."""
        return self._by_row[indices].T.tolist()

    @cached_property
    def _by_row(self) -> Ints:
        return np.stack([getattr(self, name) for name in COLUMNS], axis=1).astype(np.int64, copy=False)


COLUMNS = ("nodes", *FIGURES, "unknown", "bytes_unknown", "causal", "causal_unknown", "wire", "wire_unknown")


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
        wire=sum_by(row, taken(table.wire), count),
        wire_unknown=np.bincount(row[~taken(table.wire_known)], minlength=count),
    )


class Tree:
    """The scopes of a graph that have nodes, as a tree; `also` those that should have some. Nothing here walks up from
    every scope: trees may be as deep as they have scopes."""

    def __init__(self, graph: Graph, also: Iterable[int] = ()) -> None:
        self.graph = graph
        count = len(graph.pools.scopes)
        self.parent: Ints = np.fromiter((scope.parent for scope in graph.pools.scopes), np.int64, count)
        self.level: Ints = np.array(graph.pools.scope_chains.level, dtype=np.int64)
        own = np.bincount(graph.node_scope, minlength=count)
        np.add.at(own, [scope for scope in also if 0 <= scope < count], 1)
        self.has_nodes: Mask = self.up(own) > 0

    @cached_property
    def span(self) -> tuple[Ints, Ints]:
        """Numbers for the scopes such that those inside scope s are `begin[s]` up to `end[s]`, itself the first."""
        parents: list[int] = self.parent.tolist()
        size = [1] * len(parents)
        for scope in range(len(parents) - 1, 0, -1):  # parents come first
            size[parents[scope]] += size[scope]
        begin, free = [0] * len(parents), [1] * len(parents)
        for scope in range(1, len(parents)):
            parent = parents[scope]
            begin[scope] = free[parent]
            free[scope] = free[parent] + 1
            free[parent] += size[scope]
        found = np.array(begin, dtype=np.int64)
        return found, found + np.array(size, dtype=np.int64)

    def up(self, own: Ints) -> Ints:
        """Every scope with all that is inside it."""
        begin, end = self.span
        sums = np.zeros(len(own) + 1, dtype=np.int64)
        sums[begin + 1] = own
        np.cumsum(sums, out=sums)  # may wrap around, and so does the difference
        return sums[end] - sums[begin]

    def up_seconds(self, own: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The same for fractions, added one by one: differences of large sums would leave traces in empty modules."""
        parents: list[int] = self.parent.tolist()
        inside: list[float] = own.tolist()
        for scope in range(len(inside) - 1, 0, -1):
            inside[parents[scope]] += inside[scope]
        return np.array(inside, dtype=np.float64)

    @cached_property
    def first_node(self) -> Ints:
        """The first node that runs in each scope or inside it."""
        graph, parents = self.graph, self.parent.tolist()
        own = np.full(len(parents), graph.n_nodes, dtype=np.int64)
        own[graph.node_scope[::-1]] = np.arange(graph.n_nodes - 1, -1, -1)
        first: list[int] = own.tolist()
        for scope in range(len(first) - 1, 0, -1):
            parent = parents[scope]
            if first[scope] < first[parent]:
                first[parent] = first[scope]
        return np.array(first, dtype=np.int64)


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
        found.wire,
        found.wire_unknown,
    )


def _pairs(group: Ints, value: npt.NDArray[Any], values: int) -> Ints:
    return np.unique(group * values + value)


def _sized(pairs: Ints, size: Ints, values: int, count: int) -> Ints:
    return sum_by(pairs // max(values, 1), size[pairs % max(values, 1)], count)
