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
    kept,
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
    kind = _kinds(profile, found)
    is_mark = np.array([name.startswith(RUN_MARK) for name in profile.names], dtype=bool)[calls.name]
    every = np.concatenate([kind, _WORK[work.kind]]).astype(np.int8)
    # What there is no room for is never made: a trace may have many times as many events.
    candidates = np.flatnonzero(np.concatenate([~is_mark, np.ones(len(work), dtype=bool)]))
    took = np.concatenate([calls.duration, work.duration])
    keep = kept(every[candidates], took[candidates])
    rows_kept, rows_lost = candidates[keep], candidates[~keep]
    first = len(calls)
    c, w = rows_kept[rows_kept < first], rows_kept[rows_kept >= first] - first
    lost = np.concatenate(
        [
            calls.thread[rows_lost[rows_lost < first]],
            stream[rows_lost[rows_lost >= first] - first] + len(profile.threads),
        ]
    )
    counts = np.bincount(lost.astype(np.int64), minlength=len(tracks)).tolist()
    tracks = [replace(track, left_out=count) for track, count in zip(tracks, counts, strict=True)]
    by, index = _calls_of(found, c)
    group, group_by = np.zeros(len(work), dtype=np.int32), np.full(len(work), ROW, dtype=np.int8)
    for name, listed in rows.items():
        group[listed] = np.arange(len(listed), dtype=np.int32)
        group_by[listed] = GROUP_KERNEL if name == "kernel" else GROUP_COPY
    launch = work.launch[w]
    has_launch = launch >= 0
    at = np.maximum(launch, 0)
    begins = calls.start[at] if len(calls) else np.zeros(len(w))
    threads = calls.thread[at] if len(calls) else np.zeros(len(w), dtype=np.int32)
    start = np.concatenate([calls.start[c], work.start[w]])
    made = Events(
        stage=np.zeros(len(start), dtype=np.int32),
        by=np.concatenate([by, group_by[w]]),
        index=np.concatenate([index, group[w]]),
        start=start - min((float(column.min()) for column in (calls.start, work.start) if len(column)), default=0.0),
        time=took[rows_kept],
        track=np.concatenate([calls.thread[c], stream[w] + len(profile.threads)]).astype(np.int16),
        name=np.concatenate([calls.name[c], work.name[w]]).astype(np.int32),
        kind=every[rows_kept],
        delay=np.concatenate([np.full(len(c), np.nan), np.where(has_launch, work.start[w] - begins, np.nan)]),
        launched_on=np.concatenate([np.full(len(c), -1), np.where(has_launch, threads, -1)]).astype(np.int16),
        tracks=tracks,
        names=[name[:_LONGEST] for name in profile.names],
    )
    return _named(made)


def _kinds(profile: Profile, found: Operators) -> npt.NDArray[np.int8]:
    """Of every call."""
    calls = profile.calls
    is_step = np.array([_STEP.fullmatch(name) is not None for name in profile.names], dtype=bool)
    kind = np.where((calls.kind == p.REGION) & is_step[calls.name], STEP, _KINDS[calls.kind]).astype(np.int8)
    shown = np.zeros(len(calls), dtype=bool)
    shown[found.calls] = True
    # A recorder's own mark says nothing that the operators right inside of it do not: these stand for it.
    is_mark = np.array([name.startswith(RUN_MARK) for name in profile.names], dtype=bool)[calls.name]
    shown = np.where(is_mark, False, shown | ((calls.parent >= 0) & is_mark[calls.parent]))
    kind[shown & (kind == CALL)] = OPERATOR
    return kind


def _calls_of(found: Operators, calls: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """What each call belongs to: the operator that it is or runs in, or the module that it is a call of."""
    within, scope = found.within[calls], found.scope_of[calls]
    by = np.where(within >= 0, NODE, np.where(scope > 0, SCOPE, ROW)).astype(np.int8)
    return by, np.where(within >= 0, within, np.maximum(scope, 0)).astype(np.int32)


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
