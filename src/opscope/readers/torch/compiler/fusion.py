"""The scheduler's own words: what `TORCH_LOGS=+fusion` prints while Inductor tries to fuse operators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_SAID = re.compile(r"\[__fusion\] (.*)$")
_BEGINS = re.compile(r"=+ attempting fusion \(1/\d+\)")
_REFUSED = re.compile(r"^cannot fuse (\S{1,10000}) with (\S{1,10000}): (.*)$")
_ORIGINS = re.compile(r"SchedulerNode\(name=\\*'(op\d+)\\*'\), [^{}]{0,400}?origins=OrderedSet\(\[([^\]]*)\]")
_MOST_REASONS = 200_000


@dataclass
class Round:
    """Of one graph."""

    origins: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # operation -> post-grad operators
    why: list[tuple[str, str, str]] = field(default_factory=list["tuple[str, str, str]"])


def parse(lines: Iterable[str]) -> list[Round]:
    """One for each graph that Inductor scheduled, in order."""
    rounds: list[Round] = []
    for line in lines:
        if "[__fusion]" not in line:
            continue
        said = _SAID.search(line)
        if said is None:
            continue
        text = said[1]
        if _BEGINS.search(text):
            rounds.append(Round())
        elif rounds:
            refused = _REFUSED.match(text)
            if refused and len(rounds[-1].why) < _MOST_REASONS:
                rounds[-1].why.append((refused[1], refused[2], refused[3].strip()))
            elif "origins=" in text:
                for name, origins in _ORIGINS.findall(text):
                    if name not in rounds[-1].origins:
                        rounds[-1].origins[name] = [part.strip() for part in origins.split(",") if part.strip()]
    return rounds
