"""opscope trace TARGET [ARGS]...: run a script or a model and capture it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from opscope import ir, tracers
from opscope.analysis.phases import only_phases
from opscope.capture import Capture
from opscope.errors import OpscopeError
from opscope.export.registry import check_output
from opscope.ir import PHASES
from opscope.ir.ranks import note_rank, rank_of
from opscope.parts import part_of
from opscope.tracers import registry
from opscope.tracers.contract import RECORDS
from opscope.tracers.leaving import told_if_killed
from opscope.tracers.script import ScriptFailed, is_file, is_rank, run_script
from opscope.tracing import joined

from .inputs import GRAMMAR, Input, parse
from .progress import counted, progress
from .target import trace_model, ways_of_model


class Trace(click.Command):
    """Takes opscope's options before TARGET or directly after it; everything after them goes to the script."""

    with_value: tuple[str, ...] = (
        *("-o", "--output", "--framework", "--how", "--steps", "--phase", "--input", "--values", "--part"),
        *("--world", "--local", "--jobs"),
    )
    flags: tuple[str, ...] = ("--train", "--fake", "--all")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ours_first(args, self.with_value, self.flags))


def ours_first(args: list[str], with_value: Sequence[str], flags: Sequence[str]) -> list[str]:
    """opscope's options, `--`, TARGET and its arguments."""
    ours: list[str] = []
    target: list[str] = []
    rest = list(args)
    while rest:
        word = rest[0]
        if word.partition("=")[0] in with_value:
            count = 1 if "=" in word else 2
            ours += rest[:count]
            del rest[:count]
        elif word in flags:
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
    "--values",
    type=click.Choice(["stats", "full"]),
    help="Also keep statistics of every tensor that a script makes: NaN, infinite and zero numbers, min, max, rms; "
    "full: and every number of a --part.",
)
@click.option("--part", metavar="QUERY", help="With --values full: what to keep, such as 'scope:layers/3 op:mm'.")
@click.option(
    "--times",
    is_flag=True,
    help="Also measure: PyTorch's profiler runs beside the recorder (kernels on a GPU, calls on the CPU).",
)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="NAME",
    help=f"Keep only these phases, comma-separated ({', '.join(PHASES)}).",
)
@click.option(
    "--world",
    "size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run the script as ranks of a world of N, without the others, and record each class of ranks once.",
)
@click.option("--fake", is_flag=True, help="With --world: on tensors without numbers, which need no memory.")
@click.option("--all", "every", is_flag=True, help="With --world: record every rank, and infer none.")
@click.option(
    "--local",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    metavar="N",
    help="With --world: ranks on a machine.",
)
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="With --world: run so many ranks at once.")
def command(
    target: str,
    args: tuple[str, ...],
    out: Path | None,
    framework: str | None,
    how: str,
    inputs: tuple[str, ...],
    train: bool,
    steps: int | None,
    values: str | None,
    part: str | None,
    times: bool,
    phases: tuple[str, ...],
    size: int | None,
    fake: bool,
    every: bool,
    local: int,
    jobs: int | None,
) -> None:
    """Run TARGET and capture everything it computes. TARGET is a script, package.module:callable, or, with
    --input, package.module:model, where model may also be a class or a function that creates one.

    \b
    opscope trace train.py --epochs 1                with train.py's own arguments; writes train.opscope
    opscope trace --steps 2 -o two.html train.py     the first two steps, as a page
    opscope trace nets:make_model --input 1x3x224x224
    opscope trace nets:GPT --input 2x16:int64:50 --train --phase backward
    opscope trace nets:GPT --input 2x16:int64:50 --how all
    opscope trace --world 1024 --fake --steps 1 train.py   every rank of a training step, without a GPU
    """
    if size is not None:
        _world(
            target, args, size, out, bool(inputs or train or values or times or framework or phases or how != "auto"),
            fake=fake, every=every, local=local, steps=steps, jobs=jobs,
        )  # fmt: skip
        return
    if fake or every or jobs is not None:
        raise OpscopeError("--fake, --all and --jobs go with --world N")
    wanted = _phases(phases)
    given = [parse(text) for text in inputs]
    _check(target, how, given, train, steps)
    if values and (given or train or how not in RECORDS):
        raise OpscopeError("--values works only for scripts: a model is called once (in Python: opscope.record)")
    if times and (given or train or how not in RECORDS):
        raise OpscopeError("--times works only for scripts: a model is called once (in Python: opscope.record)")
    if how == "all":
        _all(target, args, given, out, wanted)
        return
    out = out or Path(f"{Path(target.rpartition(':')[0] or target).stem}.opscope")
    rank = is_rank()
    if rank is not None:  # one file for each
        out = out.with_name(f"{out.stem}.rank{rank[0]}{out.suffix}")
    check_output(out)
    place = out.absolute()  # the script may go to another folder

    is_model = bool(given or train or not _records(how))
    try:
        if is_model:
            with progress(tracers.operators_so_far):
                capture = trace_model(target, args, given, how=how, train=train)
        else:
            capture = _of_script(
                target,
                args,
                lambda found: _save(found, out, place, wanted),
                framework=framework,
                how=how,
                steps=steps,
                values=values or False,
                part=part_of(part),
                times=times,
            )
    except ScriptFailed as failed:
        click.echo(failed.report, err=True, nl=False)
        if failed.capture is not None:
            _save(Capture.of(failed.capture), out, place, wanted)
        raise
    _save(Capture.of(capture), out, place, wanted)


def _world(target: str, args: tuple[str, ...], size: int, out: Path | None, has_others: bool, **options: Any) -> None:
    """Record every class of ranks of a world."""
    from opscope.analysis.world.summary import world_of
    from opscope.worlds import world

    if has_others:
        raise OpscopeError("--world goes with --steps, --fake, --all, --local, --jobs and -o, and with no other option")
    out = out or Path(f"{Path(target.rpartition(':')[0] or target).stem}.opscope")
    check_output(out)
    place = out.absolute()
    try:
        with counted() as count:  # without a thread: processes are forked
            capture = world(target, size, args=args, progress=count, **options)
    except ScriptFailed as failed:
        click.echo(failed.report, err=True, nl=False)
        raise
    _save(capture, out, place, [])
    if (found := world_of(capture)) is not None:
        from .describe import console
        from .worlds import described

        console().print(described(found, capture))


def _of_script(
    target: str,
    args: tuple[str, ...],
    save: Callable[[Capture], None],
    **options: Any,
) -> ir.Capture:
    lost = f"{target} ended without a chance to save (killed, or crashed in C code): its recording is lost"
    with told_if_killed(lost) as is_saved, progress(tracers.operators_so_far):

        def save_now(capture: ir.Capture) -> None:
            save(Capture.of(capture))
            is_saved()

        return run_script(target, args, save=save_now, join=joined, **options)


def _records(how: str) -> bool:
    """Whether a script can be recorded this way."""
    return any(how in registry.load(framework).records for framework in registry.FRAMEWORKS)


def _check(target: str, how: str, inputs: Sequence[Input], train: bool, steps: int | None) -> None:
    """Reject incompatible options before anything runs."""
    known = dict.fromkeys(way for framework in registry.FRAMEWORKS for way in registry.load(framework).how)
    if how not in (*known, "all"):
        raise OpscopeError(f"--how {how}: unknown capture method (there are: {', '.join(known)}, all)")
    is_model = bool(inputs or train or not _records(how))
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
        if "record" not in found.captures:
            raise OpscopeError(f"{target} cannot be recorded, so there is nothing to save: {found['record'].reason}")
        _save(Capture.of(found.captures["record"]), out, out.absolute(), phases)


def _save(capture: Capture, out: Path, place: Path, phases: list[str]) -> None:
    """Write to `place`, which the user calls `out`. If that fails, the recording goes to an .opscope file instead."""
    rank = is_rank()
    if rank is not None and "world" not in capture.origin.how and rank_of(capture, 0) is None:
        note_rank(capture, 0, *rank, [])
    chosen = only_phases(capture, phases) if phases else capture
    try:
        chosen.save(place)
    except Exception as error:
        kept = _kept(chosen, place)
        if kept is None:
            raise
        why = error if isinstance(error, OpscopeError) else f"{type(error).__name__}: {error}"
        raise OpscopeError(f"{why}; the recording itself is in {kept}") from error
    for warning in chosen.all_warnings():
        click.echo(f"warning: {warning}", err=True)
    stages = f" in {len(chosen.stages)} stages" if len(chosen.stages) > 1 else ""
    count = sum(stage.graph.n_nodes for stage in chosen.stages)
    click.echo(f"{out}: {count:,} operators{stages}", err=True)


def _kept(capture: Capture, place: Path) -> Path | None:
    """The file that a recording was written to after all: beside the wanted one, or in the temporary folder."""
    for folder in (place.parent, Path(tempfile.gettempdir())):
        path = folder / f"{place.stem}.{os.getpid()}.opscope"
        with contextlib.suppress(Exception):
            capture.save(path)
            return path
    return None
