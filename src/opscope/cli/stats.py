"""opscope stats X: what it costs."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from opscope.capture import Capture

from .common import STAGE, opened

BY = ("module", "op", "kind", "node", "kernel", "phase")
STYLES = ("opscope", "megengine")
_ROWS = 40  # of a table that is not a tree, for people


def _columns(context: click.Context, option: click.Parameter, given: str | None) -> list[str] | None:
    return None if given is None else [name for part in given.split(",") if (name := part.strip())]


@click.command()
@opened
@STAGE
@click.option("--by", type=click.Choice(BY), default="module", show_default=True, help="What the rows are.")
@click.option(
    "--depth", type=click.IntRange(min=1), metavar="N", help="Modules down to this depth (default: what fits)."
)
@click.option("--columns", metavar="A,B,…", callback=_columns, help="Which columns, in this order.")
@click.option("--sort", metavar="COLUMN", help="The largest first; shares are then of this column.")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the first N rows.")
@click.option("--device", metavar="NAME", help="Adds the least time on this device (h100, a100, rtx4090, …).")
@click.option("--no-fold", is_flag=True, help="Show every one of a row of equal modules.")
@click.option("--json", "form", flag_value="json", help="For programs: one JSON object with exact figures.")
@click.option("--csv", "form", flag_value="csv", help="For spreadsheets: exact figures.")
@click.option("--markdown", "form", flag_value="markdown", help="For documents.")
@click.option("--style", type=click.Choice(STYLES), default="opscope", show_default=True, help="Whose conventions.")
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
    """What X costs: parameters, MACs, activations, memory, bytes; exact, or marked.

    \b
    opscope stats X --depth 2                       modules, two levels of them
    opscope stats X --by op --sort bytes            which operators move the most memory
    opscope stats X --by node --top 20              the most expensive operators
    opscope stats X --columns output,params,flops   other columns
    opscope stats X --device h100                   the least time that it can take there
    """
    from opscope.export import tables
    from opscope.statistics import of_capture

    if top is None and form is None and by not in ("module", "phase"):
        top = _ROWS
    stats = of_capture(capture, stage)
    if style == "megengine":
        from opscope.export.megengine.style import print_stats

        print_stats(stats, by, as_json=form == "json")
        return
    options: dict[str, Any] = {"columns": columns, "depth": depth, "sort": sort, "top": top, "fold": not no_fold}
    found = stats.table(by, device=device, **options)
    if form == "json":
        click.echo(json.dumps({"total": stats.totals(), "rows": found.rows}, ensure_ascii=False, indent=2))
    elif form == "csv":
        click.echo(found.csv(), nl=False)
    elif form == "markdown":
        click.echo("\n".join([found.markdown(), "", *(f"- {line}" for line in tables.summary(stats, found.report))]))
    elif sys.stdout.isatty():
        from .coloured import print_table

        print_table(stats, found.report)
    else:
        click.echo("\n".join([tables.plain(found.report), "", *tables.summary(stats, found.report)]))
