"""An end to reading that does not end by itself.

Readers check what they know can grow: sizes, depths, numbers of digits, parts that name each other. This is for what
unforeseen: a file gets processor time in proportion to its size, far more than an honest one takes, and then
its reader is stopped. It is the time of the thread that reads, so a busy machine changes nothing.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from opscope.errors import BadInput

_SECONDS = 8.0
_MOST_SECONDS = 900.0
_SECONDS_PER_BYTE = 8e-6  # honest files take less than a tenth


class _TimeIsUp(BaseException):
    """Not an Exception: no reader takes it for a damaged member."""


@contextmanager
def deadline(name: str, size: int) -> Generator[None]:
    """Ends the block with a BadInput after the time that a file of this size gets."""
    stop = getattr(ctypes.pythonapi, "PyThreadState_SetAsyncExc", None)
    if stop is None:  # another Python than CPython
        yield
        return
    thread = ctypes.c_ulong(threading.get_ident())
    seconds = min(_SECONDS + _SECONDS_PER_BYTE * size, _MOST_SECONDS)
    over, sent, lock = threading.Event(), threading.Event(), threading.Lock()
    clock = _clock_of_this_thread()

    def watch() -> None:
        left = seconds
        while left > 0:
            if over.wait(left + 0.01):
                return
            left = seconds - clock()
        with lock:
            if not over.is_set():
                sent.set()
                stop(thread, ctypes.py_object(_TimeIsUp))

    threading.Thread(target=watch, name="opscope deadline", daemon=True).start()
    try:
        try:
            yield
        finally:
            with lock:
                over.set()
            # What was sent arrives here at the latest. It is not taken back: where nothing was sent, or it has arrived,
            # CPython 3.11 would look for it at every step from then on, and for ever under a debugger.
            patience = 1000
            while sent.is_set() and patience:
                patience -= 1
                time.sleep(0.001)
    except _TimeIsUp:
        raise BadInput(
            f"{name}: reading it takes longer than {seconds:.0f} s, as no honest file of {size:,} bytes does: refused"
        ) from None


def _clock_of_this_thread() -> Callable[[], float]:
    """Seconds of processor time of this thread since now, for another one to read."""
    try:
        ident = time.pthread_getcpuclockid(threading.get_ident())
        start = time.clock_gettime(ident)
    except (AttributeError, OSError):  # not everywhere
        begun = time.monotonic()
        return lambda: time.monotonic() - begun

    def used() -> float:
        try:
            return time.clock_gettime(ident) - start
        except OSError:  # the thread is gone
            return 0.0

    return used
