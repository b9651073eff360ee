"""What a measured step made of its device: model FLOP/s utilization and bandwidth, each a share of the peak."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import Capture, Table, column, frozen, gaps_of
from opscope.ir.facts import UTILIZATION

from .costs.achieved import Work, total_of, work_of
from .costs.devices import Device
from .costs.stats import GraphStats
from .device import device_names, device_of, step_seconds
from .times import clocks, measured_stages, node_times


def utilization(
    capture: Capture, device: Device | None = None, counted: Mapping[int, GraphStats] = MappingProxyType({})
) -> dict[str, Any] | None:
    """Of one step, on all stages that were measured. None: nothing was measured on a device. The shares are None where
    the device's figures are not known; `at_least`: some operators' cost is not known.

    `mfu` counts products at the peak of their type, over the whole step; `mfu_busy` over the time in which kernels ran.
    """
    parts = [
        work
        for stage in measured_stages(capture)
        if (work := work_at(capture, stage, device, counted.get(stage))) is not None
    ]
    parts = [work for work in parts if work.kernels.any()]
    if not parts:
        return None
    device = device or device_of(capture)
    wall = step_seconds(capture)
    each = [total_of(work) for work in parts]
    summed = {name: sum(one[name] for one in each) for name in each[0]}
    is_known = device is not None and summed["known_seconds"] > 0
    busy = summed["busy_seconds"]
    shares = {
        "mfu": summed["products"] / wall if wall else None,
        "mfu_busy": summed["products"] / busy if busy else None,
        "bandwidth": summed["memory"] / wall if wall else None,
        "bandwidth_busy": summed["memory"] / busy if busy else None,
        "bound_seconds": summed["bound_seconds"],
    }
    return {
        "device": device.title if device is not None else None,
        "reported": device_names(capture),
        "step_seconds": wall,
        "busy_seconds": busy,
        "known_seconds": summed["known_seconds"],
        **{name: share if is_known else None for name, share in shares.items()},
        "at_least": not all(bool(work.known.all()) for work in parts),
    }


def utilization_table(found: dict[str, Any]) -> Table:
    names = [name for name in _FIGURES if found[name] is not None]
    figures = np.array([float(found[name]) for name in names])
    is_time = [name.endswith("_seconds") for name in names]
    columns = {
        "name": column(names),
        "share": column(figures, known=[not time for time in is_time]),
        "time": column(figures, "s", is_time),
        "device": column([found["device"] or ""] * len(names)),
        "at least": column(np.array([bool(found["at_least"])] * len(names), dtype=bool)),
    }
    return Table(0, "row", frozen(range(len(names))), columns, UTILIZATION.name)


_FIGURES = ("step_seconds", "busy_seconds", "bound_seconds", "mfu", "mfu_busy", "bandwidth", "bandwidth_busy")


def work_at(
    capture: Capture, stage: int, device: Device | None = None, counted: GraphStats | None = None
) -> Work | None:
    """The pieces of work of a stage. Without `device`, it is the one that the profile names."""
    graph = capture.stages[stage].graph
    stats = counted or GraphStats(graph, capture.origin.framework, gaps=gaps_of(capture, stage))
    try:
        costs = stats.costs
    except OpscopeError:  # a graph that cannot be counted
        return None
    return work_of(graph, costs, clocks(capture, stage), node_times(capture, stage), device or device_of(capture))
