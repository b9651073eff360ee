"""The counterpart of each tensor in another recording, found by its numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .side import Floats, Side

# Of the largest error of its inputs, and of its precision: how far a result may be off. Sums of many numbers in another
# order lose several digits; what is far beyond that is another formula.
_AMPLIFIED, _ROUNDED = 4.0, 6.0
_ROUNDED_COARSELY, _COARSE = 2.0, 2.0**-12  # of many numbers that round far, the mean and the rms are nearly right
_MOST, _MOST_OF_8_BITS = 0.05, 0.1  # more than that is never called the same
_8_BITS = 2.0**-6


class Match(NamedTuple):
    at: npt.NDArray[np.int64]  # by value of one side: its counterpart on the other, or -1
    error: Floats  # how far the two are apart, relatively


def match(one: Side, other: Side) -> Match:
    """The counterpart of each value: equal bits first, otherwise the nearest within what rounding may do."""
    graph = one.graph
    at = np.full(graph.n_values, -1, dtype=np.int64)
    error = np.zeros(graph.n_values)
    by_size = _by_size(other)
    equal: dict[tuple[int, str], int] = {}
    for value in range(other.graph.n_values - 1, -1, -1):
        if other.hash[value] and other.reached[value]:
            equal[int(other.size[value]), other.hash[value]] = value
    # What a compiler fused has no counterparts in between, and adds up the rounding of every step.
    adds_up = one.is_compiled or other.is_compiled
    slack = np.zeros(graph.n_values)
    order: list[int] = np.argsort(graph.value_producer, kind="stable").tolist()
    for value in order:
        before = max((float(slack[used]) for used in one.inputs(value)), default=0.0)
        if adds_up:
            slack[value] = before + one.steps(value, other) * max(float(one.precision[value]), one.usual, other.usual)
        if not (one.telling[value] or one.numbers[value]):
            continue
        same = equal.get((int(one.size[value]), one.hash[value]), -1) if one.hash[value] else -1
        if same >= 0 and abs(other.precision[same] - one.precision[value]) == 0:
            at[value], slack[value] = same, 0.0
            continue
        found = nearest(one, other, by_size, value, before)
        if found is not None:
            at[value], error[value] = found
            slack[value] = max(error[value], slack[value])
    return Match(at, error)


class _Sorted(NamedTuple):
    values: npt.NDArray[np.int64]
    rms: Floats


def _by_size(side: Side) -> dict[int, _Sorted]:
    found: dict[int, _Sorted] = {}
    usable = np.flatnonzero((side.telling | side.numbers) & side.reached)
    sizes = side.size[usable]
    for size in np.unique(sizes).tolist():
        values = usable[sizes == size]
        values = values[np.argsort(side.figures[values, 1], kind="stable")]
        found[size] = _Sorted(values, side.figures[values, 1])
    return found


def nearest(one: Side, other: Side, by_size: dict[int, _Sorted], value: int, before: float) -> tuple[int, float] | None:
    candidates = by_size.get(int(one.size[value]))
    if candidates is None:
        return None
    rms = float(one.figures[value, 1])
    width = abs(rms) * 2 * _MOST_OF_8_BITS + 1e-30
    low, high = np.searchsorted(candidates.rms, [rms - width, rms + width])
    values = candidates.values[low:high]
    if not len(values):
        return None
    off = apart(one, value, other, values)
    # What only one of two equally precise programs rounds coarsely is a difference between them.
    both = np.minimum(other.precision[values], one.precision[value])
    precision = np.maximum(both, max(one.usual, other.usual))
    rounded = _rounded(precision)
    most = _MOST_OF_8_BITS if max(one.usual, other.usual) >= _8_BITS else _MOST
    allowed = np.minimum(_AMPLIFIED * before + rounded, most)
    best = int(np.argmin(off / np.maximum(allowed, 1e-30)))
    return (int(values[best]), float(off[best])) if off[best] <= allowed[best] else None


def _rounded(precision: Floats) -> Floats:
    return np.where(precision > _COARSE, _ROUNDED_COARSELY, _ROUNDED) * precision


def rounding(one: Side, other: Side) -> float:
    """How far apart rounding alone may bring results that are computed as these two compute."""
    return float(_rounded(np.array([max(one.usual, other.usual)]))[0])


def apart(one: Side, value: int, other: Side, values: npt.NDArray[np.int64]) -> Floats:
    """The largest difference of the statistics, relative to the size of the numbers: the mean's to the rms, the
    extremes' to themselves; these are single numbers, which rounding moves more."""
    mine, theirs = one.figures[value], other.figures[values]
    scale = max(float(one.scale[value]), 1e-30)
    ends = np.maximum(np.abs(mine[2:]), scale)
    return np.maximum.reduce(
        [
            np.abs(theirs[:, 0] - mine[0]) / scale,
            np.abs(theirs[:, 1] - mine[1]) / scale,
            np.abs(theirs[:, 2] - mine[2]) / ends[0] / 2,
            np.abs(theirs[:, 3] - mine[3]) / ends[1] / 2,
        ]
    )
