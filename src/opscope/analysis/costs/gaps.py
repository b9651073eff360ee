"""Which figures are only lower bounds, because something that ran is not in the graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opscope.ir import PHASE_ID, PHASES, Gap
from opscope.ops import canonical

from .rollup import Tree
from .sizes import Ints

# The figure of a row that counts what is missing from it -> what the gap has to touch.
MARKS = {"unknown": "compute", "bytes_unknown": "traffic", "memory_unknown": "memory", "params_unknown": "parameters"}


def touched(gaps: Sequence[Gap], what: str) -> bool:
    """Whether a total of the whole graph is a lower bound."""
    return any(what in gap.touches for gap in gaps)


def by_scope(gaps: Sequence[Gap], tree: Tree, what: str) -> tuple[Ints, Ints]:
    """How many gaps touch what runs in each scope itself, and that with all that is inside it."""
    count = len(tree.parent)
    found = [gap for gap in gaps if what in gap.touches and 0 <= gap.scope < count]
    at: Ints = np.array([gap.scope for gap in found], dtype=np.int64)
    here = np.bincount(at, minlength=count)
    begin, end = tree.span
    is_inside = np.array([gap.is_inside for gap in found], dtype=bool)
    steps = np.bincount(begin[at[is_inside]], minlength=count + 1) - np.bincount(
        end[at[is_inside]], minlength=count + 1
    )
    own = np.bincount(at[~is_inside], minlength=count) + np.cumsum(steps)[begin]
    return own, own + tree.up(here) - here  # those of a scope itself are among its own


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
