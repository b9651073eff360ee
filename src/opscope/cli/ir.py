"""opscope ir X: the graph, line by line."""

from __future__ import annotations

import click

from opscope.capture import Capture
from opscope.errors import OpscopeError
from opscope.ir.text import lines, stage_lines

from .common import STAGE, opened

STYLES = ("table", "text", "code", "native")


@click.command()
@opened
@STAGE
@click.option("--style", type=click.Choice(STYLES), default="table", show_default=True, help="How to print it.")
def command(capture: Capture, stage: str | None, style: str) -> None:
    """Print the graph of X.

    \b
    table   one operator per line, in columns: the framework's own table if the capture has it
    text    everything, in opscope's own notation
    code    the framework's generated code   (if the capture has it)
    native  the framework's own IR           (if the capture has it)
    """

    from .table import print_lines, print_nodes

    if style == "text" and stage is None:
        print_lines(lines(capture))
        return
    chosen = capture.stage(stage)
    if style == "text":
        print_lines(stage_lines(chosen))
    elif style in chosen.listings:
        click.echo(chosen.listings[style])
    elif style == "table":
        print_nodes(chosen.graph)
    else:
        # the other listings (`symbols`, `signature`) are for the page
        texts = [kind for kind in STYLES[2:] if kind in chosen.listings]
        has = ", ".join(["table", "text", *texts])
        raise OpscopeError(
            f"stage {chosen.name!r} has no {style} listing: the capture does not contain one (it has: {has})"
        )
