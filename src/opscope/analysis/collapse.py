"""A graph drawn small: the modules of one depth as boxes, with the data that flows between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.ir import PHASES, Graph
from opscope.ir.columns import Int32

_MOST_PARTS = 3_000  # more are not joined again: nobody reads so many boxes


@dataclass(frozen=True)
class Box:
    """The nodes of one phase in one module, or a part of them: forward and backward stay apart, and so do the parts of
    a module that is left and entered again. Joined, they would be cycles that the model does not have."""

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
    keys, first, box_of = np.unique(_parts(graph, key), return_index=True, return_inverse=True)
    keys = key[first]
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


def _parts(graph: Graph, key: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number for each node: those of one box have the same. A box is split where it would be part of a cycle."""
    _, box_of = np.unique(key, return_inverse=True)
    source, target = _node_edges(graph)
    edges = set(zip(box_of[source].tolist(), box_of[target].tolist(), strict=True))
    looping = _in_cycles(int(box_of.max(initial=-1)) + 1, edges)
    if not looping:
        return box_of
    # Each way into another box is a step down, and a box holds the nodes of one level: then all ways lead down.
    level = np.zeros(graph.n_nodes, dtype=np.int64)
    ahead = source < target  # loops of the model's own are left aside
    order = np.argsort(target[ahead], kind="stable")
    for one, other in zip(source[ahead][order].tolist(), target[ahead][order].tolist(), strict=True):
        level[other] = max(level[other], level[one] + (box_of[one] != box_of[other]))
    split = np.isin(box_of, list(looping))
    _, part_of = np.unique(np.where(split, level, 0) * len(key) + box_of, return_inverse=True)
    return _joined(part_of, box_of, source[ahead], target[ahead])


def _joined(part_of: npt.NDArray[np.int64], box_of: npt.NDArray[np.int64], source: Any, target: Any) -> Any:
    """Levels of one box that nothing lies between are one part."""
    owner = dict(zip(part_of.tolist(), box_of.tolist(), strict=True))
    if len(owner) > _MOST_PARTS:
        return part_of
    after: dict[int, set[int]] = {part: set() for part in owner}
    for one, other in set(zip(part_of[source].tolist(), part_of[target].tolist(), strict=True)):
        if one != other:
            after[one].add(other)
    now = {part: part for part in owner}
    by_box: dict[int, list[int]] = {}
    for part in sorted(owner):
        by_box.setdefault(owner[part], []).append(part)
    for parts in by_box.values():
        kept = parts[:1]
        for part in parts[1:]:
            earlier = kept[-1]
            if _reaches(after, after[earlier] - {part}, part) or _reaches(after, after[part] - {earlier}, earlier):
                kept.append(part)
                continue
            after[earlier] = (after[earlier] | after.pop(part)) - {earlier, part}
            for others in after.values():
                if part in others:
                    others.remove(part)
                    others.add(earlier)
            now[part] = earlier
    return np.array([now[part] for part in range(len(owner))])[part_of]


def _reaches(after: dict[int, set[int]], start: set[int], end: int) -> bool:
    seen, todo = set(start), list(start)
    while todo:
        part = todo.pop()
        if part == end:
            return True
        more = after[part] - seen
        seen |= more
        todo += more
    return False


def _in_cycles(count: int, edges: set[tuple[int, int]]) -> set[int]:
    """The boxes on cycles, and those between cycles: what is left when all that begins or ends a way is taken away."""
    left = set(range(count))
    for forwards in (True, False):
        following: dict[int, set[int]] = {}
        waiting = dict.fromkeys(left, 0)
        for edge in edges:
            one, other = edge if forwards else edge[::-1]
            if one != other and one in left and other in left:
                following.setdefault(one, set()).add(other)
                waiting[other] += 1
        todo = [box for box, count in waiting.items() if not count]
        while todo:
            box = todo.pop()
            left.discard(box)
            for other in following.get(box, ()):
                waiting[other] -= 1
                if not waiting[other]:
                    todo.append(other)
    return left


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


def _node_edges(graph: Graph) -> tuple[Int32, Int32]:
    """From node to node."""
    read = graph.use_value >= 0
    producer = graph.value_producer[graph.use_value[read]]
    made = producer >= 0
    return producer[made], graph.use_node[read][made]


def _edges(graph: Graph, box_of: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    source, target = _node_edges(graph)
    counts = Counter((int(s), int(t)) for s, t in zip(box_of[source], box_of[target], strict=True) if s != t)
    return [(s, t, n) for (s, t), n in sorted(counts.items())]
