"""Where two recordings of the same computation stop agreeing: the first operator whose error its inputs do not explain.

Nothing is matched by name. A tensor of one recording is found in the other by its numbers: as many of them, and the
same statistics within what the precision of its type and the errors of its inputs allow. So modules may have other
names, another order, fused or split products. Two ports take other ways to the same number, so a tensor without a
counterpart means nothing as long as something that is computed from it has one again. The two diverge at the first
operator from which on, along all that is computed from it, nothing has one, although what it reads has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opscope.ir import Capture, Table, column, frozen
from opscope.ir.facts import OWN

from .losses import first
from .matching import Match, match, rounding
from .results import Divergence as Divergence
from .results import Numbers as Numbers
from .results import Place as Place
from .side import Side

ERROR = "error"  # what the figure is called


def diverge(a: Capture, b: Capture) -> Divergence:
    """Compare two recordings with `values="stats"`, each in its first stage."""
    left, right = Side(a), Side(b)
    matches = match(left, right), match(right, left)
    if left.is_compiled or right.is_compiled:
        lost = left.lost_ends(matches[0].at >= 0), right.lost_ends(matches[1].at >= 0)
    else:
        allowed = rounding(left, right)
        lost = left.lost(matches[0].at >= 0, allowed), right.lost(matches[1].at >= 0, allowed)
    compared = int((left.telling & left.reached).sum())
    matched = int(((matches[0].at >= 0) & left.telling & left.reached).sum())
    largest = float(np.max(matches[0].error[(matches[0].at >= 0) & left.telling], initial=0.0))
    return Divergence(first(left, right, lost, matches), compared, matched, largest)


def with_errors(a: Capture, b: Capture) -> tuple[Capture, Capture]:
    """Both with a figure of each operator: how far what it makes is from its counterpart in the other, and 1 from where
    on there is none. Unknown: another way to the same numbers, which have counterparts again."""
    left, right = Side(a), Side(b)
    allowed = rounding(left, right)
    return (
        _with_errors(a, left, match(left, right), allowed),
        _with_errors(b, right, match(right, left), allowed),
    )


def _with_errors(capture: Capture, side: Side, match: Match, allowed: float) -> Capture:
    has = match.at >= 0
    found = {value: float(match.error[value]) for value in np.flatnonzero(has & side.telling).tolist()}
    found |= dict.fromkeys(side.lost(has, allowed), 1.0)
    errors: dict[int, float] = {}
    for value, error in found.items():
        if (node := int(side.graph.value_producer[value])) >= 0:
            errors[node] = max(errors.get(node, 0.0), error)
    nodes = sorted(errors)
    figures = column(np.array([errors[node] for node in nodes]), "relative")
    told = replace(capture, tables=dict(capture.tables))
    told.add(Table(0, "node", frozen(nodes), {ERROR: figures}, OWN.name))
    return told
