"""A graph drawn small: the modules of one depth as boxes, with the data that flows between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opscope.ir import PHASES, Graph
from opscope.ir.columns import Int32


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
    outer = _ancestors(graph, depth)
    key = outer[graph.node_scope].astype(np.int64) * len(PHASES) + graph.node_phase
    box_of: npt.NDArray[np.int64]
    keys, first, box_of = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(keys), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(keys))  # boxes in the order they first run
    box_of = rank[box_of]
    boxes: list[Box] = []
    for i in np.argsort(first, kind="stable").tolist():
        members = np.flatnonzero(box_of == rank[i])
        ops = Counter(graph.pools.strings[op] for op in graph.node_op[members].tolist())
        scope, phase = divmod(int(keys[i]), len(PHASES))
        boxes.append(Box(PHASES[phase], scope, len(members), tuple(ops.most_common(3))))
    return Collapsed(depth, boxes, _edges(graph, box_of))


def readable(graph: Graph, most: int = 40) -> Collapsed:
    """As deep as stays readable: the largest depth with at most `most` boxes."""
    best = collapse(graph, 1)
    for depth in range(2, 12):
        deeper = collapse(graph, depth)
        if len(deeper.boxes) > most:
            break
        best = deeper
    return best


def _ancestors(graph: Graph, depth: int) -> Int32:
    """For every scope the one around it at `depth`, or itself if it is not that deep."""
    scopes = graph.pools.scopes
    outer = np.zeros(len(scopes), dtype=np.int32)
    level = np.zeros(len(scopes), dtype=np.int32)
    for i, scope in enumerate(scopes):  # parents come first
        if i:
            level[i] = level[scope.parent] + 1
            outer[i] = i if level[i] <= depth else outer[scope.parent]
    return outer


def _edges(graph: Graph, box_of: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    read = graph.use_value >= 0
    producer = graph.value_producer[graph.use_value[read]]
    made = producer >= 0
    source, target = box_of[producer[made]], box_of[graph.use_node[read][made]]
    counts = Counter((int(s), int(t)) for s, t in zip(source, target, strict=True) if s != t)
    return [(s, t, n) for (s, t), n in sorted(counts.items())]
