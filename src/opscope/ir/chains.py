"""Chains of scopes and of frames, of which a readable text names only so many.

A chain may be a hundred thousand deep (a recursive model, a damaged or hostile file). Written out for every operator,
such chains are quadratic in all that prints them, so a long one names its ends and says how many it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pools import Interned

ENDS = 16  # of a chain that is longer than both ends together, this many at each end are named
LONGEST_LABEL = 200  # letters of a scope in a path; frames may have four times as many


class Chains:
    """For every entry of a tree how deep it is, and which entry ends the outer part of its chain."""

    def __init__(self, pool: Interned[Any]) -> None:
        self.pool = pool
        self.level = [0]  # the root is not counted
        self._outer = [0]  # the entry around it, or itself, that is ENDS deep

    def grow(self) -> None:
        """Take in what the pool has got since: entries stand behind those around them."""
        level, outer, rows = self.level, self._outer, self.pool.rows()
        for entry in range(len(level), len(rows)):
            parent: int = rows[entry].parent
            depth = level[parent] + 1
            level.append(depth)
            outer.append(entry if depth <= ENDS else outer[parent])

    def shown(self, entry: int, text: Callable[[int], str]) -> list[str]:
        """The chain down to an entry as texts, outermost first: all of it, or both ends and how many are between."""
        depth = self.level[entry]
        if depth <= 2 * ENDS:
            return self._upwards(entry, depth, text)[::-1]
        outer = self._upwards(self._outer[entry], ENDS, text)[::-1]
        return [*outer, f"…{depth - 2 * ENDS}…", *self._upwards(entry, ENDS, text)[::-1]]

    def _upwards(self, entry: int, count: int, text: Callable[[int], str]) -> list[str]:
        found: list[str] = []
        rows = self.pool.rows()
        for _ in range(count):
            found.append(text(entry))
            entry = rows[entry].parent
        return found
