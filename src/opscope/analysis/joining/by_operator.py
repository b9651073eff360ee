"""Join operator by operator: by the numbers that an execution trace and a profile share, or by names in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from opscope.ir import Capture
from opscope.ir.measurements import RUN_MARK

from .measured import Measured, numbered, operator_names
from .placed import Placing
from .sequences import aligned

# What a recorder below autograd sees under another name than a profiler above it.
_SEEN_AS = {
    "aten.item": "aten._local_scalar_dense",
    "aten.to": "aten._to_copy",
    "aten._reshape_alias": "aten.view",
    "aten._unsafe_view": "aten.view",
    "aten.reshape": "aten.view",
    "aten.narrow": "aten.slice",
    "aten.embedding_backward": "aten.embedding_dense_backward",
    "aten.convolution_backward_overrideable": "aten.convolution_backward",
    "aten._convolution": "aten.convolution",
    "aten.cudnn_convolution": "aten.convolution",
    "aten.mkldnn_convolution": "aten.convolution",
}
_MARK = re.compile(re.escape(RUN_MARK) + r"(\d{1,9})")
_LEAST_PASS = 0.5  # of the operators of a graph that must be found for a part of the profile to be one run of it


def by_number(placing: Placing, capture: Capture) -> None:
    """An execution trace of the same run: both carry the number of every call. It is a trace of one step; the other
    steps of the profile are that one once more, operator by operator."""
    measured = placing.measured
    nodes = numbered(capture)
    of_call = np.full(measured.graph.n_nodes, -1, dtype=np.int64)
    for number, call in measured.records.items():
        node = nodes.get(number)
        if node is not None:
            placing.operator(0, node, call, "by id")
            of_call[call] = node
    for call, node in _other_steps(measured, of_call):
        placing.operator(0, node, call, "by name and order")
    _explain(placing, "its operator is not in the execution trace")


def _other_steps(measured: Measured, of_call: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Calls before and after the step whose calls are known, and the operators that they are; most steps are the same
    to the last operator."""
    known = np.flatnonzero(of_call >= 0)
    if not len(known):
        return
    names, ops = measured.ops, measured.graph.node_op
    first, last = int(known[0]), int(known[-1]) + 1
    step, own = ops[first:last], of_call[first:last]
    length, is_own = last - first, np.flatnonzero(own >= 0)
    texts = [names[call] for call in range(first, last)]
    begin = 0
    while begin + _LEAST_PASS * length <= len(of_call):
        if begin == first:
            begin = last
            continue
        end = first if begin < first else len(of_call)
        if begin + length <= end and np.array_equal(ops[begin : begin + length], step):
            yield from zip((begin + is_own).tolist(), own[is_own].tolist(), strict=True)
            begin += length
            continue
        found = aligned(texts, names[begin : min(end, begin + 2 * length)])
        at = np.array(found, dtype=np.int64)
        if (at >= 0).sum() < _LEAST_PASS * length:
            if end == len(of_call):
                return
            begin = end
            continue
        hit = np.flatnonzero((at >= 0) & (own >= 0))
        yield from zip((begin + at[hit]).tolist(), own[hit].tolist(), strict=True)
        begin += int(at.max()) + 1


def marks(measured: Measured) -> dict[int, list[int]]:
    """The operators of the graph that a recorder marked in the profile while they ran -> what each called."""
    found: dict[int, list[int]] = {}
    for call, name in enumerate(measured.ops):
        if mark := _MARK.fullmatch(name):
            found.setdefault(int(mark[1]), []).append(call)
    return found


def by_mark(placing: Placing, marked: dict[int, list[int]]) -> None:
    for node, calls in marked.items():
        if node < placing.base.graph.n_nodes:
            placing.run(0, node, calls, "by id")
    _explain(placing, "nothing that was recorded started it")


def by_name(placing: Placing, capture: Capture, stage: int) -> None:
    """The operators of the graph are in the profile in the same order, once in every step that was profiled."""
    measured: Measured = placing.measured
    own = [_seen_as(name) for name in operator_names(capture.stages[stage].graph)]
    theirs = [_seen_as(name) for name in measured.ops]
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


def _seen_as(name: str) -> str:
    """One name for what both see: also for what works in place, such as the adding up of gradients."""
    name = _SEEN_AS.get(name, name)
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def _explain(placing: Placing, reason: str) -> None:
    for kernel in range(len(placing.measured.kernel_node)):
        if kernel not in placing.put:
            op = placing.measured.ops[placing.measured.kernel_node[kernel]]
            placing.reasons[kernel] = f"{reason} ({op})"
