"""opscope diff A B: what changed; opscope diff X: what each stage did."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import opscope
from opscope import checkpoints
from opscope.analysis.diff.compiled_limits import exceeded_in
from opscope.analysis.diff.kernels import KernelDiff, compare_kernels
from opscope.analysis.diff.limits import FIGURES, TIME, Limit, exceeded, parse
from opscope.analysis.diff.report import Compared, Line, headline, lines
from opscope.analysis.diff.times import compare_times, exceeded_time
from opscope.capture import Capture
from opscope.diffing import along_stages, between, ends, of_captures
from opscope.errors import OpscopeError
from opscope.files import replacing
from opscope.ir import Stage

from .streams import to_json

_COLOURS = {
    "fused": "magenta",
    "split": "blue",
    "rewritten": "yellow",
    "changed": "yellow",
    "moved": "cyan",
    "removed": "red",
    "added": "green",
}

_DIVERGES = "diverges"  # what --fail-on may say of --values

_KERNELS = {"split": "split", "merged": "fused", "added": "added", "removed": "removed"}


@click.command()
@click.argument("before", metavar="A", type=click.Path(path_type=Path))
@click.argument("after", metavar="[B]", required=False, type=click.Path(path_type=Path))
@click.option("--from", "from_stage", metavar="STAGE", help="The stage of A to compare (default: the first).")
@click.option("--to", "to_stage", metavar="STAGE", help="The stage of B (without B: of A) to compare with.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.option("--values", is_flag=True, help="Compare the numbers of two recordings: where they stop agreeing.")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="P",
    help="A measured profile of A; given again, one of B.",
)
@click.option("--html", "out", type=click.Path(path_type=Path), metavar="OUT", help="Write a self-contained HTML page.")
@click.option("--all", "every", is_flag=True, help="Show every change, however many.")
@click.option(
    "--fail-on",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 1 if this condition holds, such as 'macs>+5%' (repeatable).",
)
@click.pass_context
def command(
    context: click.Context,
    before: Path,
    after: Path | None,
    from_stage: str | None,
    to_stage: str | None,
    as_json: bool,
    values: bool,
    profiles: tuple[Path, ...],
    out: Path | None,
    every: bool,
    conditions: tuple[str, ...],
) -> None:
    """Compare two graphs by structure; names are ignored.

    \b
    opscope diff old.pt2 new.pt2                      two files
    opscope diff outs                                 what each pass did, stage by stage
    opscope diff outs --from 0_Origin --to 5_FuseOperatorPass
    opscope diff old.pt2 new.pt2 --fail-on 'macs>+5%' --fail-on 'params>0'
    opscope diff eager.opscope port.opscope --values  where their numbers stop agreeing

    With --values: --fail-on diverges.
    Figures for --fail-on, each about the difference: nodes values edges macs flops params memory activations.
    Of two measured runs: time, and time(QUERY), as in time(scope:layers.*)>+5%; in µs, ms or s without the %.
    Counts of changes: changes fused split rewritten changed moved removed added.
    Of compiled captures, about B alone (with a sign, as in breaks>+0, about the difference): breaks recompiles
    kernels, and kernels(QUERY), where kernels(scope:layers.*.mlp)>1 asks every module that fits.
    """
    limits = [parse(text) for text in conditions if not (values and text == _DIVERGES)]
    if len(profiles) > (1 if after is None else 2):
        raise OpscopeError("--profile is given once for A, and once more for B")
    first, second = _opened(before, after, profiles)
    if values:
        fails = _values(first, second if after is not None else None, conditions, as_json, out, from_stage or to_stage)
        context.exit(1 if fails else 0)
    if after is not None and first.origin.framework == second.origin.framework == "weights":
        _checkpoints(before, after, as_json, out, conditions)
        return
    along = after is None and from_stage is None and to_stage is None
    if along:
        comparisons, whole = _along(first, before)
    else:
        one = _pair(first, second, before, after, from_stage, to_stage)
        comparisons, whole = [one[0]], one
    kernels = compare_kernels(first, second) if after is not None and not (from_stage or to_stage) else None
    times = compare_times(first, second) if after is not None else None
    if out is not None:
        from opscope.export.html import render, render_compared

        compared, (a, stage_a), (b, stage_b) = whole
        title = f"{before.name} – {after.name}" if after is not None else before.name
        text = (
            render(first, title)
            if along
            else render_compared((a, stage_a, compared.before), (b, stage_b, compared.after), title)
        )
        with replacing(out) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        click.echo(f"{out}: written", err=True)
    elif as_json:
        found = _json(comparisons, along)
        found |= {"kernels": kernels.to_dict()} if kernels is not None else {}
        click.echo(to_json({**found, "times": times.to_dict()} if times is not None else found))
    else:
        _print(comparisons, every)
    if kernels is not None and not as_json and out is None:
        _print_kernels(kernels)
    if times is not None and not as_json and out is None:
        click.echo("\n".join(["", *times.lines()]))
    failed = _failures([limit for limit in limits if not limit.is_compiled and limit.figure != TIME], *whole)
    on_time = [limit for limit in limits if limit.figure == TIME]
    failed += [w for limit in on_time if (w := exceeded_time(limit, first, second if after else None)) is not None]
    earlier = first if after is not None else None
    failed += [why for limit in limits if limit.is_compiled if (why := exceeded_in(limit, earlier, second)) is not None]
    for line in failed:
        click.echo(f"fails: {line}", err=True)
    context.exit(1 if failed else 0)


def _values(
    a: Capture, b: Capture | None, conditions: Sequence[str], as_json: bool, out: Path | None, stage: str | None
) -> bool:
    """Where the numbers of two recordings stop agreeing; whether that is to be a failure."""
    others = [text for text in conditions if text != _DIVERGES]
    if b is None or others or stage is not None:
        raise OpscopeError(
            f"--values compares two recordings, A and B, and goes with --json, --html and --fail-on {_DIVERGES} alone"
        )
    found = opscope.diverge(a, b)
    if out is not None:
        from opscope.export.html import render_compared

        text = render_compared((a, a.stages[0], "a"), (b, b.stages[0], "b"), f"{out.stem}")
        with replacing(out) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        click.echo(f"{out}: written", err=True)
    click.echo(to_json(found.to_dict()) if as_json else str(found))
    fails = bool(conditions) and found.first is not None
    if fails:
        click.echo("fails: the two diverge", err=True)
    return fails


def _opened(before: Path, after: Path | None, profiles: Sequence[Path]) -> tuple[Capture, Capture]:
    first = opscope.open(before, profile=profiles[0] if profiles else None)
    if after is None:
        return first, first
    return first, opscope.open(after, profile=profiles[1] if len(profiles) > 1 else None)


Ends = tuple[Compared, tuple[Capture, Stage], tuple[Capture, Stage]]


def _checkpoints(before: Path, after: Path, as_json: bool, out: Path | None, conditions: Sequence[str]) -> None:
    if out is not None or conditions:
        raise OpscopeError("two checkpoints are compared as text, or with --json: they have no graphs")
    found = checkpoints.diff(before, after)
    click.echo(to_json(found.to_dict()) if as_json else "\n".join([f"{before} → {after}  ", *found.lines()]))


def _along(capture: Capture, path: Path) -> tuple[list[Compared], Ends]:
    """Each stage compared with the one it was derived from; and, for conditions, the first with the last."""
    found = along_stages(capture)
    if not found:
        raise OpscopeError(
            f"{path}: no stage is derived from another; pass a second file, or two stages with --from and --to"
        )
    first, last = ends(capture)
    before, after = capture.stages[first], capture.stages[last]
    whole = Compared(before.name, after.name, found[0].diff if len(found) == 1 else between(capture, first, last))
    return found, (whole, (capture, before), (capture, after))


def _pair(
    first: Capture, second: Capture, before: Path, after: Path | None, from_stage: str | None, to_stage: str | None
) -> Ends:
    one = first.stage(from_stage)
    if after is None:
        other = second.stage(to_stage) if to_stage is not None else second.stages[-1]
        found = between(first, first.stages.index(one), second.stages.index(other))
        return Compared(one.name, other.name, found), (first, one), (second, other)
    other = second.stage(to_stage)
    names = [
        f"{path}{f' {stage.name}' if len(capture.stages) > 1 else ''}"
        for path, capture, stage in ((before, first, one), (after, second, other))
    ]
    return Compared(names[0], names[1], of_captures((first, one), (second, other))), (first, one), (second, other)


def _json(comparisons: Sequence[Compared], along: bool) -> dict[str, Any]:
    if not along:
        return comparisons[0].diff.to_dict()
    return {
        "stages": [
            {"before": c.before, "after": c.after, "seconds": c.seconds, **c.diff.to_dict()} for c in comparisons
        ]
    }


def _print(comparisons: Sequence[Compared], every: bool) -> None:
    for number, compared in enumerate(comparisons):
        if compared.diff.is_empty and not compared.diff.renamed:
            _echo(Line(headline(compared), "dim" if len(comparisons) > 1 else "title"))
            continue
        if number:
            click.echo()
        for line in lines(compared, every):
            _echo(line)
        if number + 1 < len(comparisons) and comparisons[number + 1].diff.is_empty:
            click.echo()


def _echo(line: Line) -> None:
    text = "".join(c if c.isprintable() else "�" for c in line.text)
    if not sys.stdout.isatty():
        click.echo(text)
    elif line.style in _COLOURS:
        click.secho(text, fg=_COLOURS[line.style])
    else:
        click.secho(text, bold=line.style == "title" or None, dim=line.style == "dim" or None)


def _print_kernels(found: KernelDiff) -> None:
    click.echo()
    _echo(Line(f"kernels: {found.before:,} → {found.after:,}", "title"))
    if not found.changes:
        _echo(Line("  every kernel computes what it did", "dim"))
    for change in found.changes:
        style = {"split": "split", "merged": "fused", "added": "added", "removed": "removed"}.get(
            change.kind, "changed"
        )
        _echo(Line(f"  {change.kind}: {change.sentence()}  [{change.stage}]", style))
    for text in found.breaks:
        _echo(Line(f"  new graph break: {text}", "removed"))
    if found.recompiles[0] != found.recompiles[1]:
        _echo(Line(f"  recompilations: {found.recompiles[0]:,} → {found.recompiles[1]:,}", "changed"))


def _failures(
    limits: Sequence[Limit], compared: Compared, before: tuple[Capture, Stage], after: tuple[Capture, Stage]
) -> list[str]:
    totals: list[dict[str, Any]] = [{}, {}]
    if any(limit.needs_stats for limit in limits):
        totals = [_totals(capture, stage, limits) for capture, stage in (before, after)]
    found: list[str] = []
    for limit in limits:
        why = exceeded(limit, compared.diff, *totals)
        if why is not None:
            found.append(why)
    return found


def _totals(capture: Capture, stage: Stage, limits: Sequence[Limit]) -> dict[str, Any]:
    from opscope.statistics import of_capture

    stats = of_capture(capture, stage.name)
    totals = stats.totals()
    if totals.get("at_least") and any(
        FIGURES.get(limit.figure, "") in ("macs", "flops", "other_flops") for limit in limits
    ):
        unknown = ", ".join(sorted(totals.get("unknown_ops", {}))[:5])
        why = [
            *([f"unknown for {unknown}"] if unknown else []),
            *(gap.sentence(stage.graph.pools) for gap in stats.gaps),
        ]
        click.echo(f"warning: {stage.name}: MACs and FLOPs are lower bounds: {'; '.join(why)}", err=True)
    return totals
