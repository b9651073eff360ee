"""What ran when in a measured profile, as columns: made by readers, moved by joins, shown as the page's timeline.

Every event belongs to something: an operator, a module, a kernel or a copy of a stage, or to nothing of the graph.
`Events` holds them all beside each other; in a capture they are one table for each of these (`facts.EVENTS`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .capture import Capture, Column, Table, column
from .columns import frozen
from .enumerations import EVENT_KINDS, TRACK_KINDS
from .facts import DEVICES, EVENT_NAMES, EVENTS, TIME_UNITS, TRACKS

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

# A capture holds no more events than this; what goes first is in `_KEPT_LAST`.
MOST_EVENTS = 1_000_000
OPERATOR, CALL, REGION, STEP, PYTHON, LAUNCH, KERNEL, COPY, SET = range(len(EVENT_KINDS))
THREAD, STREAM = range(len(TRACK_KINDS))
# What is left out first where there are too many: what says least about the graph.
_FIRST_OUT = (PYTHON, CALL, LAUNCH, REGION, SET, COPY, OPERATOR, STEP, KERNEL)
BY = ("row", "node", "scope", "group:kernel", "group:copy")
ROW, NODE, SCOPE, GROUP_KERNEL, GROUP_COPY = range(len(BY))


@dataclass(frozen=True, eq=False)
class Track:
    """A thread, or a stream of a device; `left_out`: how many of its events there is no room for."""

    name: str
    kind: int
    device: int = -1
    left_out: int = 0


@dataclass(frozen=True, eq=False)
class Events:
    """Times are in microseconds, from the beginning of the profile."""

    stage: Ints
    by: npt.NDArray[np.int8]  # into BY
    index: Ints  # what of that it is; of a row nothing
    start: Floats
    time: Floats
    track: npt.NDArray[np.int16]
    name: Ints  # into `names`
    kind: npt.NDArray[np.int8]
    delay: Floats  # NaN: not known
    launched_on: npt.NDArray[np.int16]  # -1: not known
    tracks: Sequence[Track]
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.start)

    def rows(self, keep: npt.NDArray[Any]) -> Events:
        return replace(self, **{name: getattr(self, name)[keep] for name in _COLUMNS})

    def limited(self, most: int = MOST_EVENTS) -> Events:
        """Those that a capture has room for; each track says how many it lost."""
        keep = kept(self.kind, self.time, most)
        if keep.all():
            return self
        lost = np.bincount(self.track[~keep], minlength=len(self.tracks)).tolist()
        tracks = [replace(t, left_out=t.left_out + n) for t, n in zip(self.tracks, lost, strict=True)]
        return replace(self.rows(keep), tracks=tracks)

    @property
    def left_out(self) -> int:
        return sum(track.left_out for track in self.tracks)

    def tables(self) -> Iterator[Table]:
        yield Table(
            0,
            "row",
            frozen(range(len(self.tracks))),
            {
                "name": column([track.name for track in self.tracks]),
                "kind": column(np.array([track.kind for track in self.tracks], dtype=np.int8)),
                "device": column(np.array([track.device for track in self.tracks], dtype=np.int32)),
                "left out": column(np.array([track.left_out for track in self.tracks], dtype=np.int64)),
            },
            TRACKS.name,
        )
        names = column(list(self.names))
        yield Table(0, "row", frozen(range(len(self.names))), {"name": names}, EVENT_NAMES.name)
        # Events of nothing are of the first stage.
        place = np.where(self.by == ROW, 0, self.stage).astype(np.int64) * len(BY) + self.by
        for key in np.unique(place).tolist():
            rows = np.flatnonzero(place == key)
            yield self._table(rows, key // len(BY), key % len(BY))

    def _table(self, rows: npt.NDArray[np.intp], stage: int, by: int) -> Table:
        columns = {
            "start": column(self.start[rows], "us"),
            "time": column(self.time[rows], "us"),
            "track": column(self.track[rows]),
            "name": column(self.name[rows]),
            "kind": column(self.kind[rows]),
        }
        delay, launched = self.delay[rows], self.launched_on[rows]
        if (known := np.isfinite(delay)).any():
            columns["delay"] = Column(np.where(known, delay, 0.0), known, "us")
            columns["launched on"] = Column(np.maximum(launched, 0).astype(np.int16), launched >= 0)
        index = np.arange(len(rows)) if by == ROW else self.index[rows]
        return Table(stage, BY[by], frozen(index), columns, EVENTS.name)


def kept(kind: npt.NDArray[np.int8], time: Floats, most: int = MOST_EVENTS) -> npt.NDArray[np.bool_]:
    """Which events a capture has room for: what says least about the graph goes first, the shortest of it."""
    keep = np.ones(len(kind), dtype=bool)
    over = len(kind) - most
    for first in _FIRST_OUT:
        if over <= 0:
            break
        mine = np.flatnonzero(kind == first)
        out = mine if len(mine) <= over else mine[np.argsort(time[mine], kind="stable")[:over]]
        keep[out] = False
        over -= len(out)
    return keep


_COLUMNS = ("stage", "by", "index", "start", "time", "track", "name", "kind", "delay", "launched_on")


def events_of(capture: Capture) -> Events | None:
    """All events of a capture, in the order of its tables; None where it has none, or has lost its tracks."""
    tables = [table for table in capture.tables.values() if table.fact == EVENTS.name]
    tracks = next((table for table in capture.tables.values() if table.fact == TRACKS.name), None)
    names = next((table for table in capture.tables.values() if table.fact == EVENT_NAMES.name), None)
    if not tables or tracks is None or names is None:
        return None
    parts = [_part(table) for table in tables]
    joined: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}
    told: dict[str, Any] = {name: column.values for name, column in tracks.columns.items()}
    listed = zip(told["name"], told["kind"], told["device"], told["left out"], strict=True)
    found = [Track(str(name), int(kind), int(device), int(lost)) for name, kind, device, lost in listed]
    texts = [str(name) for name in names.columns["name"].values]
    limits = (("track", len(found)), ("name", len(texts)))
    for name, most in limits:  # a file may say anything
        joined[name] = np.clip(joined[name], 0, max(most - 1, 0))
    return Events(**joined, tracks=found, names=texts) if found and texts else None


def _part(table: Table) -> dict[str, npt.NDArray[Any]]:
    count = len(table.index)

    def numbers(name: str, dtype: npt.DTypeLike, missing: float = -1) -> npt.NDArray[Any]:
        out: npt.NDArray[Any] = np.full(count, missing, dtype=dtype)
        found = table.columns.get(name)
        if found is None:
            return out
        values: npt.NDArray[np.float64] = np.asarray(found.values, dtype=np.float64)
        if found.unit:
            values = values * TIME_UNITS[found.unit] * 1e6
        out[found.known] = values[found.known]
        return out

    return {
        "stage": np.full(count, table.stage, dtype=np.int32),
        "by": np.full(count, BY.index(table.by), dtype=np.int8),
        "index": np.asarray(table.index, dtype=np.int32),
        "start": numbers("start", np.float64, 0.0),
        "time": numbers("time", np.float64, 0.0),
        "track": numbers("track", np.int16),
        "name": numbers("name", np.int32),
        "kind": numbers("kind", np.int8),
        "delay": numbers("delay", np.float64, np.nan),
        "launched_on": numbers("launched on", np.int16),
    }


def devices_table(rows: Sequence[tuple[int, str]]) -> Table:
    """The number and the name of each."""
    columns = {
        "number": column(np.array([number for number, _ in rows], dtype=np.int32)),
        "name": column([name for _, name in rows]),
    }
    return Table(0, "row", frozen(range(len(rows))), columns, DEVICES.name)
