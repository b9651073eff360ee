"""What was measured while a model ran: times and values, as the same tables whatever the framework."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import facts
from .capture import Column, Table, column
from .columns import frozen

# The names of the tables in a capture. Not "values": that is the table of the values themselves.
TIMES, VALUES = "times", "value statistics"
# What a recorder calls the run of an operator for the profiler beside it; its number follows.
RUN_MARK = "opscope operator "
MOST_NUMBERS = 1024  # of a tensor that a live recording keeps: the first ones
_CHUNK = 1 << 16  # numbers that stay in the cache between the passes over them


class Statistics(NamedTuple):
    """Figures of one tensor; of complex numbers, those of their magnitudes. NaN spreads as in numpy."""

    norm: float
    min: float
    max: float
    mean: float
    std: float  # of the population
    nan: int
    inf: int
    size: int


class Measured(NamedTuple):
    """One tensor: its statistics and its numbers, or the first of them."""

    statistics: Statistics
    numbers: list[float]


# The counts of exponents: EXPONENTS ranges of WIDTH powers of two each, from 2**LOWEST on; what lies outside is
# counted at the ends. That is the range of float32.
EXPONENTS, WIDTH, LOWEST = 64, 4, -128


class Figures(NamedTuple):
    """Statistics of one tensor without its numbers. Those of magnitude are of the numbers that are finite."""

    size: int
    nan: int = 0
    inf: int = 0
    neginf: int = 0
    zeros: int = 0
    subnormal: int = 0
    min: float = math.nan
    max: float = math.nan
    mean: float = math.nan
    norm: float = math.nan
    rms: float = math.nan
    hash: str = ""
    exponents: tuple[int, ...] = ()
    sampled: bool = False


def content(bits: int, *ends: float) -> str:
    """A hash of a tensor's numbers in any order: of the sum of their bits and of what else is known without order."""
    return f"{bits & 0xFFFFFFFF:08x}{zlib.crc32(struct.pack(f'{len(ends)}d', *ends)):08x}"


def measured(numbers: npt.NDArray[Any]) -> Measured:
    """What a live recording keeps of a tensor."""
    return Measured(statistics_of(numbers), first_of(numbers))


def all_of(numbers: npt.NDArray[Any]) -> list[float]:
    """Every number, in order; of complex ones the magnitudes."""
    return (np.abs(numbers) if np.iscomplexobj(numbers) else numbers).reshape(-1).astype(np.float64).tolist()


def first_of(numbers: npt.NDArray[Any]) -> list[float]:
    first = numbers.reshape(-1)[:MOST_NUMBERS]
    return (np.abs(first) if np.iscomplexobj(first) else first).astype(np.float64).tolist()


def statistics_of(numbers: npt.NDArray[Any]) -> Statistics:
    numbers = np.abs(numbers).reshape(-1) if np.iscomplexobj(numbers) else numbers.reshape(-1)
    if not numbers.size:
        return Statistics(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0)
    if numbers.dtype.kind != "f" or numbers.dtype.itemsize < 4:
        numbers = numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.float64)
    with np.errstate(all="ignore"):
        low, high, total, squares = _sums(numbers, numbers.dtype)
        mean = total / numbers.size
        nan = inf = 0
        if not math.isfinite(total):
            nan, inf = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
        elif not math.isfinite(squares) or (squares < 1e-30 and (low or high)):
            squares = _sums(numbers, np.dtype(np.float64))[3]  # too large or too small for float32 when squared
        std = _deviation(numbers, mean, squares)
    return Statistics(math.sqrt(squares), low, high, mean, std, nan, inf, numbers.size)


def _sums(numbers: npt.NDArray[Any], kind: np.dtype[Any]) -> tuple[float, float, float, float]:
    """Smallest, largest, sum, sum of squares: in pieces that stay in the cache, added up in double precision."""
    total = squares = 0.0
    lows: list[float] = []
    highs: list[float] = []
    for start in range(0, numbers.size, _CHUNK):
        part = numbers[start : start + _CHUNK].astype(kind, copy=False)
        lows.append(float(part.min()))
        highs.append(float(part.max()))
        total += float(part.sum())
        squares += float(np.dot(part, part))
    return float(np.min(lows)), float(np.max(highs)), total, squares


def _deviation(numbers: npt.NDArray[Any], mean: float, squares: float) -> float:
    variance = squares / numbers.size - mean * mean
    if variance < 0.1 * mean * mean:  # the difference of two large numbers: take the deviations themselves
        parts = (numbers[start : start + _CHUNK] for start in range(0, numbers.size, _CHUNK))
        variance = sum(float(np.square(part - np.float64(mean)).sum()) for part in parts) / numbers.size
    return math.sqrt(variance) if variance >= 0 else math.nan


def times_table(
    stage: int,
    by: str,
    index: Sequence[int],
    nanoseconds: Sequence[float] | npt.NDArray[np.float64],
    known: Sequence[bool] | None = None,
    more: Mapping[str, Column] | None = None,
) -> Table:
    """Times by node, or by group where only those of kernels are known."""
    time = column(np.asarray(nanoseconds, dtype=np.float64), "ns", known)
    return Table(stage, by, frozen(index), {"time": time, **(more or {})}, facts.TIMES.name)


def values_table(stage: int, found: Mapping[int, Measured]) -> Table:
    """What was measured of each value. A tensor without numbers has no figures."""
    rows = [found[value] for value in sorted(found)]
    columns = {"values": column([row.numbers for row in rows])}
    is_filled = [row.statistics.size > 0 for row in rows]
    for name in ("norm", "min", "max", "mean", "std"):
        figures = np.array([getattr(row.statistics, name) for row in rows], dtype=np.float64)
        columns[name] = column(figures, known=is_filled)
    for name in ("nan", "inf"):
        counts = np.array([getattr(row.statistics, name) for row in rows], dtype=np.int64)
        columns[name] = column(counts, "elements")
    return Table(stage, "value", frozen(sorted(found)), columns, facts.VALUES.name)


def figures_table(stage: int, found: Mapping[int, Figures], whole: Mapping[int, list[float]] | None = None) -> Table:
    """Statistics of values, and the numbers of those kept whole. A tensor without numbers has no magnitudes."""
    values = sorted(found)
    rows = [found[value] for value in values]
    by_name = (
        dict(zip(Figures._fields, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(Figures._fields, ())
    )
    columns: dict[str, Column] = {}
    for name in ("nan", "inf", "neginf", "zeros", "subnormal"):
        columns[name] = column(np.array(by_name[name], dtype=np.int64), "elements")
    for name in ("min", "max", "mean", "norm", "rms"):
        figures = np.array(by_name[name], dtype=np.float64)
        columns[name] = Column(figures, ~np.isnan(figures))
    if whole:
        columns["values"] = column(
            [whole.get(value, []) for value in values], known=[value in whole for value in values]
        )
    exponents, hashes = by_name["exponents"], by_name["hash"]
    columns["exponents"] = column([list(row) for row in exponents], known=[bool(row) for row in exponents])
    columns["sampled"] = column(np.array(by_name["sampled"], dtype=np.int64))
    columns["hash"] = column(list(hashes), known=[bool(text) for text in hashes])
    return Table(stage, "value", frozen(values), columns, facts.VALUES.name)


def coverage_table(rows: Mapping[tuple[str, str, str], Sequence[float]]) -> Table:
    """(evidence, name, reason) -> kernels, seconds, of these in a module, on a line."""
    listed = list(rows.values())
    columns = {
        "evidence": column([evidence for evidence, _, _ in rows]),
        "name": column([name for _, name, _ in rows]),
        "reason": column([reason for _, _, reason in rows]),
        "kernels": column(np.array([row[0] for row in listed], dtype=np.int64)),
        "time": column(np.array([row[1] for row in listed], dtype=np.float64), "s"),
        "with module": column(np.array([row[2] for row in listed], dtype=np.int64)),
        "with line": column(np.array([row[3] for row in listed], dtype=np.int64)),
    }
    return Table(0, "row", frozen(range(len(rows))), columns, facts.PROFILE.name)
