"""opscope trace TARGET [ARGS]...: run a script under capture."""

from __future__ import annotations

from pathlib import Path

import click

from opscope.capture import Capture
from opscope.tracers import registry
from opscope.tracers.script import ScriptFailed, run_script

_WITH_VALUE = ("-o", "--output", "--framework", "--how")


class Trace(click.Command):
    """Our options may stand before TARGET or right behind it; from the first other word on, all is the script's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ours_first(args))


def ours_first(args: list[str]) -> list[str]:
    """Our options, `--`, TARGET and its arguments."""
    ours: list[str] = []
    target: list[str] = []
    rest = list(args)
    while rest:
        word = rest[0]
        if word.partition("=")[0] in _WITH_VALUE:
            count = 1 if "=" in word else 2
            ours += rest[:count]
            del rest[:count]
        elif word in ("-h", "--help") and not target:
            return [word]
        elif word == "--":
            del rest[0]
            if target:
                break
        elif not target and not word.startswith("-"):
            target.append(rest.pop(0))
        else:
            break
    return [*ours, "--", *target, *rest] if target else [*ours, *rest]


@click.command(cls=Trace, options_metavar="[-o OUT] [--framework NAME] [--how HOW]")
@click.argument("target")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-o", "--output", "out", type=click.Path(path_type=Path), metavar="OUT", help="Where to (default: TARGET.opscope)."
)
@click.option("--framework", metavar="NAME", help=f"Record only this framework ({registry.supported()}).")
@click.option("--how", default="auto", show_default=True, help="The way to capture.")
def command(target: str, args: tuple[str, ...], out: Path | None, framework: str | None, how: str) -> None:
    """Run TARGET, a script or package.module:callable, and capture everything that it computes.

    \b
    opscope trace train.py --epochs 1                the capture is train.opscope
    opscope trace -o step.opscope train.py -o runs   the second -o is the script's
    """
    out = out or Path(f"{Path(target.rpartition(':')[0] or target).stem}.opscope")
    try:
        capture = Capture.of(run_script(target, args, framework, how))
    except ScriptFailed as failed:
        click.echo(failed.report, err=True, nl=False)
        if failed.capture is not None:
            _save(Capture.of(failed.capture), out)
        raise
    _save(capture, out)


def _save(capture: Capture, out: Path) -> None:
    capture.save(out)
    for warning in capture.all_warnings():
        click.echo(f"note: {warning}", err=True)
    stages = f" in {len(capture.stages)} stages" if len(capture.stages) > 1 else ""
    count = sum(stage.graph.n_nodes for stage in capture.stages)
    click.echo(f"{out}: {count:,} operators{stages}", err=True)
