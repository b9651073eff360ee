"""A fixed loop of plain Python, timed: printed with every figure, so that machines compare."""

from __future__ import annotations

import time


def calibrate() -> float:
    """Process CPU seconds of the loop, best of five."""
    return min(_once() for _ in range(5))


def _once() -> float:
    start = time.process_time()
    total = 0
    for i in range(2_000_000):
        total += i & 7
    return time.process_time() - start
