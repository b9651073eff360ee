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
    "--tensorboard",
    "log",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a TensorBoard log.",
)
@STAGE
@click.option(
    "--depth", type=click.IntRange(min=1), metavar="N", help="Expand modules N levels deep (pictures, .mmd, .dot)."
)
@click.option("--whole", is_flag=True, help="Pictures: draw every operator, including repeats.")
@click.option("--open", "open_", multiple=True, metavar="SCOPE", help="Pictures: expand this module too (repeatable).")
@click.option("--phase", "phases", multiple=True, metavar="PHASE", help="Pictures: draw only this phase (repeatable).")
@click.option("--edges", metavar="WORDS", help="Pictures, .dot: edge labels, any of shape,dtype,place,grad, or none.")
@click.option("--parameters", is_flag=True, help="Pictures, .dot: draw parameters and constants as boxes.")
@click.option("--legend", is_flag=True, help="Pictures, .dot: say what the colours mean.")
@click.option("--play", is_flag=True, help=".svg, .webm: the run: a bead follows it while the memory curve grows.")
@click.option("--direction", metavar="down|right", help="Pictures: direction of data flow (default: down).")
@click.option("--theme", metavar="light|dark", help="Pictures: colour theme (default: light).")
@click.option("--engine", metavar="opscope|graphviz", help="Pictures: the layout engine (default: opscope).")
def command(
    capture: Capture,
    out: Path | None,
    log: Path | None,
    stage: str | None,
    depth: int | None,
    open_: tuple[str, ...],
    size: str | None,
    **look: Any,
) -> None:
    """Convert X to another format; the extension of OUT selects it.

    \b
    .opscope   everything, for opscope itself (and any reader of Arrow tables in a zip)
    .html      the interactive page in one offline file
    .parquet   a folder of Parquet tables, for DuckDB, Polars, pandas, Spark
    .mmd       a Mermaid diagram of its modules, for a README or an issue
    .json      for Model Explorer
    .dot       Graphviz: every operator, or with --depth one box per module
    .svg .png .pdf  a picture, drawn as on the page (needs `pip install 'opscope[picture]'`)
    .webm      a video of a training step (needs an installed Chromium, Chrome or Edge)

    With --tensorboard DIR, a log for `tensorboard --logdir DIR`.
    """
    if out is None and log is None:
        raise click.UsageError("Missing option '-o' / '--output' (or '--tensorboard').")
    if log is not None:
        capture.save(log, stage=stage, format=".tensorboard")
        click.echo(f"{log}: open it with `tensorboard --logdir {log}`", err=True)
    if out is None:
        return
    capture.save(out, stage=stage, depth=depth, open=open_, size=size, say=_say, **look)
    if not out.is_dir():
        click.echo(f"{out}: {out.stat().st_size:,} bytes", err=True)
    elif out.suffix == ".tensorboard":
        click.echo(f"{out}: open it with `tensorboard --logdir {out}`", err=True)
    else:
        click.echo(f"{out}: {len(list(out.glob('*.parquet')))} tables", err=True)


def _say(text: str) -> None:
    """One line; names in a file may contain anything."""
    click.echo("".join(c if c.isprintable() else "�" for c in text), err=True)
