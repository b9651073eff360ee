"""A graph as a table, one operator per line, printed row by row, so that a million lines are no problem."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from itertools import islice

import click

from opscope.ir import Graph
from opscope.ir.rows import Rows

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
_WIDE = (6, 9, 20, 30, 30, 34, 30)  # when piped: wide enough for most names, which are never cut


def print_nodes(graph: Graph, nodes: Iterable[int] | None = None) -> None:
    """These operators of a graph, or all."""
    terminal = sys.stdout.isatty()
    widths = _fitted(shutil.get_terminal_size().columns) if terminal else _WIDE
    click.secho(_line(_HEAD, widths, terminal), bold=True)
    rows = Rows(graph)
    chosen = range(graph.n_nodes) if nodes is None else nodes
    if terminal:
        for node in chosen:
            click.secho(_line(_cells(rows, node), widths, terminal), fg=_ANSI[COLOURS[rows.phase(node)]])
    else:
        print_lines(_line(_cells(rows, node), widths, terminal) for node in chosen)


def print_lines(lines: Iterable[str]) -> None:
    """Many lines: written in blocks, because a line by itself is flushed each time."""
    source = iter(lines)
    while block := list(islice(source, _BLOCK)):
        click.echo("\n".join(block))


def _cells(rows: Rows, node: int) -> tuple[str, ...]:
    frame = rows.frame(node)
    return (
        str(node),
        rows.phase(node),
        rows.strings[rows.op[node]],
        ", ".join([_made(rows, value) for value in rows.made(node)]),
        ", ".join([f"%{value}" if value >= 0 else "null" for value in rows.used(node)]),
        rows.path(rows.scope[node]),
        # The last two parts of a path identify the file; the rest is usually the same for all.
        f"{'/'.join(frame.file.split('/')[-2:])}:{frame.line}" if frame is not None else "",
    )


def _made(rows: Rows, value: int) -> str:
    name = rows.value_name[value]
    return f"%{value}{' ' + rows.strings[name] if name else ''} {rows.type_text(rows.value_type[value])}"


def _fitted(columns: int) -> tuple[int, ...]:
    """The text columns share the width of the terminal."""
    fixed = _WIDE[0] + _WIDE[1] + 2 * (len(_WIDE) - 1)
    spare = max(columns - fixed, 60)
    total = sum(_WIDE[2:])
    return (*_WIDE[:2], *(max(8, spare * width // total) for width in _WIDE[2:]))


def _line(cells: tuple[str, ...], widths: tuple[int, ...], cut: bool) -> str:
    shown = [clipped(cell, width if cut else 10_000).ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(shown).rstrip()
