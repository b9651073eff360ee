"""A graph as a table, one operator per line, printed row by row, so that a million lines are no problem."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator

import click

from opscope.ir import Node, Value

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
_WIDE = (6, 9, 20, 30, 30, 34, 30)  # when piped: wide enough for most names, which are never cut


def print_nodes(nodes: Iterable[Node]) -> None:
    terminal = sys.stdout.isatty()
    widths = _fitted(shutil.get_terminal_size().columns) if terminal else _WIDE
    click.secho(_line(_HEAD, widths, terminal), bold=True)
    for node in nodes:
        line = _line(tuple(_cells(node)), widths, terminal)
        click.secho(line, fg=_ANSI[COLOURS[node.phase]]) if terminal else click.echo(line)


def _cells(node: Node) -> Iterator[str]:
    yield str(node.index)
    yield node.phase
    yield node.op
    yield ", ".join(_made(value) for value in node.outputs)
    yield ", ".join("null" if use.value is None else f"%{use.value.index}" for use in node.uses)
    yield node.path
    frames = node.frames
    # The last two parts of a path identify the file; the rest is usually the same for all.
    yield f"{'/'.join(frames[-1].file.split('/')[-2:])}:{frames[-1].line}" if frames else ""


def _made(value: Value) -> str:
    return f"%{value.index}{' ' + value.name if value.name else ''} {value.type}"


def _fitted(columns: int) -> tuple[int, ...]:
    """The text columns share the width of the terminal."""
    fixed = _WIDE[0] + _WIDE[1] + 2 * (len(_WIDE) - 1)
    spare = max(columns - fixed, 60)
    total = sum(_WIDE[2:])
    return (*_WIDE[:2], *(max(8, spare * width // total) for width in _WIDE[2:]))


def _line(cells: tuple[str, ...], widths: tuple[int, ...], cut: bool) -> str:
    shown = (clipped(cell, width if cut else 10_000).ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(shown).rstrip()
