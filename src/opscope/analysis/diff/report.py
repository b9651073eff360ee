"""A diff for people: lines for a terminal, and one HTML page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opscope.ir import Graph

from .changes import CLASSES, Change, Diff

MOST = 40  # changes of a class that are shown, unless all are asked for
_WORDS = {
    "fused": "several operators became one",
    "split": "one operator became several",
    "rewritten": "several operators became others",
    "changed": "the same operator in the same place, with something else about it",
    "moved": "the same operator in another place",
    "removed": "operators that are gone",
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
    for kind in CLASSES:
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


# -- HTML -------------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #8a8a8a; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
.bar { display: flex; height: .7rem; border-radius: .35rem; overflow: hidden; background: var(--line); }
.bar span { display: block; } .dim, small { color: var(--dim); }
details { border-top: 1px solid var(--line); padding: .35rem 0; } summary { cursor: pointer; }
code { font: 13px/1.5 ui-monospace, monospace; } .n { color: var(--dim); display: inline-block; min-width: 3.5rem; }
table { border-collapse: collapse; margin: .3rem 0 .6rem 1rem; }
td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
.fused { --c: #7b61ff; } .split { --c: #0a84ff; } .rewritten { --c: #e67e22; } .changed { --c: #d4a106; }
.moved { --c: #888; } .removed { --c: #e5484d; } .added { --c: #30a46c; } .same { --c: #8884; }
.bar span { background: var(--c); } b.kind { color: var(--c); }
"""


def page(title: str, comparisons: Iterable[Compared]) -> str:
    """One HTML file that needs nothing else."""
    body = "".join(_section(compared) for compared in comparisons)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{html.escape(title)}</h1>{body}</body></html>\n"
    )


def _section(compared: Compared) -> str:
    diff = compared.diff
    parts = [f"<h2>{html.escape(f'{compared.before} → {compared.after}')}</h2>"]
    seconds = "" if compared.seconds is None else f" · {compared.seconds:.3f} s"
    counts = f"{diff.before.n_nodes:,} → {diff.after.n_nodes:,} operators{seconds} · {told(diff)}"
    parts.append(f"<p>{html.escape(counts)}</p>{_bar(diff)}")
    for old, new in sorted(diff.renamed.items()):
        parts.append(f'<p class="dim">module {html.escape(old)} is called {html.escape(new)}</p>')
    for kind in CLASSES:
        changes = [change for change in diff.changes if change.kind == kind]
        if changes:
            parts.append(f'<p class="{kind}"><b class="kind">{kind}</b> <span class="dim">{_WORDS[kind]}</span></p>')
            parts += [_change(diff, change) for change in changes[:2000]]
            if len(changes) > 2000:
                parts.append(f'<p class="dim">… and {len(changes) - 2000:,} more</p>')
    return f"<section>{''.join(parts)}</section>"


def _bar(diff: Diff) -> str:
    touched = dict.fromkeys(CLASSES, 0)
    for change in diff.changes:
        touched[change.kind] += len(change.before) + len(change.after)
    touched["same"] = 2 * len(diff.same)
    whole = sum(touched.values()) or 1
    spans = [
        f'<span class="{kind}" style="width:{100 * count / whole:.2f}%" title="{kind}: {count} operators"></span>'
        for kind, count in touched.items()
        if count
    ]
    return f'<div class="bar">{"".join(spans)}</div>'


def _change(diff: Diff, change: Change) -> str:
    place = where(diff, change)
    head = f'<span class="n">{change.sizes}</span><code>{html.escape(_said(diff, change))}</code>'
    note = f" <small>{html.escape(place)}</small>" if place else ""
    rows = [_row("before", diff.before, node) for node in change.before]
    rows += [_row("after", diff.after, node) for node in change.after]
    return (
        f"<details><summary>{head}{note}</summary><table>{''.join(rows)}</table>"
        f"<small>evidence: {html.escape(change.evidence)}</small></details>"
    )


def _row(side: str, graph: Graph, index: int) -> str:
    node = graph.node(index)
    types = ", ".join(str(value.type) for value in node.outputs)
    cells = [side, str(index), node.op, types, node.path]
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
