"""Measured times by operator, whatever they were measured by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Capture, Column, Graph, Groups, Table, frozen
from opscope.ir.facts import PROFILE, TIME_UNITS, TIMES

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


class Clocks(NamedTuple):
    """What a joined profile measured, apart: the seconds of every kernel (and which are known), and the seconds that
    every operator's call took on the CPU (NaN: not known)."""

    kernels: Groups
    gpu: Floats
    gpu_known: Mask
    cpu: Floats


def clocks(capture: Capture, stage: int) -> Clocks | None:
    """The times of devices and of the CPU, where a profile tells them apart."""
    graph = capture.stages[stage].graph
    cpu = np.full(graph.n_nodes, np.nan)
    is_there = False
    for table in capture.facts(TIMES.name, stage):
        column = table.columns.get("cpu")
        if table.by == "node" and column is not None:
            is_there = True
            cpu[table.index[column.known]] = in_seconds(column)[column.known]
    kernels = graph.groups.get("kernel")
    if not is_there and (kernels is None or not _is_profiled(capture)):
        return None
    found = kernel_times(capture, stage) if kernels is not None else None
    if kernels is None or found is None:
        none = Groups("kernel", frozen([]), frozen([]), frozen([]), frozen([0]), frozen([]))
        return Clocks(none, np.zeros(0), np.zeros(0, dtype=bool), cpu)
    return Clocks(kernels, found.seconds, found.known, cpu)


def _is_profiled(capture: Capture) -> bool:
    return any(table.fact == PROFILE.name for table in capture.tables.values())


def measured_stages(capture: Capture) -> list[int]:
    """The stages with times. Several stages of one compiled graph have the same kernels: one of them."""
    seen: set[tuple[int, ...]] = set()
    found: list[int] = []
    for number, stage in enumerate(capture.stages):
        if clocks(capture, number) is None and node_times(capture, number) is None:
            continue
        kernels = stage.graph.groups.get("kernel")
        if kernels is not None and len(kernels):
            key = tuple(kernels.name.tolist())
            if key in seen:
                continue
            seen.add(key)
        found.append(number)
    return found


class InAll(NamedTuple):
    """The seconds of a whole profile that is on several stages."""

    gpu: float
    cpu: float | None


def in_all(capture: Capture) -> InAll | None:
    """None where a profile is on one stage or on none."""
    found = [clock for stage in measured_stages(capture) if (clock := clocks(capture, stage)) is not None]
    if len(found) < 2:
        return None
    cpu = [clock.cpu[np.isfinite(clock.cpu)] for clock in found]
    return InAll(
        float(sum(clock.gpu.sum() for clock in found)),
        float(sum(part.sum() for part in cpu)) if any(len(part) for part in cpu) else None,
    )


class Shares(NamedTuple):
    """Seconds of kernels that are wholly one row's, and of those that it shares with others. These are not added up:
    a shared kernel counts in every row that has a part in it."""

    own: Floats
    shared: Floats


def shares(clocks: Clocks, label: npt.NDArray[Any], count: int) -> Shares:
    """By row, where `label` is the row of each operator. A fused kernel's time is never split."""
    kernels, size = clocks.kernels, np.diff(clocks.kernels.start)
    group = np.repeat(np.arange(len(kernels)), size)
    pairs = np.unique(np.stack([group, label[kernels.member]]), axis=1) if len(group) else np.zeros((2, 0), dtype=int)
    rows = np.bincount(pairs[0], minlength=len(kernels))
    alone = rows[pairs[0]] == 1
    seconds = clocks.gpu[pairs[0]]
    own = np.bincount(pairs[1][alone], seconds[alone], minlength=count).astype(np.float64)
    shared = np.bincount(pairs[1][~alone], seconds[~alone], minlength=count).astype(np.float64)
    return Shares(own, shared)
