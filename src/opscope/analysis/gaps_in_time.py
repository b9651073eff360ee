"""When devices had nothing to do, and for how long of it because what came next had not been launched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opscope.ir.events import COPY, KERNEL, LAUNCH, SET, Events

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SAME = 1e-3  # microseconds: the beginning of a launch, computed in two ways


@dataclass(frozen=True, eq=False)
class TimeGaps:
    """Gaps between pieces of work of a device; times in microseconds."""

    next: Ints  # the event that ends each
    length: Floats
    waited: Floats  # of it, until the call that launched the next piece was over


def gaps_between(events: Events) -> TimeGaps:
    """The same rule as `split` of a profile: idle, and waiting for the CPU."""
    found = [_of_device(events, device) for device in sorted({t.device for t in events.tracks if t.kind == 1})]
    if not found:
        return TimeGaps(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    return TimeGaps(*(np.concatenate([getattr(one, name) for one in found]) for name in ("next", "length", "waited")))


def _of_device(events: Events, device: int) -> TimeGaps:
    of_track = np.array([track.device for track in events.tracks])
    is_work = np.isin(events.kind, (KERNEL, COPY, SET)) & (of_track[events.track] == device)
    rows = np.flatnonzero(is_work)
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    if len(rows) < 2:
        return TimeGaps(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    reach = np.maximum.accumulate(events.start[rows] + events.time[rows])
    begins = events.start[rows][1:]
    is_gap = begins > reach[:-1]
    following, end = rows[1:][is_gap], reach[:-1][is_gap]
    length = begins[is_gap] - end
    over = _launched(events, following)
    waited = np.where(np.isfinite(over), np.clip(np.minimum(over, begins[is_gap]) - end, 0.0, None), 0.0)
    return TimeGaps(following.astype(np.int64), length, waited)


def _launched(events: Events, rows: npt.NDArray[np.intp]) -> Floats:
    """When the call that launched each was over; NaN: not known."""
    began = events.start[rows] - events.delay[rows]
    out = began.copy()  # at least then, where the call itself is not there
    launches = np.flatnonzero(events.kind == LAUNCH)
    launches = launches[np.argsort(events.start[launches], kind="stable")]
    if not len(launches):
        return out
    starts = events.start[launches]
    at = np.clip(np.searchsorted(starts, began - _SAME), 0, len(launches) - 1)
    for _ in range(4):  # several threads may have launched at the same time
        same = (np.abs(starts[at] - began) <= _SAME) & (events.track[launches[at]] == events.launched_on[rows])
        out = np.where(same, began + events.time[launches[at]], out)
        at = np.minimum(at + 1, len(launches) - 1)
    return out
