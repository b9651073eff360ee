"""Which way of capturing works on a model: each is tried on a copy, and what it loses is put into words."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture, Graph
from opscope.tracers.registry import describe
from opscope.tracers.torch import graphs
from opscope.tracers.torch.graphs.errors import CannotCapture, cannot
from opscope.tracers.ways import Way, Ways

from . import specialization
from .subject import Subject

ORDER = ("record", "export", "export-strict", "fx", "jit-trace", "jit-script", "dynamo", "joint", "autograd")
# Of the warnings that graphs.compiling writes.
_BREAK = "graph break: "
_AGAIN = " was compiled again: "
_PLACE = re.compile(r"(.+?):(\d+): ")


def ways(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    caller: FrameType,
    keep: bool = False,
    progress: Callable[[str], None] = lambda how: None,
) -> Ways:
    """Try every way. With `keep` the captures that worked stay in `Ways.captures`."""
    subject = Subject(target, args, kwargs, caller)
    progress("record")
    began = time.perf_counter()
    recorded = _recorded(subject)
    seconds = time.perf_counter() - began
    inputs = specialization.Inputs(subject, recorded if isinstance(recorded, Capture) else None)
    captures: dict[str, Capture] = {}
    if isinstance(recorded, Capture):
        rows = [_recorder_row(recorded, inputs, seconds)]
        captures = {"record": recorded} if keep else {}
    else:
        rows = [_failed("record", recorded, subject, seconds)]
    for how in ORDER[1:]:
        progress(how)
        row, capture = _try(subject, how, inputs)
        rows.append(row)
        if keep and capture is not None:
            captures[how] = capture
    return Ways(describe(target), tuple(rows), captures)


def _recorded(subject: Subject) -> Capture | Exception:
    """What the model really does, or why the recorder cannot see it. If the model cannot even run, no way will work,
    and there is nothing to compare."""
    try:
        return subject.record()
    except OpscopeError:
        raise
    except Exception as error:
        try:
            subject.run(subject.given)
        except Exception:
            found = cannot("record", error, subject.caller)
            where = f" at {short(found.file, found.line)}" if found.file else ""
            raise OpscopeError(
                f"the model fails on these arguments{where}: {type(error).__name__}: {found.reason}"
            ) from error
        return error


def _failed(how: str, error: Exception, subject: Subject, seconds: float) -> Way:
    found = error if isinstance(error, CannotCapture) else cannot(how, error, subject.caller)
    where = short(found.file, found.line) if found.file else ""
    return Way(how, False, reason=found.reason, where=where, seconds=seconds)


def _recorder_row(capture: Capture, inputs: specialization.Inputs, seconds: float) -> Way:
    other = f" (another input goes another way: {short(*inputs.branch)})" if inputs.branch else ""
    lost = (f"all but this execution{other}", "the backward pass, unless it is recorded too")
    return Way("record", True, _count(capture.graph), lost=lost, seconds=seconds)


def _try(subject: Subject, how: str, inputs: specialization.Inputs) -> tuple[Way, Capture | None]:
    began = time.perf_counter()
    try:
        with subject.trial() as (target, args, kwargs):
            capture = graphs.capture(how, target, args, kwargs, caller=subject.caller)
    except Exception as error:
        return _failed(how, error, subject, time.perf_counter() - began), None
    seconds = time.perf_counter() - began
    finding = specialization.check(subject, how, capture, inputs)
    where = short(finding.file, finding.line) if finding is not None and finding.file else ""
    row = Way(
        how,
        True,
        sum(_count(graph) for graph in _main_graphs(how, capture)),
        baked=finding.words if finding is not None else "",
        where=where,
        lost=tuple(_lost(how, capture, inputs)),
        seconds=seconds,
    )
    return row, capture


# -- what a capture has and has not -------------------------------------------------------------------


def _main_graphs(how: str, capture: Capture) -> list[Graph]:
    """Without those that only show the same operators once more."""
    if how.startswith("jit"):
        return [capture.stage("inlined").graph]
    return [stage.graph for stage in capture.stages if stage.after is None]


def _count(graph: Graph) -> int:
    return graph.n_nodes + sum(_count(body.graph) for body in graph.bodies)


def _lost(how: str, capture: Capture, inputs: specialization.Inputs) -> list[str]:
    if how in ("export", "export-strict"):
        return ["Python values (kept as constants)", *_sizes(capture), "the backward pass"]
    shapes = [] if _has_shapes(capture) else ["shapes"]
    if how == "fx":
        return ["the operators inside torch.nn's modules", *shapes, "the backward pass"]
    if how == "jit-trace":
        read = f", by what Python reads at {short(*inputs.reads[0])}" if inputs.reads else ""
        return [f"branches and loops (kept as this input took them{read})", "the backward pass"]
    if how == "jit-script":
        return [*shapes, "the backward pass"]
    if how == "dynamo":
        return [*_graphs(how, capture), "the backward pass"]
    if how == "joint":
        return [*_graphs(how, capture), "the optimizer"]
    return ["the forward operators"]


def _sizes(capture: Capture) -> list[str]:
    return [] if capture.stages[0].listings.get("symbols") else ["other sizes than these"]


def _has_shapes(capture: Capture) -> bool:
    """Whether more than half of what operators make has a shape."""
    values = [value for value in capture.stages[-1].graph.values if value.producer is not None]
    return sum(value.type.shape is not None for value in values) * 2 > len(values)


def _graphs(how: str, capture: Capture) -> list[str]:
    breaks = [text for text in capture.warnings if _BREAK in text]
    again = sum(_AGAIN in text for text in capture.warnings)
    count = len(_main_graphs(how, capture))
    graphs = f"{count} graph{'' if count == 1 else 's'}"
    found = [f"{graphs}, no break"]
    if breaks:
        words = f"{graphs}, {len(breaks)} break{'' if len(breaks) == 1 else 's'}: what runs in between"
        place = _PLACE.match(breaks[0])
        found = [f"{words} ({short(place[1], int(place[2]))})" if place else words]
    if again:
        found.append(f"{again} compiled again")
    if without := sum(stage.name.startswith("inference") for stage in capture.stages):
        which = "" if without == count else f" of {without} of them, in which"
        found.append(f"the backward pass{which or ', because'} nothing requires a gradient")
    return found


def short(file: str, line: int) -> str:
    """file:line, from the working folder on."""
    here = os.getcwd() + os.sep
    return f"{file.removeprefix(here)}:{line}"
