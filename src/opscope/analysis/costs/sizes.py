"""How large values and the memory behind them are, and which values exist only inside a fused kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Graph, Type, dtypes

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MOST = 1 << 60  # bytes; a size above is not believed
NOT_KNOWN = -1


def bytes_of(type_: Type) -> int | None:
    """Bytes of a tensor; None where its size or its dtype is not known."""
    elements = type_.elements
    return None if elements is None else dtypes.bytes_of(type_.dtype, elements)


def element_counts(graph: Graph) -> Ints:
    """Elements of every value; −1 where that is not known."""
    return _by_type(graph, lambda type_: type_.elements)


def value_bytes(graph: Graph) -> Ints:
    """Bytes of every value; −1 where that is not known."""
    return _by_type(graph, bytes_of)


def _by_type(graph: Graph, measure: Callable[[Type], int | None]) -> Ints:
    sizes = np.full(len(graph.pools.types), NOT_KNOWN, dtype=np.int64)
    for index in np.flatnonzero(np.bincount(graph.value_type, minlength=1)).tolist():
        size = measure(graph.pools.types[index])
        if size is not None and 0 <= size < MOST:
            sizes[index] = size
    return sizes[graph.value_type]


class Storages(NamedTuple):
    """The memory of every value, as the number of the value that owns it, and how large it is (by owner)."""

    of_value: Ints
    size: Ints


def storages(graph: Graph, views: Mask) -> Storages:
    """`views` marks nodes whose results show the memory of their first argument. The graph says so itself where it was
    recorded; one from a file often does not."""
    owner = graph.value_storage.astype(np.int64)
    sizes = value_bytes(graph)
    maker = graph.value_producer
    made = maker >= 0
    if views.any():
        first = _first_argument(graph)
        alone = made & (owner == np.arange(graph.n_values))
        alone[made] &= views[maker[made]] & (first[maker[made]] >= 0)
        viewed = np.flatnonzero(alone)
        shown = first[maker[viewed]]
        # Something that shows itself, through others, is a loop in a damaged graph: it keeps its own memory.
        fine = graph.value_producer[shown] < maker[viewed]
        owner[viewed[fine]] = owner[shown[fine]]
        while not np.array_equal(further := owner[owner], owner):
            owner = further
    has_size = ~made | (owner == np.arange(graph.n_values))  # views are no larger, but for what `expand` makes
    size = np.full(graph.n_values, NOT_KNOWN, dtype=np.int64)
    rows = np.flatnonzero(has_size)
    np.maximum.at(size, owner[rows], sizes[rows])
    return Storages(owner, size)


def _first_argument(graph: Graph) -> Ints:
    """The first value that each node reads, or −1."""
    first = np.full(graph.n_nodes, -1, dtype=np.int64)
    read = np.flatnonzero(graph.use_value >= 0)[::-1]
    first[graph.use_node[read]] = graph.use_value[read]  # of several the last one written stays: the first argument
    return first


def inside_kernels(graph: Graph) -> Mask:
    """Values that are never in memory: everybody who reads one runs in a kernel that makes it itself."""
    inside = np.zeros(graph.n_values, dtype=bool)
    kernels = graph.groups.get("kernel")
    if kernels is None or not len(kernels):
        return inside
    group = np.repeat(np.arange(len(kernels), dtype=np.int64), np.diff(kernels.start))
    member = kernels.member.astype(np.int64)
    together = np.unique(group * graph.n_nodes + member)
    order = np.argsort(member, kind="stable")
    count = np.bincount(member, minlength=graph.n_nodes)
    begin = np.concatenate([[0], np.cumsum(count)])

    read = np.flatnonzero(graph.use_value >= 0)
    value, reader = graph.use_value[read], graph.use_node[read]
    maker = graph.value_producer[value].astype(np.int64)
    # One row for every kernel that the reader runs in.
    times = count[reader]
    row = np.repeat(np.arange(len(read)), times)
    place = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
    kernel = group[order[begin[reader[row]] + place]]
    key = kernel * graph.n_nodes + maker[row]
    found = np.searchsorted(together, key)
    with_maker = (maker[row] >= 0) & (together[np.minimum(found, len(together) - 1)] == key)

    inside[value] = True
    inside[value[row[~with_maker]]] = False
    inside[value[times == 0]] = False
    inside[graph.outputs] = False
    inside[graph.value_producer < 0] = False
    return inside
