"""A graph as a table, one operator per line, printed row by row, so that a million lines are no problem."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from itertools import chain, islice

import click

from opscope.ir import Graph
from opscope.ir.rows import Rows
from opscope.ir.widths import left, width

from .describe import COLOURS, clipped

_ANSI = {
    "grey62": 8,
    "dodger_blue1": "blue",
    "dark_orange": "yellow",
    "hot_pink": "magenta",
    "green3": "green",
    "grey50": 8,
}
_BLOCK = 1000  # lines
_HEAD = ("#", "phase", "op", "outputs", "inputs", "module", "source")
_WIDE = (6, 9, 20, 30, 30, 34, 30)  # when piped: wider where the first rows need it; what is longer is never cut
_MOST_WIDE = 80
_LOOKED_AT = 1_000  # rows


def print_nodes(graph: Graph, nodes: Iterable[int] | None = None) -> None:
    """These operators of a graph, or all."""
    terminal = sys.stdout.isatty()
    rows = Rows(graph)
    chosen = range(graph.n_nodes) if nodes is None else nodes
    coming = ((node, _cells(rows, node)) for node in chosen)
    first = list(islice(coming, 0 if terminal else _LOOKED_AT))
    widths = _fitted(shutil.get_terminal_size().columns) if terminal else _needed([cells for _, cells in first])
    click.secho(_line(_HEAD, widths, terminal), bold=True)
    if terminal:
        for node, cells in coming:
            click.secho(_line(cells, widths, terminal), fg=_ANSI[COLOURS[rows.phase(node)]])
    else:
        print_lines(_line(cells, widths, terminal) for _, cells in chain(first, coming))


def print_lines(lines: Iterable[str]) -> None:
    """Many lines: written in blocks, because a line by itself is flushed each time."""
    source = iter(lines)
    while block := list(islice(source, _BLOCK)):
        click.echo("\n".join(block))


def _cells(rows: Rows, node: int) -> tuple[str, ...]:
    place = rows.users_frame(node)
    # The last two parts of a path identify the file; the rest is usually the same for all.
    parts = [] if place is None else place.file.replace("\\", "/").split("/")[-2:]
    return (
        str(node),
        rows.phase(node),
        rows.strings[rows.op[node]],
        ", ".join([_made(rows, value) for value in rows.made(node)]),
        ", ".join([f"%{value}" if value >= 0 else "null" for value in rows.used(node)]),
        rows.path(rows.scope[node]),
        "" if place is None else f"{'/'.join(parts)}:{place.line}",
    )


def _made(rows: Rows, value: int) -> str:
    name = rows.value_name[value]
    return f"%{value}{' ' + rows.strings[name] if name else ''} {rows.type_text(rows.value_type[value])}"


def _needed(rows: list[tuple[str, ...]]) -> tuple[int, ...]:
    """Wide enough for these rows, as long as that can still be read."""
    found = list(_WIDE)
    for row in rows:
        found = [max(old, min(width(cell), _MOST_WIDE)) for old, cell in zip(found, row, strict=True)]
    return tuple(found)


def _fitted(columns: int) -> tuple[int, ...]:
    """The text columns share the width of the terminal."""
    fixed = _WIDE[0] + _WIDE[1] + 2 * (len(_WIDE) - 1)
    spare = max(columns - fixed, 60)
    total = sum(_WIDE[2:])
    return (*_WIDE[:2], *(max(8, spare * wide // total) for wide in _WIDE[2:]))


def _line(cells: tuple[str, ...], widths: tuple[int, ...], cut: bool) -> str:
    shown = [left(clipped(cell, wide if cut else 10_000), wide) for cell, wide in zip(cells, widths, strict=True)]
    return "  ".join(shown).rstrip()
