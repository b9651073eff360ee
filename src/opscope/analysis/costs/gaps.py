"""Which figures are only lower bounds, because something that ran is not in the graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opscope.ir import PHASE_ID, PHASES, Gap
from opscope.ops import canonical

from .rollup import Tree
from .sizes import Ints, Mask

# The figure of a row that counts what is missing from it -> what the gap has to touch.
MARKS = {"unknown": "compute", "bytes_unknown": "traffic", "memory_unknown": "memory", "params_unknown": "parameters"}


def touched(gaps: Sequence[Gap], what: str) -> bool:
    """Whether a total of the whole graph is a lower bound."""
    return any(what in gap.touches for gap in gaps)


def by_scope(gaps: Sequence[Gap], tree: Tree, what: str) -> tuple[Ints, Ints]:
    """How many gaps touch what runs in each scope itself, and that with all that is inside it."""
    count = len(tree.parent)
    own: Ints = np.zeros(count, dtype=np.int64)
    inside: Ints = np.zeros(count, dtype=np.int64)
    for gap in gaps:
        if what not in gap.touches or not 0 <= gap.scope < count:
            continue
        reached = _below(tree, gap.scope) if gap.is_inside else _only(gap.scope, count)
        own += reached
        inside += reached | _above(tree, gap.scope)
    return own, inside


def _only(scope: int, count: int) -> Mask:
    mask: Mask = np.zeros(count, dtype=bool)
    mask[scope] = True
    return mask


def _below(tree: Tree, scope: int) -> Mask:
    mask = _only(scope, len(tree.parent))
    if scope == 0:
        mask[:] = True
        return mask
    for inner, parent in enumerate(tree.parent.tolist()):  # parents come first
        if inner and mask[parent]:
            mask[inner] = True
    return mask


def _above(tree: Tree, scope: int) -> Mask:
    mask = _only(scope, len(tree.parent))
    while scope > 0:
        scope = int(tree.parent[scope])
        mask[scope] = True
    return mask


def by_phase(gaps: Sequence[Gap], what: str) -> Ints:
    found: Ints = np.zeros(len(PHASES), dtype=np.int64)
    for gap in gaps:
        if what in gap.touches:
            found[PHASE_ID[gap.phase] if gap.phase else slice(None)] += 1
    return found


def by_op(gaps: Sequence[Gap], framework: str, name: str, what: str, *, kinds: bool) -> int:
    """How many gaps touch the row of an operator, or of a kind of operators. One without a name may be any."""
    found = 0
    for gap in gaps:
        if what in gap.touches:
            found += not gap.op or name == (canonical(framework, gap.op) if kinds else gap.op)
    return found
