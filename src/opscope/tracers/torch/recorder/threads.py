"""Other threads that work for the recorded code: what the recording thread starts or hands to a pool is recorded too.

Torch's dispatch modes belong to one thread. So while a session is open, `Thread.start` and what pools are given are
wrapped: the work, when it begins in its own thread, gets a mode of its own there, and the module call that it was
started from as its outermost one. A thread that was there before and is handed something gets them for its turn
(`turns`). What is left is noticed: `Calls` sees modules that are called elsewhere, `elsewhere` that a thread ran.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, cast

from opscope.tracers.frames import OWN, frame_at
from opscope.tracers.torch import private

from .calls import Active, Calls
from .elsewhere import Elsewhere
from .places import Places
from .turns import Enter, Leave, Turns

_POOLS = ("concurrent.futures.thread", "multiprocessing.pool")  # whose threads wait for work: that is wrapped instead
_OPEN: list[Threads] = []
_BEFORE: list[tuple[Any, str, Any]] = []  # what was wrapped: owner, name, what was there


class Threads:
    """The threads of one session."""

    def __init__(
        self,
        torch: Any,
        calls: Calls,
        places: Places,
        new_mode: Callable[[], Any],
        base: FrameType | None,
        *,
        lean: bool,
    ) -> None:
        self._torch = torch
        self._calls = calls
        self._places = places
        self._new_mode = new_mode
        self._base = base
        self._lean = lean
        self.home = threading.get_ident()
        self._members = {self.home}
        self.seen = set(self._members)  # all that were members, and those of other recordings
        self.unseen: list[str] = []  # threads that worked meanwhile and were not recorded, each as a reason
        self._is_open = False
        # Thread -> its number among those of this session, since idents are used again. Empty as long as there is none.
        self.number: dict[int, int] = {}
        self._count = 0

    def open(self) -> None:
        self._is_open = True
        if not _BEFORE:
            _wrap()
        self._elsewhere = Elsewhere(self._torch)
        for other in _OPEN:  # what runs in their threads is recorded, though not here
            self.seen.add(other.home)
            other.seen.add(self.home)
        _OPEN.append(self)

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        _OPEN.remove(self)
        self.unseen = self._elsewhere.at_work(self.seen)
        _unwrap_when_over()

    def has(self, thread: int) -> bool:
        return thread in self._members

    def here(self) -> Enter:
        """What lets another thread work for what runs here now."""
        stack = self._calls.active.get(threading.get_ident())
        top = stack[-1] if stack else None
        place = 0
        if not self._lean:
            frame: FrameType | None = frame_at(1)
            while frame is not None and frame.f_code.co_filename.startswith(OWN):
                frame = frame.f_back
            place = self._places.at(frame, top.frame if top else self._base, top.place if top else 0)
        call, module = (top.call, top.module) if top else (-1, 0)
        self.number.setdefault(0, 0)  # from now on, what is noted is noted under a lock
        return functools.partial(self._enter, call, module, place)

    def _enter(self, call: int, module: int, place: int, frame: FrameType) -> Leave | None:
        thread = threading.get_ident()
        if not self._is_open or thread in self._members:
            return None
        self._members.add(thread)
        self.seen.add(thread)
        self._count += 1
        self.number[thread] = self._count
        self._calls.active[thread] = [Active(call, module, frame, place)]
        mode = self._new_mode()
        private.push_mode(mode)

        def leave() -> None:
            private.pop_mode(mode)
            self._calls.active.pop(thread, None)
            self._members.discard(thread)

        return leave

    def wrapped(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The work, so that it is recorded wherever it runs; called where it is handed over."""
        enter = self.here()

        @functools.wraps(work, assigned=("__name__", "__qualname__", "__doc__"), updated=())
        def run(*args: Any, **kwargs: Any) -> Any:
            leave = enter(frame_at(0))
            if leave is None:
                return work(*args, **kwargs)
            try:
                return work(*args, **kwargs)
            finally:
                leave()

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

    for owner, name, wrapped in _TURNS.wraps():
        _put(owner, name, wrapped)
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


def _unwrap_when_over() -> None:
    """A thread that is still in its turn ends it first."""
    if _OPEN or not _TURNS.is_idle():
        return
    _TURNS.close()
    while _BEFORE:
        owner, name, before = _BEFORE.pop()
        setattr(owner, name, before)


_TURNS = Turns(lambda: [threads.here() for threads in _owners()], _unwrap_when_over)
