"""opscope info X: describe a file."""

from __future__ import annotations

from pathlib import Path

import click

import opscope
from opscope.analysis import summary
from opscope.analysis.costs.devices import device as device_called
from opscope.analysis.costs.networks import network as network_called
from opscope.analysis.diff.compiled_limits import exceeded_in
from opscope.analysis.diff.limits import parse
from opscope.analysis.world import estimate
from opscope.analysis.world.summary import world_of
from opscope.capture import Capture
from opscope.errors import OpscopeError

from .common import opened
from .streams import to_json


@click.command()
@opened
@click.argument("more", metavar="[X…]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.option("--device", metavar="NAME", help="Of a world of ranks: how long a step takes at least on it (h100, …).")
@click.option("--network", metavar="NAME", help="With --device: what joins the devices (dgxh100, p5, …).")
@click.option(
    "--fail-on",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 1 if this holds of the compiled code, such as 'breaks>0' (repeatable; see `opscope diff --help`).",
)
@click.pass_context
def command(
    context: click.Context,
    capture: Capture,
    more: tuple[Path, ...],
    as_json: bool,
    device: str | None,
    network: str | None,
    conditions: tuple[str, ...],
) -> None:
    """Describe X: operators, modules, phases, gradients, kernels, and what is missing. Of several files, each of one
    rank of a program, say which ranks compute the same and which stand out."""
    if more:
        from opscope.worlds import as_one

        capture = as_one([capture, *map(opscope.open, more)])
    found = _estimate(capture, device, network)
    limits = [parse(text) for text in conditions]
    for limit in limits:
        if not limit.is_compiled:
            raise OpscopeError(f"--fail-on {limit.text!r} is about a difference: opscope diff A B --fail-on …")
    if as_json:
        estimated = {} if found is None else {"estimate": estimate.info(found, capture)}
        click.echo(to_json({**summary.info(capture), **estimated}))
    else:
        from .describe import console, describe

        console().print(describe(capture, context.params["file"].name))
        if found is not None:
            from .worlds import timeline

            console().print(timeline(found, capture))
    failed = [why for limit in limits if (why := exceeded_in(limit, None, capture)) is not None]
    for line in failed:
        click.echo(f"fails: {line}", err=True)
    context.exit(1 if failed else 0)


def _estimate(capture: Capture, device: str | None, network: str | None) -> estimate.Estimate | None:
    if device is None and network is None:
        return None
    if device is None or network is None:
        raise OpscopeError("an estimate needs both: --device h100 --network dgxh100")
    world = world_of(capture)
    if world is None:
        raise OpscopeError("--device and --network are about a world of ranks: opscope trace --world N train.py")
    return estimate.estimate(capture, world, device_called(device), network_called(network))
