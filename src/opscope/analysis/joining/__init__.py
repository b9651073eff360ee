"""Join a measured run to the graph of a capture: what each operator and each kernel took.

A fused kernel's time is the kernel's: it is never split among its operators. Every join says how many kernels it
placed, by what evidence, and names the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Capture, Stage, frozen
from opscope.ir.cut import cut_capture
from opscope.ir.facts import TIMES
from opscope.ir.repool import Repooled

from .by_launch import by_launch, programs
from .by_operator import by_mark, by_name, by_number, marks
from .measured import Measured
from .placed import Placing, Put
from .timeline import with_events

__all__ = ["join"]

Kind = TypeVar("Kind", bound=Capture)

OUTSIDE = "outside of compiled graphs"


def join(capture: Kind, profile: Capture, name: str) -> Kind:
    """The capture with the times of a profile of the same program, `name` in messages. Neither is written to."""
    measured = Measured(profile)
    if not measured.graph.n_nodes:
        raise BadInput(f"{name}: an empty profile: nothing ran while it was taken")
    placing = Placing(capture, measured)
    if marked := marks(measured):
        by_mark(placing, marked)
        joined = capture
    elif capture.origin.format == "chakra":
        by_number(placing, capture)
        joined = _with_places(capture, placing)
    elif programs(capture):
        joined = _with_outside(capture, placing, by_launch(placing, capture))
    else:
        by_name(placing, capture, 0)
        joined = capture
    if not placing.runs and not placing.launched:
        raise BadInput(
            f"{name}: a profile of another program: none of its operators and kernels is in the graph. "
            "Open it alone to see what it holds"
        )
    joined = placing.joined(joined)
    with_events(joined, placing)
    return joined


def _with_places(capture: Kind, placing: Placing) -> Kind:
    """An execution trace knows neither modules nor lines; a profile with stacks does."""
    graph = capture.stages[0].graph
    theirs = Repooled(placing.measured.graph.pools, capture.pools).graph(placing.measured.graph)
    nodes = np.array([node for _, node in placing.runs], dtype=np.int64)
    calls = np.array([runs[0][0] for runs in placing.runs.values()], dtype=np.int64)
    scope, stack = graph.node_scope.copy(), graph.node_stack.copy()
    for own, column in ((scope, theirs.node_scope), (stack, theirs.node_stack)):
        is_known = column[calls] > 0
        own[nodes[is_known]] = column[calls[is_known]]
    placed = replace(graph, node_scope=frozen(scope), node_stack=frozen(stack))
    stages = [replace(stage, graph=placed) if stage.graph is graph else stage for stage in capture.stages]
    return replace(capture, stages=stages)


def _with_outside(capture: Kind, placing: Placing, outside: list[int]) -> Kind:
    """What ran outside of the compiled graphs becomes a stage of its own, so that all of the time has a place."""
    profile = placing.measured.capture
    keep = np.zeros(profile.graph.n_nodes, dtype=bool)
    keep[outside] = True
    if not keep.any():
        return capture
    rest = cut_capture(profile, lambda _: keep)
    stage = len(capture.stages)
    moved = Repooled(profile.pools, capture.pools)
    what = "Operators that ran outside of the compiled graphs, as the profile has them: it knows no edges."
    joined = replace(
        capture,
        stages=[*capture.stages, Stage(OUTSIDE, moved.graph(rest.graph), warnings=(what,))],
        tables=dict(capture.tables),
    )
    for table in rest.facts(TIMES.name, 0):
        if len(table.index):
            joined.add(moved.table(table, stage))
    number = np.cumsum(keep) - 1
    for node in outside:
        placing.outside[node] = (stage, int(number[node]))
        for kernel in placing.measured.kernels_of[node]:
            placing.put[kernel] = Put(stage, int(number[node]), -1, "by id")
            placing.reasons.pop(kernel, None)
    return joined
