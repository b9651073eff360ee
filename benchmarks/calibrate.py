"""A fixed loop of plain Python, timed: printed with every figure, so that machines compare."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time


def calibrate() -> float:
    """Process CPU seconds of the loop, best of five."""
    return min(_once() for _ in range(5))


def is_there(tool: str) -> bool:
    """Whether a program is on the path, or a package installed; if not, a line says that it is left out."""
    found = shutil.which(tool) is not None or importlib.util.find_spec(tool) is not None
    if not found:
        print(f"{tool} not installed: skipped", flush=True)
    return found


def need(package: str) -> None:
    """A benchmark of one framework has nothing to do without it."""
    if not is_there(package):
        sys.exit(0)


def _once() -> float:
    start = time.process_time()
    total = 0
    for i in range(2_000_000):
        total += i & 7
    return time.process_time() - start
