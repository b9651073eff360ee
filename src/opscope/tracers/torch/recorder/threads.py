"""Other threads that work for the recorded code: what the recording thread starts or hands to a pool is recorded too.

Torch's dispatch modes belong to one thread. So while a session is open, `Thread.start` and what pools are given are
wrapped: the work, when it begins in its own thread, gets a mode of its own there, and the module call that it was
started from as its outermost one. Work that comes to a thread in another way (a queue that a thread waits at, started
before the recording) is not seen; `Calls` notices the modules that are called there.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, cast

from opscope.tracers.frames import OWN
from opscope.tracers.torch import private

from .calls import Active, Calls
from .places import Places

_POOLS = ("concurrent.futures.thread", "multiprocessing.pool")  # whose threads wait for work: that is wrapped instead
_OPEN: list[Threads] = []
_BEFORE: list[tuple[Any, str, Any]] = []  # what was wrapped: owner, name, what stood there


class Threads:
    """The threads of one session."""

    def __init__(
        self, calls: Calls, places: Places, new_mode: Callable[[], Any], base: FrameType | None, *, lean: bool
    ) -> None:
        self._calls = calls
        self._places = places
        self._new_mode = new_mode
        self._base = base
        self._lean = lean
        self._members = {threading.get_ident()}
        self._is_open = False
        # Thread -> its number among those of this session, since idents are used again. Empty as long as there is none.
        self.number: dict[int, int] = {}
        self._count = 0

    def open(self) -> None:
        self._is_open = True
        if not _OPEN:
            _wrap()
        _OPEN.append(self)

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        _OPEN.remove(self)
        if not _OPEN:
            _unwrap()

    def has(self, thread: int) -> bool:
        return thread in self._members

    def wrapped(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The work, so that it is recorded wherever it runs; called where it is handed over."""
        stack = self._calls.active.get(threading.get_ident())
        top = stack[-1] if stack else None
        place = 0
        if not self._lean:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(OWN):
                frame = frame.f_back
            place = self._places.at(frame, top.frame if top else self._base, top.place if top else 0)
        call, module = (top.call, top.module) if top else (-1, 0)
        self.number.setdefault(0, 0)  # from now on, what is noted is noted under a lock

        @functools.wraps(work, assigned=("__name__", "__qualname__", "__doc__"), updated=())
        def run(*args: Any, **kwargs: Any) -> Any:
            thread = threading.get_ident()
            if not self._is_open or thread in self._members:
                return work(*args, **kwargs)
            self._members.add(thread)
            self._count += 1
            self.number[thread] = self._count
            self._calls.active[thread] = [Active(call, module, sys._getframe(), place)]
            mode = self._new_mode()
            private.push_mode(mode)
            try:
                return work(*args, **kwargs)
            finally:
                private.pop_mode(mode)
                self._calls.active.pop(thread, None)
                self._members.discard(thread)

        return run


def _owners() -> list[Threads]:
    thread = threading.get_ident()
    return [threads for threads in _OPEN if threads.has(thread)]


def _handed_over(work: Any) -> Any:
    """Work with every session that the thread which hands it over belongs to."""
    for threads in _owners():
        work = threads.wrapped(work)
    return work


def _wrap() -> None:
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def started(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _owners() or getattr(getattr(self, "_target", None), "__module__", None) in _POOLS:
            return start(self, *args, **kwargs)
        held = cast("dict[str, Any]", vars(self))
        own, work = held.get("run"), _handed_over(self.run)

        def restore() -> None:
            if own is None:
                held.pop("run", None)
            else:
                held["run"] = own

        def run() -> None:
            restore()  # the thread is as it was, once it runs
            work()

        held["run"] = run
        try:
            return start(self, *args, **kwargs)
        except BaseException:  # it runs already, or there is no room for another
            restore()
            raise

    def submitted(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return submit(self, _handed_over(fn), *args, **kwargs)

    _put(threading.Thread, "start", started)
    _put(ThreadPoolExecutor, "submit", submitted)
    pools = sys.modules.get("multiprocessing.pool")
    if pools is not None:  # its pools of processes are not ours: their work is pickled
        for name in ("apply_async", "_map_async", "imap", "imap_unordered"):
            _put(pools.Pool, name, _of_pool(getattr(pools.Pool, name), pools.ThreadPool))


def _of_pool(original: Any, kind: type[Any]) -> Any:
    @functools.wraps(original)
    def given(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, _handed_over(func) if isinstance(self, kind) else func, *args, **kwargs)

    return given


def _put(owner: Any, name: str, wrapped: Any) -> None:
    before = getattr(owner, name)
    wrapped.__name__, wrapped.__qualname__ = before.__name__, before.__qualname__
    _BEFORE.append((owner, name, before))
    setattr(owner, name, wrapped)


def _unwrap() -> None:
    while _BEFORE:
        owner, name, before = _BEFORE.pop()
        setattr(owner, name, before)
