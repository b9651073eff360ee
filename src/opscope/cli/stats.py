"""opscope stats X: cost."""

from __future__ import annotations

import sys
from typing import Any

import click

from opscope.analysis.costs.stats import GraphStats
from opscope.capture import Capture

from .common import STAGE, opened
from .rows import print_lines, print_rows
from .streams import to_json

BY = ("module", "op", "kind", "node", "kernel", "phase")
STYLES = ("opscope", "megengine")
_ROWS = 40  # of a table that is not a tree, when printed as text


def _columns(context: click.Context, option: click.Parameter, given: str | None) -> list[str] | None:
    return None if given is None else [name for part in given.split(",") if (name := part.strip())]


@click.command()
@opened
@STAGE
@click.option("--by", type=click.Choice(BY), default="module", show_default=True, help="What each row is.")
@click.option(
    "--depth", type=click.IntRange(min=1), metavar="N", help="Show modules down to this depth (default: what fits)."
)
@click.option("--columns", metavar="A,B,…", callback=_columns, help="Columns to show, in this order.")
@click.option("--sort", metavar="COLUMN", help="Sort by this column, largest first; shares are then of this column.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show only the first N rows.")
@click.option("--device", metavar="NAME", help="Add the minimum time on this device (h100, a100, rtx4090, …).")
@click.option("--no-fold", is_flag=True, help="Show equal neighbouring modules separately.")
@click.option("--json", "form", flag_value="json", help="For programs: one JSON object with exact figures.")
@click.option("--csv", "form", flag_value="csv", help="For spreadsheets: exact figures.")
@click.option("--markdown", "form", flag_value="markdown", help="For documents.")
@click.option(
    "--style", type=click.Choice(STYLES), default="opscope", show_default=True, help="Counting conventions and layout."
)
def command(
    capture: Capture,
    stage: str | None,
    by: str,
    depth: int | None,
    columns: list[str] | None,
    sort: str | None,
    top: int | None,
    device: str | None,
    no_fold: bool,
    form: str | None,
    style: str,
) -> None:
    """Show the cost of X: parameters, MACs, activations, memory, bytes. Inexact figures are marked.

    \b
    opscope stats X --depth 2                       modules, two levels deep
    opscope stats X --by op --sort bytes            which operators move the most memory
    opscope stats X --by node --top 20              the most expensive operators
    opscope stats X --columns output,params,flops   other columns
    opscope stats X --device h100                   the minimum time on an H100
    """
    from opscope.export import cost_tables
    from opscope.statistics import of_capture

    if top is None and form is None and by not in ("module", "phase"):
        top = _ROWS
    stats = of_capture(capture, stage)
    if style == "megengine":
        _print_as_megengine(stats, by, as_json=form == "json")
        return
    options: dict[str, Any] = {"columns": columns, "depth": depth, "sort": sort, "top": top, "fold": not no_fold}
    found = stats.table(by, device=device, **options)
    if form == "json":
        click.echo(f'{{\n  "total": {_inner(stats.totals())},\n  "rows": ', nl=False)
        print_rows(found.each_row(), "  ")
        click.echo("\n}")
    elif form == "csv":
        click.echo(found.csv(), nl=False)
    elif form == "markdown":
        click.echo(
            "\n".join([found.markdown(), "", *(f"- {line}" for line in cost_tables.summary(stats, found.report))])
        )
    elif sys.stdout.isatty():
        from .coloured import print_table

        print_table(stats, found.report)
    else:
        print_lines(cost_tables.plain_lines(found.report))
        click.echo("\n".join(["", *cost_tables.summary(stats, found.report)]))


def _print_as_megengine(stats: GraphStats, by: str, *, as_json: bool) -> None:
    from opscope.export.megengine.style import tables_of

    found = tables_of(stats, by)
    if not as_json:
        print_lines(found.lines())
        return
    click.echo(f'{{\n  "total": {_inner(found.total._asdict())}', nl=False)
    for name, table in found.tables.items():
        click.echo(f',\n  "{name}": ', nl=False)
        print_rows(table.rows(), "  ")
    for name, missing in found.missing().items():
        click.echo(f',\n  "{name}": {_inner(missing)}', nl=False)
    click.echo("\n}")


def _inner(data: Any) -> str:
    return to_json(data).replace("\n", "\n  ")
