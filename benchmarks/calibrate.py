"""A fixed loop of plain Python, timed: what a figure is printed beside, so that machines compare."""

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
