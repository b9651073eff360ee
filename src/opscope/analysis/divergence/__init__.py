"""Where two recordings of the same computation stop agreeing: the first operator whose error its inputs do not explain.

Nothing is matched by name. A tensor of one recording is found in the other by its numbers: as many of them, and the
same statistics within what the precision of its type and the errors of its inputs allow. So modules may have other
names, another order, fused or split products. Two ports take other ways to the same number, so a tensor without a
counterpart means nothing as long as something that is computed from it has one again. The two diverge at the first
operator from which on, along all that is computed from it, nothing has one, although what it reads has.
"""

from __future__ import annotations

import numpy as np

from opscope.ir import Capture, Table, column, frozen
from opscope.ir.facts import OWN, VALUES

from .losses import first
from .matching import Match, match, rounding
from .results import Divergence as Divergence
from .results import Numbers as Numbers
from .results import Place as Place
from .side import Side

ERROR = "error"  # what the figure is called
_MOST = 200_000  # operators of two recordings that are compared whenever they are shown beside each other


def diverge(a: Capture, b: Capture) -> Divergence:
    """Compare two recordings with `values="stats"`, each in its first stage."""
    left, right = Side(a), Side(b)
    return _compared(left, right, (match(left, right), match(right, left)))


def _compared(left: Side, right: Side, matches: tuple[Match, Match]) -> Divergence:
    if left.is_compiled or right.is_compiled:
        lost = left.lost_ends(matches[0].at >= 0), right.lost_ends(matches[1].at >= 0)
    else:
        allowed = rounding(left, right)
        lost = left.lost(matches[0].at >= 0, allowed), right.lost(matches[1].at >= 0, allowed)
    compared = int((left.telling & left.reached).sum())
    matched = int(((matches[0].at >= 0) & left.telling & left.reached).sum())
    largest = float(np.max(matches[0].error[(matches[0].at >= 0) & left.telling], initial=0.0))
    return Divergence(first(left, right, lost, matches), compared, matched, largest)


def add_errors(both: Capture) -> None:
    """To two recordings beside each other as the first stages of a capture: of each operator how far what it makes is
    from its counterpart in the other, and 1 from where on there is none. Unknown: another way to the same numbers,
    which have counterparts again. Nothing where one of the two has no statistics of what operators made."""
    graphs = [stage.graph for stage in both.stages[:2]]
    if (
        len(graphs) < 2
        or max(graph.n_nodes for graph in graphs) > _MOST
        or not all(_is_measured(both, stage) for stage in (0, 1))
    ):
        return
    left, right = Side(both, 0), Side(both, 1)
    matches = match(left, right), match(right, left)
    allowed = rounding(left, right)
    for stage, (side, found) in enumerate(zip((left, right), matches, strict=True)):
        both.add(_errors(stage, side, found, allowed))
    both.warnings.append(" ".join(str(_compared(left, right, matches)).split()))


def _is_measured(capture: Capture, stage: int) -> bool:
    producer = capture.stages[stage].graph.value_producer
    tables = capture.facts(VALUES.name, stage)
    return any("rms" in table.columns and bool((producer[table.index] >= 0).any()) for table in tables)


def _errors(stage: int, side: Side, found: Match, allowed: float) -> Table:
    has = found.at >= 0
    by_value = {value: float(found.error[value]) for value in np.flatnonzero(has & side.telling).tolist()}
    by_value |= dict.fromkeys(side.lost(has, allowed), 1.0)
    errors: dict[int, float] = {}
    for value, error in by_value.items():
        if (node := int(side.graph.value_producer[value])) >= 0:
            errors[node] = max(errors.get(node, 0.0), error)
    nodes = sorted(errors)
    figures = column(np.array([errors[node] for node in nodes]), "relative")
    return Table(stage, "node", frozen(nodes), {ERROR: figures}, OWN.name)
