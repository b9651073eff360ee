"""The events of a profile, moved to the graph that it was joined to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opscope.ir import Capture, Scope
from opscope.ir.events import GROUP_COPY, GROUP_KERNEL, NODE, ROW, SCOPE, Events, events_of
from opscope.ir.facts import DEVICES

from .placed import Placing

Int64 = npt.NDArray[np.int64]


def with_events(joined: Capture, placing: Placing) -> None:
    """Adds the events, and the devices that they ran on."""
    profile = placing.measured.capture
    if (found := events_of(profile)) is not None:
        for table in _moved(found, joined, placing).tables():
            joined.add(table)
    for table in profile.tables.values():
        if table.fact == DEVICES.name:
            joined.add(table)


def _moved(events: Events, joined: Capture, placing: Placing) -> Events:
    """Each event with what it belongs to now. Of stages with the same launches it is the first."""
    measured = placing.measured
    nodes, groups = measured.graph.n_nodes, len(measured.kernel_node)
    of_node, of_kernel = _targets(placing, nodes, groups)
    scopes = _scopes(joined, placing, of_node)
    # Copies belong to the operator that started them.
    copies = measured.graph.groups.get("copy")
    of_copy = of_node[copies.member] if copies is not None and len(copies) else np.zeros((0, 3), dtype=np.int64)
    tables = {NODE: of_node, GROUP_KERNEL: of_kernel, GROUP_COPY: of_copy, SCOPE: scopes}
    stage = np.zeros(len(events), dtype=np.int32)
    by = np.full(len(events), ROW, dtype=np.int8)
    index = np.zeros(len(events), dtype=np.int32)
    for kind, target in tables.items():
        rows = np.flatnonzero((events.by == kind) & (events.index < len(target)))
        stage[rows], by[rows], index[rows] = target[events.index[rows]].T
    return replace(events, stage=stage, by=by, index=index)


def _targets(placing: Placing, nodes: int, kernels: int) -> tuple[Int64, Int64]:
    """(stage, by, index) of each operator and of each kernel of the profile; `by` is ROW where it has no place."""
    of_node = np.zeros((nodes, 3), dtype=np.int64)
    of_kernel = np.zeros((kernels, 3), dtype=np.int64)
    for call, (stage, node) in placing.outside.items():
        of_node[call] = stage, NODE, node
    for kernel, put in placing.put.items():
        if put.launch >= 0:
            of_kernel[kernel] = put.stage, GROUP_KERNEL, put.launch
            call = placing.measured.kernel_node[kernel]
            if not placing.measured.is_replay(call):  # a replay is of many launches
                of_node[call] = put.stage, GROUP_KERNEL, put.launch
        elif (number := placing.number.get(kernel)) is not None:
            of_kernel[kernel] = put.stage, GROUP_KERNEL, number
        else:
            of_kernel[kernel] = put.stage, NODE, put.node
    for (stage, node), runs in placing.runs.items():
        for run in runs:
            for call in run:
                of_node[call] = stage, NODE, node
    return of_node, of_kernel


def _scopes(joined: Capture, placing: Placing, of_node: Int64) -> Int64:
    """The module of the graph that a module of the profile is: around the operators that ran in it, of the same class.
    Where nothing is, it is none: a profile calls modules by class and number, a graph by path."""
    profile = placing.measured.graph
    theirs = profile.pools.scopes.rows()
    found = np.zeros((len(theirs), 3), dtype=np.int64)
    inside: dict[int, list[int]] = defaultdict(list)  # by module of the profile the modules of its operators
    for call in np.flatnonzero(of_node[:, 1] == NODE).tolist():
        stage, _, node = of_node[call].tolist()
        if stage != 0:
            continue
        scope = int(joined.stages[0].graph.node_scope[node])
        at = int(profile.node_scope[call])
        while at > 0:
            inside[at].append(scope)
            at = theirs[at].parent
    ours = joined.pools.scopes.rows()
    chosen: dict[int, int] = {}
    for at in sorted(inside):  # what is around comes first
        around = chosen.get(theirs[at].parent, 0)
        chosen[at] = around
        path = _path(ours, _common(ours, set(inside[at])))
        below = path[path.index(around) + 1 :] if around in path else path[1:]
        match = next((scope for scope in below if theirs[at].cls and ours[scope].cls == theirs[at].cls), None)
        if match is not None:
            chosen[at] = match
            found[at] = 0, SCOPE, match
    return found


def _path(rows: Sequence[Scope], scope: int) -> list[int]:
    path = [scope]
    while path[-1] > 0:
        path.append(rows[path[-1]].parent)
    return path[::-1]


def _common(rows: Sequence[Scope], scopes: set[int]) -> int:
    """The innermost module around all of these."""
    paths = [_path(rows, scope) for scope in scopes]
    common = 0
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        common = level[0]
    return common
