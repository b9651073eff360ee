"""Which operators of a graph are alike: same op, attributes, arguments by name and type, results by type.

A million nodes have a few hundred signatures, so a formula runs a few hundred times. Rows are told apart by a hash, and
then every row is compared with the first of its kind: two that only share a hash are never taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Graph

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Signatures(NamedTuple):
    """The signature of each node, and the first node that has each."""

    of_node: npt.NDArray[np.intp]
    first: npt.NDArray[np.intp]


def signatures(graph: Graph) -> Signatures:
    columns = [graph.node_op, graph.node_attrs]
    rows = [_uses(graph), _outputs(graph)]
    for seed in range(8):
        found = _by_hash(columns, rows, seed)
        if _is_exact(columns, rows, found):
            return found
    raise AssertionError("eight hashes of 64 bits collided")  # not in the life of this universe


def alike(columns: Sequence[npt.NDArray[Any]]) -> Ints:
    """A number for each row of these columns: equal where the rows are."""
    bits = [column.astype(np.int64) if column.dtype.kind in "iub" else column.view(np.int64) for column in columns]
    for seed in range(8):
        found = _by_hash(bits, [], seed)
        if _is_exact(bits, [], found):
            return found.of_node.astype(np.int64)
    raise AssertionError("eight hashes of 64 bits collided")


class _Rows(NamedTuple):
    """A list of numbers by node."""

    start: Ints
    item: Ints
    place: Ints  # in the list


def _uses(graph: Graph) -> _Rows:
    value = graph.use_value
    kind = np.where(value >= 0, graph.value_type[value] + 1, 0) if graph.n_values else np.zeros(len(value), np.int32)
    return _rows(graph.use_start, graph.use_arg.astype(np.int64) << 32 | kind)


def _outputs(graph: Graph) -> _Rows:
    start, item = graph.node_outputs
    return _rows(start, graph.value_type[item].astype(np.int64))


def _rows(start: npt.NDArray[Any], item: Ints) -> _Rows:
    begin: Ints = start.astype(np.int64)
    place = np.arange(len(item), dtype=np.int64) - np.repeat(begin[:-1], np.diff(begin))
    return _Rows(begin, item, place)


def _by_hash(columns: list[npt.NDArray[Any]], rows: list[_Rows], seed: int) -> Signatures:
    hashes: Hashes = np.zeros(len(columns[0]), dtype=np.uint64)
    for number, column in enumerate(columns):
        hashes += _mixed(column.astype(np.uint64) + np.uint64((seed * 16 + number) << 40))
    for number, row in enumerate(rows, len(columns)):
        salt = np.uint64(((seed * 16 + number) << 40) + 0x5851F42D4C957F2D)
        each = _mixed(_mixed(row.item.astype(np.uint64) + salt) + row.place.astype(np.uint64))
        total = np.zeros(len(each) + 1, dtype=np.uint64)
        np.cumsum(each, out=total[1:])  # wraps around, and so does the difference
        hashes += total[row.start[1:]] - total[row.start[:-1]]
        hashes = _mixed(hashes + np.diff(row.start).astype(np.uint64))
    _, first, of_node = np.unique(hashes, return_index=True, return_inverse=True)
    return Signatures(of_node.reshape(-1), first)


def _mixed(x: Hashes) -> Hashes:
    """splitmix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _is_exact(columns: list[npt.NDArray[Any]], rows: list[_Rows], found: Signatures) -> bool:
    model = found.first[found.of_node]  # for each node the one that stands for it
    if not all(np.array_equal(column, column[model]) for column in columns):
        return False
    for row in rows:
        length = np.diff(row.start)
        if not np.array_equal(length, length[model]):
            return False
        if not np.array_equal(row.item, row.item[np.repeat(row.start[model], length) + row.place]):
            return False
    return True
