"""opscope nan TARGET: where numbers that are not finite were born."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import click

from opscope import tracers
from opscope.analysis.origins import Origin, Seen
from opscope.capture import Capture
from opscope.export.registry import check_output
from opscope.opening import open as open_file
from opscope.tracers.contract import STATISTICS
from opscope.tracers.script import ScriptFailed, is_file, run_script

from .progress import progress
from .trace import Trace

_MOST = 10


class Nan(Trace):
    """Options before TARGET or directly after it; everything after them goes to the script."""

    with_value = ("-o", "--output", "--framework", "--steps", "--until", "--top")
    flags = ("--json", "--near")


@click.command(cls=Nan, options_metavar="[OPTIONS]")
@click.argument("target")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="OUT", help="Also save the recording.")
@click.option("--framework", metavar="NAME", help="Record only this framework.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Record only the first N optimizer steps.")
@click.option(
    "--until",
    type=click.Choice(["nan"]),
    help="Run until a step makes a NaN and end the script there; of the steps before, nothing is kept.",
)
@click.option("--top", type=click.IntRange(min=1), default=_MOST, show_default=True, help="Describe at most so many.")
@click.option("--near", is_flag=True, help="Also what came close: overflow, underflow, exploding gradients.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="For programs: a JSON list, with --near an object of two; what the script prints goes to stderr.",
)
def command(
    target: str,
    args: tuple[str, ...],
    out: Path | None,
    framework: str | None,
    steps: int | None,
    until: str | None,
    top: int,
    near: bool,
    as_json: bool,
) -> None:
    """Run a script and say where NaN and infinite numbers were born: the operators that made them of finite numbers,
    in order, with module, line and the statistics of what they read. TARGET is a script, package.module:callable, or a
    recording that was made with statistics.

    \b
    opscope nan train.py --epochs 1              with train.py's own arguments
    opscope nan --until nan train.py             run until it happens, in constant memory
    opscope nan step.opscope                     of opscope trace --values stats
    """
    if out is not None:
        check_output(out)
    failed: ScriptFailed | None = None
    if _is_capture(target):
        capture = open_file(target)
    else:
        quiet = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
        try:
            with quiet, progress(tracers.operators_so_far):
                capture = Capture.of(
                    run_script(target, args, framework, steps=steps, values=STATISTICS, until_nan=until is not None)
                )
        except ScriptFailed as error:
            if error.capture is None:
                raise
            failed, capture = error, Capture.of(error.capture)
    found = capture.origins()
    misses = capture.near_misses() if near else []
    if out is not None:
        capture.save(out)
    if as_json:
        listed: Any = [origin.to_dict() for origin in found]
        if near:
            listed = {"origins": listed, "near_misses": [miss.to_dict() for miss in misses]}
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        _print(found, top, capture)
        for miss in misses[:top]:
            click.echo(f"near {miss}")
        if len(misses) > top:
            click.echo(f"… and {len(misses) - top:,} more near misses (--top)")
    if failed is not None:
        click.echo(failed.report, err=True, nl=False)
        raise failed


def _is_capture(target: str) -> bool:
    if not is_file(target) or target.endswith(".py"):
        return False
    with Path(target).open("rb") as file:
        return file.read(2) == b"PK"


def _print(found: list[Origin], top: int, capture: Capture) -> None:
    if not found:
        count = sum(stage.graph.n_nodes for stage in capture.stages)
        passing = len(capture.origins(absorbed=True))
        and_some = f"; {passing:,} made infinite numbers or NaN on the way, which went nowhere" if passing else ""
        click.echo(f"all numbers are finite: {count:,} operators looked at{and_some}")
        return
    for number, origin in enumerate(found[:top], 1):
        _print_one(number, origin)
    if len(found) > top:
        click.echo(f"… and {len(found) - top:,} more (--top)")


def _print_one(number: int, origin: Origin) -> None:
    word = "NaN" if origin.kind == "nan" else "infinite numbers"
    inside = f" in {origin.path}" if origin.path else ""
    if origin.node < 0:
        click.echo(f"{number}. {word} came with the {origin.op} {origin.name}{inside}")
    else:
        click.echo(f"{number}. {word} from {origin.op}{inside} ({origin.phase})")
    if origin.file:
        click.echo(f"   {origin.file}:{origin.line}")
    for seen in origin.inputs:
        click.echo(f"   reads {_words(seen)}")
    for seen in origin.outputs:
        click.echo(f"   {'makes' if origin.node >= 0 else 'holds'} {_words(seen)}")
    if origin.forward is not None:
        forward = origin.forward
        place = f" at {forward.file}:{forward.line}" if forward.file else ""
        click.echo(f"   the gradient of {forward.op}{f' in {forward.path}' if forward.path else ''}{place}")
    if origin.spread:
        click.echo(f"   {origin.spread:,} operators after it got what it made")


def _words(seen: Seen) -> str:
    figures = [f"{name} {seen.figures[name]:.4g}" for name in ("min", "max", "rms") if name in seen.figures]
    counts = [
        f"{int(seen.figures[name]):,} {word}"
        for name, word in (("nan", "NaN"), ("inf", "inf"), ("zeros", "zero"))
        if seen.figures.get(name)
    ]
    return f"{seen.name or 'a tensor'} {seen.type}: {', '.join([*figures, *counts]) or 'not measured'}"
