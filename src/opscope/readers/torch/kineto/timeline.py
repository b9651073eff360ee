"""The events of a profile as its capture holds them: what the page's timeline shows."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opscope.ir import Table
from opscope.ir.events import (
    CALL,
    GROUP_COPY,
    GROUP_KERNEL,
    LAUNCH,
    NODE,
    OPERATOR,
    PYTHON,
    REGION,
    ROW,
    SCOPE,
    STEP,
    STREAM,
    THREAD,
    Events,
    Track,
    devices_table,
)
from opscope.ir.events import COPY as COPY_EVENT
from opscope.ir.events import KERNEL as KERNEL_EVENT
from opscope.ir.events import SET as SET_EVENT
from opscope.ir.measurements import RUN_MARK

from . import profile as p
from .operators import Operators
from .profile import Profile

_STEP = re.compile(r"ProfilerStep#\d+")
_LONGEST = 400  # characters of a name
_MOST_TRACKS = 1 << 12
_KINDS = np.array([CALL, REGION, PYTHON, LAUNCH], dtype=np.int8)  # by kind of call
_WORK = np.array([KERNEL_EVENT, COPY_EVENT, SET_EVENT], dtype=np.int8)  # by kind of work


def events(profile: Profile, found: Operators, rows: dict[str, list[int]]) -> Events | None:
    """`rows`: by kind of group, which pieces of work its groups are."""
    calls, work = profile.calls, profile.work
    streams, stream = np.unique(np.stack([work.device, work.stream]), axis=1, return_inverse=True)
    stream = stream.reshape(-1)
    tracks = [Track(name[:_LONGEST], THREAD) for name in profile.threads]
    for device, number in streams.T.tolist():
        tracks.append(Track(f"stream {number}" if number >= 0 else "stream", STREAM, int(device)))
    if not tracks or len(tracks) > _MOST_TRACKS:
        return None
    by, index = _calls_of(profile, found)
    kind = _KINDS[calls.kind]
    is_step = np.array([_STEP.fullmatch(name) is not None for name in profile.names], dtype=bool)
    kind = np.where((calls.kind == p.REGION) & is_step[calls.name], STEP, kind)
    shown = np.zeros(len(calls), dtype=bool)
    shown[found.calls] = True
    # A recorder's own mark says nothing that the operators right inside of it do not: these stand for it.
    is_mark = np.array([name.startswith(RUN_MARK) for name in profile.names], dtype=bool)[calls.name]
    shown = np.where(is_mark, False, shown | ((calls.parent >= 0) & is_mark[calls.parent]))
    kind[shown & (kind == CALL)] = OPERATOR
    group, group_by = np.zeros(len(work), dtype=np.int32), np.full(len(work), ROW, dtype=np.int8)
    for name, listed in rows.items():
        group[listed] = np.arange(len(listed), dtype=np.int32)
        group_by[listed] = GROUP_KERNEL if name == "kernel" else GROUP_COPY
    launch = work.launch
    has_launch = launch >= 0
    at = np.maximum(launch, 0)
    begins = calls.start[at] if len(calls) else np.zeros(len(work))
    threads = calls.thread[at] if len(calls) else np.zeros(len(work), dtype=np.int32)
    delay = np.where(has_launch, work.start - begins, np.nan)
    count = len(calls) + len(work)
    start = np.concatenate([calls.start, work.start])
    made = Events(
        stage=np.zeros(count, dtype=np.int32),
        by=np.concatenate([by, group_by]),
        index=np.concatenate([index, group]),
        start=start - (start.min() if count else 0.0),
        time=np.concatenate([calls.duration, work.duration]),
        track=np.concatenate([calls.thread, stream + len(profile.threads)]).astype(np.int16),
        name=np.concatenate([calls.name, work.name]).astype(np.int32),
        kind=np.concatenate([kind, _WORK[work.kind]]).astype(np.int8),
        delay=np.concatenate([np.full(len(calls), np.nan), delay]),
        launched_on=np.concatenate([np.full(len(calls), -1), np.where(has_launch, threads, -1)]).astype(np.int16),
        tracks=tracks,
        names=[name[:_LONGEST] for name in profile.names],
    )
    kept = np.concatenate([~is_mark, np.ones(len(work), dtype=bool)])
    return _named((made if kept.all() else made.rows(kept)).limited())


def _calls_of(profile: Profile, found: Operators) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """What each call belongs to: the operator that it is or runs in, or the module that it is a call of."""
    inside = found.within >= 0
    scope = found.scope_of
    by = np.where(inside, NODE, np.where(scope > 0, SCOPE, ROW)).astype(np.int8)
    return by, np.where(inside, found.within, np.maximum(scope, 0)).astype(np.int32)


def _named(events: Events) -> Events:
    """Only the names that are used: a profile has others, such as shapes."""
    used, name = np.unique(events.name, return_inverse=True)
    names = [events.names[i] for i in used.tolist()] or [""]
    return replace(events, name=name.reshape(-1).astype(np.int32), names=names)


def tables(profile: Profile, found: Operators, rows: dict[str, list[int]]) -> tuple[list[Table], str]:
    """Events and devices as facts, and what to say of events that are left out."""
    made = events(profile, found, rows)
    out = [] if made is None or not len(made) else list(made.tables())
    if profile.devices and (devices := _devices(profile)):
        out.append(devices_table(devices))
    lost = made.left_out if made is not None else 0
    told = f"the timeline leaves out {lost:,} events: calls of Python first, then what operators call" if lost else ""
    return out, told


def _devices(profile: Profile) -> list[tuple[int, str]]:
    """The devices on which something ran; all of them where nothing says which."""
    used = set(np.unique(profile.work.device).tolist())
    found: list[tuple[int, str]] = []
    for place, entry in enumerate(profile.devices[:1024]):
        number, name = entry.get("id", place), entry.get("name")
        if isinstance(number, int) and 0 <= number < 1 << 31 and isinstance(name, str) and (number in used or not used):
            found.append((number, name[:100]))
    return found
