"""A graph drawn small: the modules of one depth as boxes, with the data that flows between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import PHASES, Graph
from opscope.ir.columns import Int32

Ints = npt.NDArray[np.int64]
_OPS = 3  # operators that a box names


@dataclass(frozen=True)
class Box:
    """The nodes of one phase in one module. Forward and backward stay apart: joined, they would be cycles."""

    phase: str
    scope: int
    nodes: int
    ops: tuple[tuple[str, int], ...]  # the most frequent first


@dataclass(frozen=True)
class Collapsed:
    depth: int
    boxes: list[Box]
    edges: list[tuple[int, int, int]]  # (from box, to box, how many uses)


def collapse(graph: Graph, depth: int) -> Collapsed:
    """Each node goes to the box of its module at `depth` (1: the outermost modules) and its phase."""
    keys, first, box_of = _box_keys(graph, depth)
    order = np.argsort(first, kind="stable")  # boxes in the order they first run
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys))
    box_of = rank[box_of]
    sizes = np.bincount(box_of, minlength=len(keys)).tolist()
    ops = _most_frequent(graph, box_of, len(keys))
    boxes: list[Box] = []
    ordered: list[int] = keys[order].tolist()
    for i, key in enumerate(ordered):
        scope, phase = divmod(key, len(PHASES))
        boxes.append(Box(PHASES[phase], scope, sizes[i], tuple(ops[i])))
    return Collapsed(depth, boxes, _edges(graph, box_of))


def readable(graph: Graph, most: int = 40) -> Collapsed:
    """As deep as stays readable: the largest depth with at most `most` boxes."""
    best = 1
    for depth in range(2, 12):
        if len(_box_keys(graph, depth).keys) > most:
            break
        best = depth
    return collapse(graph, best)


class _Keys(NamedTuple):
    keys: Ints
    first: npt.NDArray[np.intp]  # the first node of each
    of_node: npt.NDArray[np.intp]


def _box_keys(graph: Graph, depth: int) -> _Keys:
    """What tells boxes apart: a scope and a phase."""
    outer = _ancestors(graph, depth)
    key = outer[graph.node_scope].astype(np.int64) * len(PHASES) + graph.node_phase
    keys, first, of_node = np.unique(key, return_index=True, return_inverse=True)
    return _Keys(keys, first, of_node.reshape(-1))


def _most_frequent(graph: Graph, box_of: Ints, boxes: int) -> list[list[tuple[str, int]]]:
    """The three most frequent operators of every box; of equals those that run first."""
    strings = graph.pools.strings
    pair = box_of * len(strings) + graph.node_op
    pairs, first, counts = np.unique(pair, return_index=True, return_counts=True)
    box, op = np.divmod(pairs, len(strings))
    found: list[list[tuple[str, int]]] = [[] for _ in range(boxes)]
    order = np.lexsort((first, -counts, box))
    boxes_in_order: list[int] = box[order].tolist()
    for owner, name, count in zip(boxes_in_order, op[order].tolist(), counts[order].tolist(), strict=True):
        if len(found[owner]) < _OPS:
            found[owner].append((strings[name], count))
    return found


def _ancestors(graph: Graph, depth: int) -> Int32:
    """For every scope the one around it at `depth`, or itself if it is not that deep."""
    level = graph.pools.scope_chains.level
    outer = list(range(len(level)))
    for i, scope in enumerate(graph.pools.scopes):  # parents come first
        if level[i] > depth:
            outer[i] = outer[scope.parent]
    return np.array(outer, dtype=np.int32)


def _edges(graph: Graph, box_of: Ints) -> list[tuple[int, int, int]]:
    read = graph.use_value >= 0
    producer = graph.value_producer[graph.use_value[read]]
    made = producer >= 0
    source, target = box_of[producer[made]], box_of[graph.use_node[read][made]]
    apart = source != target
    boxes = int(box_of.max(initial=0)) + 1
    pairs, counts = np.unique(source[apart] * boxes + target[apart], return_counts=True)
    begins: list[int] = (pairs // boxes).tolist()
    ends: list[int] = (pairs % boxes).tolist()
    times: list[int] = counts.tolist()
    return list(zip(begins, ends, times, strict=True))
