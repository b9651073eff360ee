"""opscope sql X QUERY: the tables of captures, asked in SQL."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import click

import opscope
from opscope import sql

from .rows import print_rows

_WIDEST = 60  # characters of a cell in a table
_IN_JSON = ("bool", "int", "float", "str", "list", "NoneType")  # dates and decimals become text


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="X...")
@click.argument("query")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N rows (default: 100 in a table).")
def command(files: tuple[Path, ...], query: str, as_json: bool, as_csv: bool, limit: int | None) -> None:
    """Ask the tables of one or several captures in SQL (DuckDB). Put QUERY in quotes.

    \b
    "select kind, count(*) from nodes group by kind order by 2 desc"
    "select scope, sum(macs) from nodes join costs using (capture, stage, node) group by scope"

    \b
    Views: nodes edges values modules links kernels costs times changes.
    Each has the columns capture and stage; docs/sql.md has all columns and useful queries.
    """
    captures = [(path.name, opscope.open(path)) for path in files]
    most = limit if limit is not None else None if as_json or as_csv else 100
    answer = sql.query(captures, query, most)
    if as_json:
        click.echo('{\n  "rows": ', nl=False)
        print_rows((dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows), "  ")
        click.echo(f',\n  "more": {str(answer.is_cut).lower()}\n}}')
    elif as_csv:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
        click.echo(text.getvalue(), nl=False)
    else:
        _print(answer)


def _print(answer: sql.Answer) -> None:
    from rich.table import Table
    from rich.text import Text

    from .describe import console

    table = Table(box=None, padding=(0, 1), header_style="bold")
    for number, name in enumerate(answer.columns):
        is_number = all(isinstance(row[number], int | float) for row in answer.rows if row[number] is not None)
        table.add_column(Text(name), justify="right" if is_number and answer.rows else "left", overflow="fold")
    for row in answer.rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console().print(table)
    if answer.is_cut:
        click.echo(f"{len(answer.rows):,} rows shown; there are more (--limit N)", err=True)


def _cell(value: Any) -> str:
    """As a table shows it: unknown is a question mark."""
    if value is None:
        return "?"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _plain(value: Any) -> Any:
    return value if type(value).__name__ in _IN_JSON else str(value)
