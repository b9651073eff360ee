"""What the recorded code hands to a thread that was there before: an item of a queue, or the end of a wait.

Such a thread takes a turn: from when it wakes up with what it was given until it waits at the same place again. All of
Python's own means end in `queue.Queue` or in `threading.Condition` (events, semaphores, barriers, futures), and a wait
looks up what it calls at its end only then; so a thread that began to wait before the recording is reached as well.
"""

from __future__ import annotations

import functools
import queue
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple, cast

from opscope.tracers.frames import frame_at, frames_by_thread

Leave = Callable[[], None]
Enter = Callable[[FrameType], "Leave | None"]  # begins to record in the thread that calls it; None where it is over
_BEGINS, _ENDS = "_acquire_restore", "_release_save"  # what Condition.wait calls around the waiting


class _Turn(NamedTuple):
    place: int  # id() of the condition that the thread waits at between two turns
    leave: list[Leave]


class Turns:
    """`here` gives what lets another thread work for those that the calling thread works for."""

    def __init__(self, here: Callable[[], list[Enter]], when_idle: Callable[[], None]) -> None:
        self._here = here
        self._when_idle = when_idle
        self._at_work: dict[int, _Turn] = {}  # by thread
        self._taking: set[int] = set()  # threads
        self._items: dict[tuple[int, int], list[Enter]] = {}  # in a queue: ids of both
        self._woken: dict[int, list[Enter]] = {}  # conditions that were notified: by id
        self._watched: list[tuple[weakref.ref[Any], dict[str, Any]]] = []  # and what they had of their own

    def is_idle(self) -> bool:
        """Whether no thread is at work that is still there."""
        alive = frames_by_thread()
        for thread in [thread for thread in self._at_work if thread not in alive]:
            del self._at_work[thread]
        return not self._at_work

    def wraps(self) -> list[tuple[Any, str, Any]]:
        """Owner, name, and what stands there meanwhile."""
        put, get = queue.Queue[Any].put, queue.Queue[Any].get
        notify, wait = threading.Condition.notify, threading.Event.wait

        @functools.wraps(put)
        def given(place: Any, item: Any, *args: Any, **kwargs: Any) -> Any:
            here = self._here()
            if here:
                self._items[id(place), id(item)] = here
            return put(place, item, *args, **kwargs)

        @functools.wraps(get)
        def taken(place: Any, *args: Any, **kwargs: Any) -> Any:
            waits_at = id(place.not_empty)
            self._end(waits_at)
            self._taking.add(threading.get_ident())
            try:
                item = get(place, *args, **kwargs)
            finally:
                self._taking.discard(threading.get_ident())
            here = self._items.pop((id(place), id(item)), None)
            if here is None:
                self._end(waits_at)  # it was woken for us, and took something else
            else:
                self._begin(waits_at, here)
            return item

        @functools.wraps(notify)
        def notified(place: Any, *args: Any, **kwargs: Any) -> Any:
            # Who takes an item makes room for another: no work for who waits to put it.
            here = [] if threading.get_ident() in self._taking else self._here()
            if here:
                self._watch(place)
                self._woken[id(place)] = here
            return notify(place, *args, **kwargs)

        @functools.wraps(wait)
        def waited(event: Any, *args: Any, **kwargs: Any) -> Any:
            is_set = wait(event, *args, **kwargs)
            if is_set:  # it may have been before, then nobody waited
                self._begin(id(event._cond), self._woken.get(id(event._cond), []))
            return is_set

        return [
            (queue.Queue, "put", given),
            (queue.Queue, "get", taken),
            (threading.Condition, "notify", notified),
            (threading.Event, "wait", waited),
        ]

    def close(self) -> None:
        """Conditions are as they were."""
        for reference, own in self._watched:
            condition = reference()
            if condition is None:
                continue
            held = cast("dict[str, Any]", vars(condition))
            for name in (_BEGINS, _ENDS):
                held.pop(name, None)
            held.update(own)
        self._watched.clear()
        self._items.clear()
        self._woken.clear()

    def _watch(self, condition: Any) -> None:
        held = cast("dict[str, Any]", vars(condition))
        if getattr(held.get(_BEGINS), "watches", None) is self:
            return
        own = {name: held[name] for name in (_BEGINS, _ENDS) if name in held}
        kind = cast("Any", type(condition))
        proxy: Any = weakref.proxy(condition)  # what a condition holds must not keep it alive

        def original(name: str) -> Callable[..., Any]:
            return own.get(name) or functools.partial(getattr(kind, name), proxy)

        sleep, wake, place = original(_ENDS), original(_BEGINS), id(condition)

        def ends(*args: Any) -> Any:
            self._end(place)
            return sleep(*args)

        def begins(*args: Any) -> Any:
            result = wake(*args)
            self._begin(place, self._woken.get(place, []))
            return result

        vars(begins)["watches"] = self
        held[_ENDS], held[_BEGINS] = ends, begins
        self._watched.append((weakref.ref(condition, lambda _: self._woken.pop(place, None)), own))

    def _begin(self, place: int, here: list[Enter]) -> None:
        if not here:
            return
        thread, outermost = threading.get_ident(), _outermost()
        known = self._at_work.get(thread)
        leave = [left for enter in here if (left := enter(outermost)) is not None]
        if known is not None:
            known.leave.extend(leave)  # work within work
        elif leave:
            self._at_work[thread] = _Turn(place, leave)

    def _end(self, place: int) -> None:
        thread = threading.get_ident()
        turn = self._at_work.get(thread)
        if turn is None or turn.place != place:
            return
        for leave in reversed(turn.leave):
            leave()
        del self._at_work[thread]
        self._when_idle()


def _outermost() -> FrameType:
    """The innermost frame of this thread that only starts it."""
    walk: FrameType | None = frame_at(1)
    last = frame_at(1)
    while walk is not None:
        if walk.f_code.co_filename == threading.__file__ and walk.f_code.co_name in _STARTS:
            return walk
        walk, last = walk.f_back, walk
    return last


_STARTS = ("run", "_bootstrap_inner", "_bootstrap")
