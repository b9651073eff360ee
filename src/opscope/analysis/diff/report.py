"""A diff for people: lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opscope.ir import Graph
from opscope.ir.enumerations import CHANGE_CLASSES

from .changes import Change, Diff

MOST = 40  # changes of a class that are shown, unless all are asked for
_WORDS = {
    "fused": "several operators became one",
    "split": "one operator became several",
    "rewritten": "several operators became others",
    "changed": "the same operator in the same place, with something else about it",
    "moved": "the same operator in another place",
    "removed": "removed operators",
    "added": "operators that are new",
}


class Line(NamedTuple):
    """A line of text; the style is a class of changes, or title, dim, or nothing."""

    text: str
    style: str = ""


class Compared(NamedTuple):
    """A diff with the names of what was compared."""

    before: str
    after: str
    diff: Diff
    seconds: float | None = None


def lines(compared: Compared, every: bool = False) -> Iterator[Line]:
    """The whole report of one comparison."""
    yield Line(headline(compared), "title")
    diff = compared.diff
    yield from (Line(f"  module {old} is called {new}", "dim") for old, new in sorted(diff.renamed.items()))
    for kind in CHANGE_CLASSES:
        changes = [change for change in diff.changes if change.kind == kind]
        if not changes:
            continue
        yield Line("")
        yield Line(f"  {kind} ({len(changes):,}): {_WORDS[kind]}", kind)
        rows = list(_folded(diff, changes))
        for row in rows if every else rows[:MOST]:
            yield Line(f"    {row}")
        if len(rows) > MOST and not every:
            yield Line(f"    … and {len(rows) - MOST:,} more (--all shows them)", "dim")


def headline(compared: Compared) -> str:
    diff = compared.diff
    seconds = "" if compared.seconds is None else f"  {compared.seconds:.3f} s"
    counts = f"{diff.before.n_nodes:,} → {diff.after.n_nodes:,} operators"
    return f"{compared.before} → {compared.after}{seconds}  {counts}  {told(diff)}"


def told(diff: Diff) -> str:
    """`1 rewritten, 14 same`, or that nothing changed."""
    if diff.is_empty:
        return "nothing changed"
    return ", ".join(f"{count:,} {kind}" for kind, count in diff.summary().items() if count)


def _folded(diff: Diff, changes: Iterable[Change]) -> Iterator[str]:
    """One row for each change; those that say the same are one row with how often."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(_said(diff, change), []).append(change)
    for text, alike in groups.items():
        times = f"  ×{len(alike)}" if len(alike) > 1 else ""
        places = list(dict.fromkeys(place for change in alike if (place := where(diff, change))))
        shown = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        evidence = "" if alike[0].evidence == "structure" else f"  ({alike[0].evidence})"
        yield f"{alike[0].sizes:>5}  {text}{times}{f'  in {shown}' if shown else ''}{evidence}"


def _said(diff: Diff, change: Change) -> str:
    if change.kind in ("changed", "moved"):
        ops = {diff.before.node(change.before[0]).op, diff.after.node(change.after[0]).op}
        return f"{'/'.join(sorted(ops))}: {change.detail}" if len(ops) == 1 else change.detail
    return change.detail


def where(diff: Diff, change: Change) -> str:
    """The modules that a change is about."""
    paths = [*_paths(diff.after, change.after), *_paths(diff.before, change.before)]
    return ", ".join(dict.fromkeys(path for path in paths if path)) if len(set(paths)) <= 3 else ""


def _paths(graph: Graph, nodes: Iterable[int]) -> list[str]:
    return [graph.node(node).path for node in nodes]
