"""Threads that were there before a recording and worked meanwhile, without a word to or from it: nobody saw what ran.

Whether a thread ran at all, the clock of its own processor time says. Whether it may have run operators is judged by
what it is: a library's thread that has nothing of torch in its reach (a progress bar, a notebook's own) is passed over.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Set
from types import FrameType, FunctionType, ModuleType
from typing import Any

from opscope.tracers.arguments import is_a
from opscope.tracers.frames import OWN, frames_by_thread, variables_of

_WATCHED = ("concurrent/futures/thread.py", "multiprocessing/pool.py")  # whatever they are given is seen
_LOOPS = "/asyncio/"
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD = os.path.dirname(threading.__file__) + os.sep


class Elsewhere:
    """What each other thread has used of a processor, when this is made."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._root = os.path.dirname(torch.__file__) + os.sep
        here = threading.get_ident()
        # All clocks first: a thread that ends meanwhile has none any more, and asking for it is not safe.
        found = [
            (thread, frame, _used(thread, frame)) for thread, frame in frames_by_thread().items() if thread != here
        ]
        self._before = {thread: (used, name) for thread, frame, used in found if (name := self._name(thread, frame))}

    def at_work(self, seen: Set[int]) -> list[str]:
        """A reason for each that has worked since and was not seen."""
        frames = frames_by_thread()
        return [
            f"thread {name!r} was running before the recording began, worked meanwhile, and is not recorded"
            for thread, (used, name) in self._before.items()
            if thread not in seen and (thread not in frames or _used(thread, frames[thread]) != used)
        ]

    def _name(self, thread: int, frame: FrameType) -> str:
        """What the thread is called if it may run operators, else nothing."""
        walk: FrameType | None = frame
        outermost = ""
        is_near = False
        while walk is not None:
            file = walk.f_code.co_filename
            if file.startswith((self._root, OWN)) or file.replace(os.sep, "/").endswith(_WATCHED):
                return ""
            if file != threading.__file__:
                outermost = file
                is_near = is_near or self._reaches(walk)
            walk = walk.f_back
        if not is_near and self._is_library(outermost):
            return ""
        return next((each.name for each in threading.enumerate() if each.ident == thread), str(thread))

    def _is_library(self, file: str) -> bool:
        if any(folder in file for folder in _INSTALLED):
            return True
        return not file or (file.startswith((_STANDARD, "<frozen")) and _LOOPS not in file.replace(os.sep, "/"))

    def _reaches(self, frame: FrameType) -> bool:
        """Whether its variables hold something of torch."""
        kinds = (self._torch.nn.Module, self._torch.Tensor)
        for value in variables_of(frame).values():
            if is_a(value, kinds):
                return True
            if is_a(value, ModuleType):
                owner = ModuleType.__getattribute__(value, "__dict__").get("__name__")
            elif type(value) is FunctionType:
                owner = value.__module__
            else:
                continue
            if is_a(owner, str) and (owner == "torch" or owner.startswith("torch.")):
                return True
        return False


def _used(thread: int, frame: FrameType) -> Any:
    """What changes when a thread works."""
    if sys.platform == "win32" or not hasattr(time, "pthread_getcpuclockid"):
        return id(frame), frame.f_lasti
    return time.clock_gettime_ns(time.pthread_getcpuclockid(thread))
