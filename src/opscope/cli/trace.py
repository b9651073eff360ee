"""opscope trace TARGET [ARGS]...: run a script or a model and capture it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from opscope import tracers
from opscope.analysis.phases import only_phases
from opscope.capture import Capture
from opscope.errors import OpscopeError
from opscope.ir import PHASES
from opscope.tracers import registry
from opscope.tracers.contract import RECORDS
from opscope.tracers.script import ScriptFailed, is_file, run_script

from .inputs import GRAMMAR, Input, parse
from .progress import progress
from .target import trace_model, ways_of_model

_WITH_VALUE = ("-o", "--output", "--framework", "--how", "--steps", "--phase", "--input")
_FLAGS = ("--train",)


class Trace(click.Command):
    """Takes opscope's options before TARGET or directly after it; everything after them goes to the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ours_first(args))


def ours_first(args: list[str]) -> list[str]:
    """opscope's options, `--`, TARGET and its arguments."""
    ours: list[str] = []
    target: list[str] = []
    rest = list(args)
    while rest:
        word = rest[0]
        if word.partition("=")[0] in _WITH_VALUE:
            count = 1 if "=" in word else 2
            ours += rest[:count]
            del rest[:count]
        elif word in _FLAGS:
            ours.append(rest.pop(0))
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


@click.command(cls=Trace, options_metavar="[OPTIONS]")
@click.argument("target")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="The output file (default: TARGET.opscope).",
)
@click.option("--framework", metavar="NAME", help=f"Record only this framework ({registry.supported()}).")
@click.option(
    "--how", default="auto", show_default=True, help="The capture method; `all` tries each and prints a table."
)
@click.option("--input", "inputs", multiple=True, metavar=GRAMMAR, help="Call the model with this tensor (repeatable).")
@click.option("--train", is_flag=True, help="Also run the backward pass, from the sum of the model's results.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Record only the first N optimizer steps.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="NAME",
    help=f"Keep only these phases, comma-separated ({', '.join(PHASES)}).",
)
def command(
    target: str,
    args: tuple[str, ...],
    out: Path | None,
    framework: str | None,
    how: str,
    inputs: tuple[str, ...],
    train: bool,
    steps: int | None,
    phases: tuple[str, ...],
) -> None:
    """Run TARGET and capture everything it computes. TARGET is a script, package.module:callable, or, with
    --input, package.module:model, where model may also be a class or a function that creates one.

    \b
    opscope trace train.py --epochs 1                with train.py's own arguments; writes train.opscope
    opscope trace --steps 2 -o two.html train.py     the first two steps, as a page
    opscope trace nets:make_model --input 1x3x224x224
    opscope trace nets:GPT --input 2x16:int64:50 --train --phase backward
    opscope trace nets:GPT --input 2x16:int64:50 --how all
    """
    wanted = _phases(phases)
    given = [parse(text) for text in inputs]
    _check(target, how, given, train, steps)
    if how == "all":
        _all(target, args, given, out, wanted)
        return
    out = out or Path(f"{Path(target.rpartition(':')[0] or target).stem}.opscope")
    try:
        with progress(tracers.operators_so_far):
            if given or train or how not in RECORDS:
                capture = trace_model(target, args, given, how=how, train=train)
            else:
                capture = run_script(target, args, framework, how, steps)
    except ScriptFailed as failed:
        click.echo(failed.report, err=True, nl=False)
        if failed.capture is not None:
            _save(Capture.of(failed.capture), out, wanted)
        raise
    _save(Capture.of(capture), out, wanted)


def _check(target: str, how: str, inputs: Sequence[Input], train: bool, steps: int | None) -> None:
    """Reject incompatible options before anything runs."""
    known = dict.fromkeys(way for framework in registry.FRAMEWORKS for way in registry.load(framework).how)
    if how not in (*known, "all"):
        raise OpscopeError(f"--how {how}: unknown capture method (there are: {', '.join(known)}, all)")
    is_model = bool(inputs or train or how not in RECORDS)
    if is_model and is_file(target):
        what = "--input" if inputs else "--train" if train else f"--how {how}"
        raise OpscopeError(
            f"{target}: {what} needs a model, not a script: pass a function that creates the model, as in "
            "`opscope trace package.module:make_model --input 1x3x224x224`"
        )
    if is_model and steps is not None:
        raise OpscopeError("--steps works only for scripts: a model is called once")
    if train and how not in RECORDS:
        raise OpscopeError(f"--train works only with the recorder, not with --how {how}")


def _phases(given: Sequence[str]) -> list[str]:
    phases = list(dict.fromkeys(name.strip() for text in given for name in text.split(",")))
    for name in phases:
        if name not in PHASES:
            raise OpscopeError(f"--phase {name}: unknown phase (there are: {', '.join(PHASES)})")
    return phases


def _all(target: str, args: tuple[str, ...], inputs: list[Input], out: Path | None, phases: list[str]) -> None:
    """Print the table of all capture methods; with -o, save what the recorder captured."""
    try:
        with progress(tracers.operators_so_far, total=9) as begin:
            found = ways_of_model(target, args, inputs, keep=out is not None, progress=begin)
    except ScriptFailed as failed:
        click.echo(failed.report, err=True, nl=False)
        raise
    click.echo(found.table(shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
    if out is not None:
        _save(Capture.of(found.captures["record"]), out, phases)


def _save(capture: Capture, out: Path, phases: list[str]) -> None:
    if phases:
        capture = only_phases(capture, phases)
    capture.save(out)
    for warning in capture.all_warnings():
        click.echo(f"warning: {warning}", err=True)
    stages = f" in {len(capture.stages)} stages" if len(capture.stages) > 1 else ""
    count = sum(stage.graph.n_nodes for stage in capture.stages)
    click.echo(f"{out}: {count:,} operators{stages}", err=True)
