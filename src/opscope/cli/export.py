"""opscope export X -o OUT."""

from __future__ import annotations

from pathlib import Path

import click

from opscope.capture import Capture

from .common import STAGE, opened


@click.command()
@opened
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path), metavar="OUT", help="Where to.")
@STAGE
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Draw modules N levels deep (.mmd, .dot).")
def command(capture: Capture, out: Path, stage: str | None, depth: int | None) -> None:
    """Write X as another format; the ending of OUT says which.

    \b
    .opscope   everything, for opscope itself (and any reader of Arrow tables in a zip)
    .html      one page with everything in it: works from disk, offline
    .parquet   a folder of Parquet tables, for DuckDB, Polars, pandas, Spark
    .mmd       a Mermaid drawing of its modules, for a README or an issue
    .json      for Model Explorer
    .dot       Graphviz: every operator, or with --depth one box per module
    """
    capture.save(out, stage=stage, depth=depth)
    if not out.is_dir():
        click.echo(f"{out}: {out.stat().st_size:,} bytes", err=True)
    else:
        click.echo(f"{out}: {len(list(out.glob('*.parquet')))} tables", err=True)
