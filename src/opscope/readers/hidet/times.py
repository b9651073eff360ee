"""Seconds per pass, from `profile_pass_instrument`: its log file, or what it printed (with colours and "started…")."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"^\s*(\w+)\s+(\d+(?:\.\d+)?) seconds\s*$")


def entries(text: str) -> list[tuple[str, float]]:
    """(pass, seconds) in order."""
    found: list[tuple[str, float]] = []
    for line in text.splitlines():
        match = _LINE.match(_COLOUR.sub("", line))
        if match and len(match[2]) < 20:
            found.append((match[1], float(match[2])))
    return found


def fitted(passes: Sequence[str], text: str) -> list[float] | None:
    """The seconds of these passes; None where the text is about others. A log is appended to: the last run counts."""
    found = entries(text)
    wanted = list(passes)
    for start in range(len(found) - len(wanted), -1, -1):
        run = found[start : start + len(wanted)]
        if [name for name, _ in run] == wanted:
            return [seconds for _, seconds in run]
    return None
