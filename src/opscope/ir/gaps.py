"""What ran and is not in the graph: operators that were lost, not seen, or that lie behind something opaque.

A warning tells a person; a gap also tells every figure that it is only a lower bound. Whoever captures writes gaps with
`note`, whoever counts reads them with `gaps_of`.

>>> note(capture, 0, [Gap("it ran in another process", scope=layer1, phase="forward")])     # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from . import facts
from .capture import Capture, Table, column
from .columns import frozen
from .enumerations import GAP_TOUCHES, PHASE_ID, PHASES
from .pools import Pools

_TOUCH = {name: i for i, name in enumerate(GAP_TOUCHES)}


@dataclass(frozen=True)
class Gap:
    """Something that ran and is not in the graph."""

    reason: str  # a sentence without its full stop
    count: int | None = None  # operators; None: not even their number is known
    scope: int = 0  # the innermost module that is known to hold it
    is_inside: bool = True  # it may be in any module inside that scope, too; False: it ran in the scope itself
    phase: str = ""  # one of PHASES; empty: not known
    op: str = ""  # its name, where that is known
    touches: tuple[str, ...] = GAP_TOUCHES  # the figures that are too low because of it

    def sentence(self, pools: Pools) -> str:
        """`3 aten.foo operators in layer1 are not in the graph: …`."""
        many = "" if self.count is None else f"{self.count:,} "
        what = f"{many}{self.op + ' ' if self.op else ''}operator{'' if self.count == 1 else 's'}"
        what = f"some {what}" if self.count is None else what
        path = pools.scope_path(self.scope)
        where = f" in {path}" if path else ""
        when = f" ({self.phase})" if self.phase and self.phase != "forward" else ""
        return f"{what}{where}{when} {'is' if self.count == 1 else 'are'} not in the graph: {self.reason}"


def note(capture: Capture, stage: int, gaps: Sequence[Gap]) -> None:
    """Add gaps to a stage, each with its warning."""
    if not gaps:
        return
    capture.add(_table(stage, gaps))
    capture.warnings.extend(gap.sentence(capture.pools) for gap in gaps)


def _table(stage: int, gaps: Sequence[Gap]) -> Table:
    counts = np.array([gap.count or 0 for gap in gaps], dtype=np.int64)
    phases = np.array([PHASE_ID.get(gap.phase, 0) for gap in gaps], dtype=np.int64)
    columns = {
        "reason": column([gap.reason for gap in gaps]),
        "count": column(counts, known=[gap.count is not None for gap in gaps]),
        "inside": column(np.array([gap.is_inside for gap in gaps], dtype=bool)),
        "phase": column(phases, known=[gap.phase in PHASE_ID for gap in gaps]),
        "op": column([gap.op for gap in gaps]),
        "touches": column([[_TOUCH[name] for name in gap.touches] for gap in gaps]),
    }
    return Table(stage, "scope", frozen([gap.scope for gap in gaps]), columns, facts.GAPS.name)


def gaps_of(capture: Capture, stage: int) -> tuple[Gap, ...]:
    """The gaps of a stage."""
    return tuple(gap for table in capture.facts(facts.GAPS.name, stage) for gap in _rows(table))


def _touches(places: Any) -> tuple[str, ...]:
    if not isinstance(places, list):  # another program's file: then all
        return GAP_TOUCHES
    return tuple(GAP_TOUCHES[int(place)] for place in cast("list[int]", places))


def _rows(table: Table) -> Iterator[Gap]:
    columns = table.columns
    count, phase = columns["count"], columns["phase"]
    for row, scope in enumerate(table.index.tolist()):
        touches: Any = columns["touches"].values[row]
        yield Gap(
            reason=str(columns["reason"].values[row]),
            count=int(cast("Any", count.values[row])) if count.known[row] else None,
            scope=scope,
            is_inside=bool(columns["inside"].values[row]),
            phase=PHASES[int(cast("Any", phase.values[row]))] if phase.known[row] else "",
            op=str(columns["op"].values[row]),
            touches=_touches(touches),
        )
