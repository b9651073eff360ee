"""Join operator by operator: by the numbers that an execution trace and a profile share, or by names in order."""

from __future__ import annotations

from opscope.ir import Capture

from .measured import Measured, numbered, operator_names
from .placed import Placing
from .sequences import aligned

_LEAST_PASS = 0.5  # of the operators of a graph that must be found for a part of the profile to be one run of it


def by_number(placing: Placing, capture: Capture) -> None:
    """An execution trace of the same run: both carry the number of every call."""
    measured = placing.measured
    nodes = numbered(capture)
    for number, call in measured.records.items():
        node = nodes.get(number)
        if node is not None:
            placing.operator(0, node, call, "by id")
    _explain(placing, "its operator is not in the execution trace")


def by_name(placing: Placing, capture: Capture, stage: int) -> None:
    """The operators of the graph are in the profile in the same order, once in every step that was profiled."""
    measured: Measured = placing.measured
    own = operator_names(capture.stages[stage].graph)
    theirs = measured.ops
    begin = 0
    while len(theirs) - begin >= _LEAST_PASS * len(own) > 0:
        found = aligned(own, theirs[begin:])
        if sum(at >= 0 for at in found) < _LEAST_PASS * len(own):
            break
        for node, at in enumerate(found):
            if at >= 0:
                placing.operator(stage, node, begin + at, "by name and order")
        begin += max(found) + 1
    _explain(placing, "its operator is not in the graph, or not in the same order")


def _explain(placing: Placing, reason: str) -> None:
    for kernel in range(len(placing.measured.kernel_node)):
        if kernel not in placing.put:
            op = placing.measured.ops[placing.measured.kernel_node[kernel]]
            placing.reasons[kernel] = f"{reason} ({op})"
