"""opscope info X: describe a file."""

from __future__ import annotations

import click

from opscope.analysis import summary
from opscope.capture import Capture

from .common import opened
from .streams import to_json


@click.command()
@opened
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
def command(capture: Capture, as_json: bool) -> None:
    """Describe X: operators, modules, phases, gradients, kernels, and what is missing."""
    if as_json:
        click.echo(to_json(summary.info(capture)))
        return
    from .describe import console, describe

    ctx = click.get_current_context()
    console().print(describe(capture, ctx.params["file"].name))
