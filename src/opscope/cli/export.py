"""opscope export X -o OUT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from opscope.capture import Capture

from .common import STAGE, opened


@click.command()
@opened
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="OUT", help="Where to.")
@click.option(
    "--tensorboard", "log", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="A TensorBoard log."
)
@STAGE
@click.option(
    "--depth", type=click.IntRange(min=1), metavar="N", help="Draw modules N levels deep (pictures, .mmd, .dot)."
)
@click.option("--whole", is_flag=True, help="Pictures: every operator, repeats too, however many there are.")
@click.option("--open", "open_", multiple=True, metavar="SCOPE", help="Pictures: open this module too (repeatable).")
@click.option("--phase", "phases", multiple=True, metavar="PHASE", help="Pictures: only this phase (repeatable).")
@click.option("--direction", metavar="down|right", help="Pictures: where data flows to (default: down).")
@click.option("--theme", metavar="light|dark", help="Pictures: colours (default: light).")
@click.option("--size", metavar="W|WxH", help="Pictures: the width, or a box they fit into, in pixels.")
@click.option("--engine", metavar="opscope|graphviz", help="Pictures: who lays them out (default: opscope).")
def command(
    capture: Capture,
    out: Path | None,
    log: Path | None,
    stage: str | None,
    depth: int | None,
    open_: tuple[str, ...],
    **look: Any,
) -> None:
    """Write X as another format; the ending of OUT says which.

    \b
    .opscope   everything, for opscope itself (and any reader of Arrow tables in a zip)
    .html      one page with everything in it: works from disk, offline
    .parquet   a folder of Parquet tables, for DuckDB, Polars, pandas, Spark
    .mmd       a Mermaid drawing of its modules, for a README or an issue
    .json      for Model Explorer
    .dot       Graphviz: every operator, or with --depth one box per module
    .svg .png .pdf  a picture, drawn as on the page (needs `pip install 'opscope[picture]'`)

    With --tensorboard DIR, a log for `tensorboard --logdir DIR`.
    """
    if out is None and log is None:
        raise click.UsageError("Missing option '-o' / '--output' (or '--tensorboard').")
    if log is not None:
        capture.save(log, stage=stage, format=".tensorboard")
        click.echo(f"{log}: look at it with `tensorboard --logdir {log}`", err=True)
    if out is None:
        return
    capture.save(out, stage=stage, depth=depth, open=open_, say=_say, **look)
    if not out.is_dir():
        click.echo(f"{out}: {out.stat().st_size:,} bytes", err=True)
    else:
        click.echo(f"{out}: {len(list(out.glob('*.parquet')))} tables", err=True)


def _say(text: str) -> None:
    """One line; names in a file may hold anything."""
    click.echo("".join(c if c.isprintable() else "�" for c in text), err=True)
