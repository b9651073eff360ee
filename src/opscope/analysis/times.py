"""Measured times by operator, whatever they were measured by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Capture, Column, Graph, Groups, Table
from opscope.ir.facts import TIME_UNITS, TIMES

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Times(NamedTuple):
    """Seconds by node, which of them are known, and what was measured: `node`, or `group:kernel`, whose time is shared
    out evenly among its nodes, so that sums stay right."""

    seconds: Floats
    known: Mask
    by: str


def node_times(capture: Capture, stage: int) -> Times | None:
    """The measured times of a stage; None where there are none."""
    graph = capture.stages[stage].graph
    tables = list(capture.facts(TIMES.name, stage))
    for table in tables:  # what was measured by operator is nearer than what is shared out
        if table.by == "node":
            return _by_node(table, graph)
    for table in tables:
        if table.by.startswith("group:"):
            return _by_group(table, graph, graph.groups[table.by.partition(":")[2]])
    return None


class GroupTimes(NamedTuple):
    """Seconds by group, and which of them are known."""

    seconds: Floats
    known: Mask


def kernel_times(capture: Capture, stage: int) -> GroupTimes | None:
    """The measured times of the kernels of a stage; None where there are none."""
    graph = capture.stages[stage].graph
    for table in capture.facts(TIMES.name, stage):
        if table.by == "group:kernel":
            return _of_groups(table, graph.groups["kernel"])
    return None


def _of_groups(table: Table, groups: Groups) -> GroupTimes:
    column = table.columns["time"]
    seconds, known = np.zeros(len(groups)), np.zeros(len(groups), dtype=bool)
    rows = table.index[column.known]
    seconds[rows], known[rows] = in_seconds(column)[column.known], True
    return GroupTimes(seconds, known)


def _by_node(table: Table, graph: Graph) -> Times:
    seconds, known = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes, dtype=bool)
    column = table.columns["time"]
    rows = table.index[column.known]
    seconds[rows], known[rows] = in_seconds(column)[column.known], True
    return Times(seconds, known, table.by)


def _by_group(table: Table, graph: Graph, groups: Groups) -> Times:
    """A node is known if every group that it is in was measured."""
    whole, measured = _of_groups(table, groups)
    sizes = np.diff(groups.start)
    share = whole / np.maximum(sizes, 1)
    owner = np.repeat(np.arange(len(groups)), sizes)
    seconds: Floats = np.bincount(groups.member, share[owner], minlength=graph.n_nodes).astype(np.float64)
    inside = np.bincount(groups.member, minlength=graph.n_nodes)
    found = np.bincount(groups.member, measured[owner], minlength=graph.n_nodes)
    return Times(seconds, (inside > 0) & (found == inside), table.by)


def in_seconds(column: Column) -> Floats:
    return np.asarray(column.values, dtype=np.float64) * TIME_UNITS[column.unit]
