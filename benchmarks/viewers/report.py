"""Tables: what was measured beside what it must be, on the terminal and in RESULTS.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

TITLE = "## bench_viewer.py: the page and its layout compared with others"


@dataclass
class Check:
    """One line of what must be shown. `ratio` is figure / limit; at most 1 is good for `at_most`, at least 1 else."""

    what: str
    figure: str
    limit: str
    ratio: float
    good: bool

    @classmethod
    def at_most(cls, what: str, figure: float, limit: float, unit: str, note: str = "") -> Check:
        shown, most = f"{_show(figure)} {unit}".strip(), f"≤ {_show(limit)} {unit}".strip()
        return cls(what, shown + note, most, _ratio(figure, limit), figure <= limit)

    @classmethod
    def at_least(cls, what: str, figure: float, limit: float, unit: str, note: str = "") -> Check:
        shown, least = f"{_show(figure)} {unit}".strip(), f"≥ {_show(limit)} {unit}".strip()
        return cls(what, shown + note, least, _ratio(figure, limit), figure >= limit)

    def row(self) -> str:
        return f"| {self.what} | {self.figure} | {self.limit} | {self.ratio:.2f} | {'yes' if self.good else '**no**'} |"


def _ratio(figure: float, limit: float) -> float:
    return figure / limit if limit else (0.0 if not figure else float("inf"))


def _show(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


@dataclass
class Block:
    """One part of the benchmark: its figures, and what they must be."""

    name: str
    title: str
    about: str
    lines: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def table(self, head: list[str], rows: list[list[str]]) -> None:
        self.lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        self.lines += ["| " + " | ".join(row + [""] * (len(head) - len(row))) + " |" for row in rows]

    def text(self) -> str:
        out = [f"### {self.title}", "", self.about, *self.lines]
        if self.checks:
            out += ["", "| must be shown | measured | limit | measured / limit | |", "|---|---|---|---|---|"]
            out += [check.row() for check in self.checks]
        return "\n".join(out)


def update(path: Path, blocks: list[Block], order: list[str]) -> None:
    """Put each block where the block of the same name stands; the others keep the figures of their own last run."""
    text = path.read_text(encoding="utf-8")
    before, found, rest = text.partition(TITLE)
    old = dict(re.findall(r"<!-- bench_viewer: (\w+) -->\n(.*?)\n<!-- end of \1 -->", rest, re.DOTALL))
    # What follows our section is another benchmark's.
    after = re.search(r"^## ", rest, re.MULTILINE)
    tail = rest[after.start() :] if found and after else ""
    parts = old | {block.name: block.text() for block in blocks}
    ours = [f"<!-- bench_viewer: {n} -->\n{parts[n]}\n<!-- end of {n} -->" for n in order if n in parts]
    text = "\n\n".join([before.rstrip(), TITLE, *ours, *([tail.strip()] if tail else [])])
    path.write_text(text + "\n", encoding="utf-8")
