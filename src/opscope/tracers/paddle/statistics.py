"""Figures of one gradient: norm, smallest, largest, mean, and how many of its numbers are NaN or infinite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_CHUNK = 1 << 16  # numbers that stay in the cache between the passes over them


def figures(tensor: Any) -> tuple[float, ...] | None:
    """None where the numbers cannot be read (sparse rows, no memory)."""
    try:
        if str(tensor.dtype).endswith(("bfloat16", "float8_e4m3fn", "float8_e5m2")):
            tensor = tensor.detach().astype("float32")
        numbers: Any = np.asarray(tensor.numpy()).reshape(-1)
    except Exception:
        return None
    return of_array(numbers)


def of_array(numbers: Any) -> tuple[float, ...]:
    if np.iscomplexobj(numbers):
        numbers = np.abs(numbers)
    if not numbers.size:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if numbers.dtype.kind != "f" or numbers.dtype.itemsize < 4:
        numbers = numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.float64)
    with np.errstate(all="ignore"):
        low, high, total, squares = _sums(numbers, numbers.dtype)
        nan = inf = 0
        if not math.isfinite(total):
            nan, inf = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
        elif not math.isfinite(squares) or (squares < 1e-30 and (low or high)):
            squares = _sums(numbers, np.dtype(np.float64))[3]  # too large or too small for float32 when squared
    return math.sqrt(squares), low, high, total / numbers.size, float(nan), float(inf)


def _sums(numbers: Any, kind: Any) -> tuple[float, float, float, float]:
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
