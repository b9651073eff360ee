"""A graph drawn small: the modules of one depth as boxes, with the data that flows between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opscope.ir import PHASES, Graph
from opscope.ir.columns import Int32

Ints = npt.NDArray[np.int64]
_OPS = 3  # operators that a box names
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
    key = _keys(graph, depth)
    parts, first, box_of = np.unique(_parts(graph, key), return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # boxes in the order they first run
    rank = np.empty(len(parts), dtype=np.int64)
    rank[order] = np.arange(len(parts))
    box_of = rank[box_of.reshape(-1)]
    sizes = np.bincount(box_of, minlength=len(parts)).tolist()
    ops = _most_frequent(graph, box_of, len(parts))
    boxes: list[Box] = []
    ordered: list[int] = key[first[order]].tolist()
    for i, of_box in enumerate(ordered):
        scope, phase = divmod(of_box, len(PHASES))
        boxes.append(Box(PHASES[phase], scope, sizes[i], tuple(ops[i])))
    return Collapsed(depth, boxes, _edges(graph, box_of))


def _keys(graph: Graph, depth: int) -> Ints:
    """What tells boxes apart, by node: a scope and a phase."""
    return _ancestors(graph, depth)[graph.node_scope].astype(np.int64) * len(PHASES) + graph.node_phase


def _parts(graph: Graph, key: Ints) -> Ints:
    """A number for each node: those of one box have the same. A box is split where it would be part of a cycle."""
    keys, of_node = np.unique(key, return_inverse=True)
    box_of: Ints = of_node.reshape(-1).astype(np.int64)
    source, target = _node_edges(graph)
    looping = _in_cycles(len(keys), _pairs(box_of[source], box_of[target], len(keys)))
    if not looping:
        return box_of
    # Each way into another box is a step down, and a box holds the nodes of one level: then all ways lead down.
    levels: list[int] = [0] * graph.n_nodes
    ahead = source < target  # loops of the model's own are left aside
    order = np.argsort(target[ahead], kind="stable")
    begins, ends = source[ahead][order], target[ahead][order]
    steps: list[bool] = (box_of[begins] != box_of[ends]).tolist()
    pairs: list[tuple[int, int]] = list(zip(begins.tolist(), ends.tolist(), strict=True))
    for (one, other), step in zip(pairs, steps, strict=True):
        levels[other] = max(levels[other], levels[one] + step)
    split = np.isin(box_of, list(looping))
    level = np.array(levels, dtype=np.int64)
    _, part_of = np.unique(np.where(split, level, 0) * len(key) + box_of, return_inverse=True)
    return _joined(part_of.reshape(-1).astype(np.int64), box_of, begins, ends)


def _joined(part_of: Ints, box_of: Ints, source: Int32, target: Int32) -> Ints:
    """Levels of one box that nothing lies between are one part."""
    owner = dict(zip(part_of.tolist(), box_of.tolist(), strict=True))
    if len(owner) > _MOST_PARTS:
        return part_of
    after: dict[int, set[int]] = {part: set() for part in owner}
    for one, other in _pairs(part_of[source], part_of[target], len(owner)):
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


def _in_cycles(count: int, edges: list[tuple[int, int]]) -> set[int]:
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
        if len(np.unique(_keys(graph, depth))) > most:
            break  # boxes are at least as many, and looked for in less time than they are made
        deeper = collapse(graph, depth)
        if len(deeper.boxes) > most:
            break
        best = deeper
    return best


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


def _node_edges(graph: Graph) -> tuple[Int32, Int32]:
    """From node to node."""
    read = graph.use_value >= 0
    producer = graph.value_producer[graph.use_value[read]]
    made = producer >= 0
    return producer[made], graph.use_node[read][made]


def _edges(graph: Graph, box_of: Ints) -> list[tuple[int, int, int]]:
    source, target = (box_of[ends] for ends in _node_edges(graph))
    apart = source != target
    boxes = int(box_of.max(initial=0)) + 1
    pairs, counts = np.unique(source[apart] * boxes + target[apart], return_counts=True)
    begins: list[int] = (pairs // boxes).tolist()
    ends: list[int] = (pairs % boxes).tolist()
    times: list[int] = counts.tolist()
    return list(zip(begins, ends, times, strict=True))


def _pairs(begins: Ints, ends: Ints, count: int) -> list[tuple[int, int]]:
    """Pairs of numbers below `count`, each once."""
    begin, end = np.divmod(np.unique(begins * count + ends), max(count, 1))
    return list(zip(begin.tolist(), end.tolist(), strict=True))
