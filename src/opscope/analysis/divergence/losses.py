"""The first of the tensors without a counterpart that is to blame for the others."""

from __future__ import annotations

import math

import numpy as np

from opscope.ir import ROLES

from .matching import Match, apart
from .results import Point
from .side import MOST_ASKED, Side


def first(left: Side, right: Side, lost: tuple[list[int], list[int]], matches: tuple[Match, Match]) -> Point | None:
    """The first loss of the left side, and the one of the right side that stands in the same place."""
    if not lost[0] and not lost[1]:
        return None
    a = _earliest(left, lost[0], matches[0])
    b = _earliest(right, lost[1], matches[1])
    error = None
    if a is not None and b is not None:
        b = _partner(left, right, a, b, lost[1])
        if left.size[a] == right.size[b]:
            found = apart(left, a, right, np.array([b]))[0]
            error = float(found) if math.isfinite(found) else None
    side, value, match = (left, a, matches[0]) if a is not None else (right, b, matches[1])
    assert value is not None
    inputs = side.inputs(value)
    gone = set(lost[0] if a is not None else lost[1])
    missing = [v for v in side.telling_inputs(value) if v in gone and side.graph.value_producer[v] >= 0]
    if a is not None and (given := _given(left, right, a, b, matches)) is not None:
        a, b = given[0], given[1] if given[1] is not None else b
        error = (
            float(apart(left, a, right, np.array([b]))[0]) if b is not None and left.size[a] == right.size[b] else None
        )
    return Point(
        left.place(a) if a is not None else None,
        right.place(b) if b is not None else None,
        error,
        max((float(match.error[v]) for v in inputs), default=0.0),
        bool(missing),
    )


def _earliest(side: Side, lost: list[int], match: Match) -> int | None:
    """The first result that is computed of what has counterparts and has none, and is to blame for it.

    Of what comes from outside some has no counterpart in a correct port, too: a weight that is a part of another one
    there. And a table that is computed in another form is excused where it meets data that is lost for another reason.
    """
    made = side.graph.value_producer
    computed = [value for value in lost if made[value] >= 0]
    gone = set(computed)
    edge = [value for value in computed if any(match.at[v] >= 0 for v in side.telling_inputs(value))]
    roots = list(dict.fromkeys(_root(side, value, gone) for value in edge[:MOST_ASKED]))
    blamed = next((value for value in roots if _is_to_blame(side, value, gone, match)), None)
    return blamed if blamed is not None else next(iter(roots or computed or lost), None)


def _is_to_blame(side: Side, value: int, gone: set[int], match: Match) -> bool:
    """Where what is computed of it first meets something else, that has a counterpart."""
    derived, todo = {value}, [value]
    while todo and len(derived) < MOST_ASKED:
        for node in side.readers(todo.pop(0)):
            made = [v for v in side.rows.made(node) if v in gone]
            if not made:
                continue
            others = [v for v in side.telling_inputs(made[0]) if v not in derived]
            if any(v in gone for v in others):
                continue
            if any(match.at[v] >= 0 and side.graph.value_producer[v] >= 0 for v in others):
                return True
            fresh = [v for v in made if v not in derived]
            derived.update(fresh)
            todo += fresh
    return not any(side.readers(v) for v in derived)


def _root(side: Side, value: int, gone: set[int]) -> int:
    """Back along what has no counterpart, to where that begins."""
    for _ in range(side.graph.n_nodes):
        before = [v for v in side.telling_inputs(value) if v in gone]
        if not before:
            break
        value = min(before, key=lambda v: int(side.graph.value_producer[v]))
    return value


def _given(
    left: Side, right: Side, a: int, b: int | None, matches: tuple[Match, Match]
) -> tuple[int, int | None] | None:
    """Where both operators are right and what they are given differs: the weights, buffers or inputs themselves."""
    ours = _outside(left, a, matches[0])
    if not ours:
        return None
    theirs = _outside(right, b, matches[1]) if b is not None else []
    for value in ours:
        same = next((other for other in theirs if right.size[other] == left.size[value]), None)
        if same is not None:
            return value, same
        if ROLES[int(left.graph.value_role[value])] != "parameter":
            return value, None
    return None


def _outside(side: Side, value: int, match: Match) -> list[int]:
    made = side.graph.value_producer
    return [v for v in side.inputs(value) if made[v] < 0 and side.telling[v] and match.at[v] < 0]


def _partner(left: Side, right: Side, a: int, b: int, lost: list[int]) -> int:
    """Of the right side's losses the first of the same size that comes soon and reads nothing that is lost: it is
    what `a` should have been."""
    size = left.size[a]
    computed = [value for value in lost if right.graph.value_producer[value] >= 0]
    early = computed[: computed.index(b) + 8] if b in computed else computed[:8]
    gone = set(computed)
    return next((v for v in early if right.size[v] == size and not any(u in gone for u in right.telling_inputs(v))), b)
