"""What `opscope.ways` gives: for each way of capturing, whether it works on a model, and what it loses."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from opscope.ir import Capture

_HEADER = ("way", "works", "operators", "what is lost, or why it does not work")
_NARROWEST = 24  # of the last column, when a table is fitted to a terminal


@dataclass(frozen=True)
class Way:
    """One way of capturing, tried."""

    how: str
    works: bool
    operators: int | None = None  # None: it does not work
    reason: str = ""  # why it does not work
    baked: str = ""  # what it keeps of this one input although another input needs something else
    where: str = ""  # file:line in the user's code, of `reason` or of `baked`
    lost: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if not self.works:
            return "no"
        return "yes, but" if self.baked else "yes"

    @property
    def note(self) -> str:
        """The last column, in one line."""
        if not self.works:
            return f"{self.reason}{f' ({self.where})' if self.where else ''}"
        parts = [f"{self.baked}{f': {self.where}' if self.where else ''}"] if self.baked else []
        return "; ".join([*parts, *self.lost])


@dataclass(frozen=True)
class Ways:
    """The ways that were tried, in order: print it, iterate over it, or take `ways["export"]`."""

    target: str
    rows: tuple[Way, ...]
    captures: dict[str, Capture] = field(default_factory=dict[str, Capture], repr=False, compare=False)

    def __iter__(self) -> Iterator[Way]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, how: str) -> Way:
        for row in self.rows:
            if row.how == how:
                return row
        raise KeyError(f"no way {how!r} (there are: {', '.join(row.how for row in self.rows)})")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """By way: works, operators, reason, baked, where, lost, seconds."""
        return {row.how: {**asdict(row), "lost": list(row.lost), "verdict": row.verdict} for row in self.rows}

    def table(self, width: int | None = None) -> str:
        """The table as text; with `width`, the last column is wrapped so that lines are no longer than that."""
        cells = [_cells(row) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(_HEADER, *cells, strict=True)][:3]
        indent = sum(widths) + 2 * len(widths)
        room = max(_NARROWEST, width - indent) if width else None
        lines: list[str] = []
        for way, works, operators, note in [_HEADER, *cells]:
            first, *more = textwrap.wrap(note, room, break_on_hyphens=False) if room and note else [note]
            start = f"{way:<{widths[0]}}  {works:<{widths[1]}}  {operators:>{widths[2]}}  "
            lines += [f"{start}{first}".rstrip(), *(" " * indent + line for line in more)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(text)}</th>" for text in _HEADER)
        body = "".join(_html_row(_cells(row)) for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Way) -> tuple[str, str, str, str]:
    return row.how, row.verdict, "–" if row.operators is None else f"{row.operators:,}", row.note


def _html_row(cells: Sequence[str]) -> str:
    styles = ("left", "left", "right", "left")
    made = [f'<td style="text-align:{s}">{html.escape(c)}</td>' for s, c in zip(styles, cells, strict=True)]
    return f"<tr>{''.join(made)}</tr>"
