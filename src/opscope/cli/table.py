"""A graph as a table, one operator per line, printed row by row, so that a million lines are no problem."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import click

from opscope.ir import Node, Value
from opscope.ir.places import users_frame
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
_HEAD = ("#", "phase", "op", "outputs", "inputs", "module", "source")
_WIDE = (6, 9, 20, 30, 30, 34, 30)  # when piped: wider where the first rows need it; what is longer is never cut
_MOST_WIDE = 80
_LOOKED_AT = 1_000  # rows


def print_nodes(nodes: Iterable[Node]) -> None:
    terminal = sys.stdout.isatty()
    coming = ((node.phase, tuple(_cells(node))) for node in nodes)
    first = list(islice(coming, 0 if terminal else _LOOKED_AT))
    widths = _fitted(shutil.get_terminal_size().columns) if terminal else _needed([cells for _, cells in first])
    click.secho(_line(_HEAD, widths, terminal), bold=True)
    for phase, cells in chain(first, coming):
        line = _line(cells, widths, terminal)
        click.secho(line, fg=_ANSI[COLOURS[phase]]) if terminal else click.echo(line)


def _cells(node: Node) -> Iterator[str]:
    yield str(node.index)
    yield node.phase
    yield node.op
    yield ", ".join(_made(value) for value in node.outputs)
    yield ", ".join("null" if use.value is None else f"%{use.value.index}" for use in node.uses)
    yield node.path
    place = users_frame(node.frames)
    # The last two parts of a path identify the file; the rest is usually the same for all.
    parts = [] if place is None else place.file.replace("\\", "/").split("/")[-2:]
    yield "" if place is None else f"{'/'.join(parts)}:{place.line}"


def _made(value: Value) -> str:
    return f"%{value.index}{' ' + value.name if value.name else ''} {value.type}"


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
    shown = (left(clipped(cell, wide if cut else 10_000), wide) for cell, wide in zip(cells, widths, strict=True))
    return "  ".join(shown).rstrip()
