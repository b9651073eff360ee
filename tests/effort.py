"""How much work a call is, counted and not timed: the same on a fast machine, a slow one and a busy one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import opscope

HOME = str(Path(opscope.__file__).parent)

# For the code of a child process: `peak()` is the most memory that it has had, in kB. Not getrusage: Linux starts
# a child's ru_maxrss at that of its parent, which is pytest with all that it has loaded.
PEAK = r"""
import re
def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read())[1])
"""


def lines_run(function: Callable[[], object]) -> int:
    """How many lines of opscope's own Python run; each round of a loop counts again."""
    count = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def entered(frame: FrameType, event: str, arg: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(HOME) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
