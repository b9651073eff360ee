"""Where the time of a profiled run went, apart: kernels, copies, communication, overlap, and why a device was idle.

Each figure is counted from the trace's own beginnings and ends; none is an estimate. A device waits for the CPU where
the call that started its next piece of work was not over when the device ran out of work.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Table, column, frozen
from opscope.ir.facts import SPLIT

from .profile import COPY, KERNEL, LAUNCH, SET, Profile

Floats = npt.NDArray[np.float64]

_COMMUNICATION = re.compile(r"nccl|rccl|nvshmem|ncclDevKernel|c10d", re.IGNORECASE)
_SMALL = 10.0  # µs: a kernel shorter than what it takes to launch the next one


class Spans(NamedTuple):
    """Stretches of time that do not touch each other, in order."""

    start: Floats
    end: Floats

    @property
    def total(self) -> float:
        return float((self.end - self.start).sum())


def split_table(profile: Profile) -> Table | None:
    """None where nothing ran on a device."""
    work = profile.work
    if not len(work):
        return None
    rows: list[tuple[str, float, int, str]] = []
    for device in np.unique(work.device).tolist():
        mine = work.device == device
        rows += [(f"{name} on device {device}", *rest) for name, *rest in _device(profile, mine)]
    calls = profile.calls
    is_launch = calls.kind == LAUNCH
    if is_launch.any():
        launches = float(calls.duration[is_launch].sum())
        what = "calls of the device's library on the CPU (launching, copying, waiting)"
        rows.append(("library calls on the CPU", launches, int(is_launch.sum()), what))
    columns = {
        "name": column([row[0] for row in rows]),
        "time": column(np.array([row[1] for row in rows]) * 1e-6, "s"),
        "count": column(np.array([row[2] for row in rows], dtype=np.int64)),
        "explanation": column([row[3] for row in rows]),
    }
    return Table(0, "row", frozen(range(len(rows))), columns, SPLIT.name)


def _device(profile: Profile, mine: npt.NDArray[np.bool_]) -> list[tuple[Any, ...]]:
    work = profile.work
    start, end = work.start[mine], work.start[mine] + work.duration[mine]
    kind, names = work.kind[mine], work.name[mine]
    talks = np.array([_COMMUNICATION.search(name) is not None for name in profile.names], dtype=bool)[names]
    is_kernel = (kind == KERNEL) & ~talks
    busy, computing, talking = (merged(start[m], end[m]) for m in (np.ones(len(start), bool), is_kernel, talks))
    span = float(end.max() - start.min())
    waiting, waits = _waits(profile, mine, busy)
    idle = span - busy.total
    small = is_kernel & (end - start < _SMALL)
    copies = (kind == COPY) | (kind == SET)
    together = float((end - start).sum()) - busy.total
    found: list[tuple[Any, ...]] = [
        ("span", span, len(start), "from the first piece of work to the end of the last"),
        ("busy", busy.total, len(start), "something ran"),
        ("idle", idle, len(busy.start) - 1, "nothing ran, between two pieces of work"),
        ("waiting for the CPU", waiting, waits, "idle, because the next piece of work was not launched yet"),
        ("overlap", together, 0, "run beside other work, on several streams: counted twice in the sum of kernels"),
        ("small kernels", float((end - start)[small].sum()), int(small.sum()), f"kernels shorter than {_SMALL:g} µs"),
        ("copies", float((end - start)[copies].sum()), int(copies.sum()), "copying and setting memory"),
    ]
    if talks.any():
        hidden = _common(computing, talking)
        count = int(talks.sum())
        found += [
            ("communication", talking.total, count, "collectives between devices"),
            ("exposed communication", talking.total - hidden, count, "collectives while nothing was computed"),
        ]
    return found


def merged(start: Floats, end: Floats) -> Spans:
    """
    >>> merged(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0])).total
    4.0
    """
    if not len(start):
        return Spans(start, end)
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    begins = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((begins[1:], [True]))
    return Spans(start[begins], reach[last])


def _waits(profile: Profile, mine: npt.NDArray[np.bool_], busy: Spans) -> tuple[float, int]:
    """How long the device was idle while what it did next had not been launched, and how often."""
    work, calls = profile.work, profile.calls
    first = np.searchsorted(work.start[mine], busy.start[1:])  # what ends each gap; work is in the order of its start
    launch = work.launch[mine][np.minimum(first, int(mine.sum()) - 1)]
    known = launch >= 0
    started = launch[known]
    late = np.minimum(calls.start[started] + calls.duration[started], busy.start[1:][known]) - busy.end[:-1][known]
    late = late[late > 0]
    return float(late.sum()), len(late)


def _common(one: Spans, other: Spans) -> float:
    """How long both are at once."""
    both = merged(np.concatenate((one.start, other.start)), np.concatenate((one.end, other.end)))
    return one.total + other.total - both.total
