"""Which device a measured run was on, and how long a step of it took."""

from __future__ import annotations

import numpy as np

from opscope.ir import Capture
from opscope.ir.events import ROW, STEP, Events, events_of
from opscope.ir.facts import DEVICES, TIMES

from .costs.devices import Device, reported_as


def device_names(capture: Capture) -> list[str]:
    """The devices of a profile, as the profiler calls them; each name once."""
    found: dict[str, None] = {}
    for table in capture.tables.values():
        if table.fact == DEVICES.name:
            found.update(dict.fromkeys(str(name) for name in table.columns["name"].values))
    return list(found)


def device_of(capture: Capture) -> Device | None:
    """The one device that a profile was taken on, where its figures are known."""
    names = device_names(capture)
    return reported_as(names[0]) if len(names) == 1 else None


def step_seconds(capture: Capture) -> float | None:
    """How long a step took: as the program marked it, otherwise from the first to the last event that belongs to the
    graph, over the number of its runs. None: it is not known when things began."""
    events = events_of(capture)
    if events is None or not len(events):
        return None
    steps = events.time[events.kind == STEP]
    placed = events.by != ROW
    if len(steps):
        return float(steps.mean()) * 1e-6
    return _span(events, placed) / runs_of(capture) if placed.any() else None


def _span(events: Events, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    start = events.start[rows]
    return float((start + events.time[rows]).max() - start.min()) * 1e-6


def runs_of(capture: Capture) -> float:
    """How often the graph ran while the profile was taken."""
    most = 1.0
    for table in capture.tables.values():
        runs = table.columns.get("runs")
        # The median column belongs to a recording of several steps, all of which are in its graph.
        if table.fact == TIMES.name and runs is not None and "median" not in table.columns and len(table.index):
            most = max(most, float(np.median(np.asarray(runs.values)[runs.known])) if runs.known.any() else 1.0)
    return most
