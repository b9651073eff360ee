"""The ways in which a script can end before its last line, so that none of them loses what was recorded.

An exception and `sys.exit` come back to whoever runs the script. These do not:

- SIGTERM and SIGHUP end a process without a word: here they raise `Stopped` in the script;
- `os._exit` ends it at once: here it first calls back;
- `os.fork` makes a second process that runs the rest of the script, too: only the first one has the recording;
- a signal that comes while C code waits, for another rank that is gone, is never seen by Python: a thread saves then;
- SIGKILL, a crash in C code and `os.exec*` leave no time: another process, which does nothing but wait for that, says
  in one line that the recording is lost.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from functools import cache
from types import FrameType
from typing import Any, NoReturn, cast

_SIGNALS = [found for name in ("SIGTERM", "SIGHUP") if (found := getattr(signal, name, None)) is not None]


class Stopped(BaseException):
    """A signal that ends processes has come."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def stopped_by_signals() -> Generator[Callable[[], None], None, None]:
    """Once the function that this gives was called, signals that nobody handles raise `Stopped`, once: the next one
    ends the process as usual. Before that nothing can be lost, and an exception in the middle of a framework's import
    may abort the process: C++ code does not expect it there."""

    def stop(number: int, frame: FrameType | None) -> None:
        _woke.set()
        signal.signal(number, signal.SIG_DFL)
        raise Stopped(number)

    ours: list[signal.Signals] = []
    _forked_as_usual()

    def begin() -> None:
        if not ours and threading.current_thread() is threading.main_thread():
            ours.extend(number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL)
            for number in ours:
                signal.signal(number, stop)
                _handlers[number] = stop

    try:
        yield begin
    finally:
        for number in ours:
            del _handlers[number]
            if signal.getsignal(number) is stop:
                signal.signal(number, signal.SIG_DFL)


_handlers: dict[int, Any] = {}  # of ours, while a script runs


@cache
def _forked_as_usual() -> None:
    """In a process that is forked, these signals do what they did before: a pool of workers ends them by SIGTERM.

    They wait while it forks, so that none comes between the fork and the end of our handlers there.
    """
    if not hasattr(os, "register_at_fork"):
        return
    masks: list[Any] = []

    def before() -> None:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, _handlers.keys()))

    def after() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop())

    def in_child() -> None:
        for number, handler in _handlers.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, signal.SIG_DFL)
        after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=in_child)


_PATIENCE = 4.0  # seconds that C code has to come back after a signal; torchrun gives 30 before it kills


@contextlib.contextmanager
def saved_if_stuck(save: Callable[[int], None], patience: float = _PATIENCE) -> Generator[None, None, None]:
    """Once a signal that ends processes has come and Python did not get to see it, `save` is called with it from a
    thread, and the process ends. Only in the main thread of a process that others wait for: it keeps a thread."""
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    is_over = threading.Event()
    fatal = {int(number) for number in (*_SIGNALS, signal.SIGINT)}

    def watch() -> None:
        while not is_over.is_set():
            came = os.read(reading, 1)
            if not came or came[0] not in fatal:
                continue
            # The handler runs in the main thread: it takes itself away, or raises, once Python goes on there.
            if not is_over.wait(patience) and not _woke.is_set():
                with contextlib.suppress(BaseException):
                    save(came[0])
                os._exit(128 + came[0])

    _woke.clear()
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=watch, name="opscope watches signals", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        _woke.set()
        raise
    finally:
        is_over.set()
        signal.set_wakeup_fd(before)
        os.write(writing, b"\0")
        thread.join()
        os.close(reading)
        os.close(writing)


_woke = threading.Event()  # Python has seen the signal


@contextlib.contextmanager
def before_exit(save: Callable[[int], None]) -> Generator[None, None, None]:
    """`os._exit` calls back with its code before it ends this process; in one that was forked it does as it does."""
    owner, leave = os.getpid(), os._exit

    def leaving(status: int) -> NoReturn:
        if os.getpid() == owner:
            with contextlib.suppress(BaseException):
                save(status)
        leave(status)

    os._exit = cast("Any", leaving)
    try:
        yield
    finally:
        if os._exit is leaving:
            os._exit = leave


@contextlib.contextmanager
def told_if_killed(line: str) -> Generator[Callable[[], None], None, None]:
    """Print `line` on stderr if this process ends before the block does, even by SIGKILL, unless the function that this
    gives was called. Use it before there are threads: it forks."""
    if not hasattr(os, "fork") or threading.active_count() > 1:
        yield lambda: None
        return
    owner = os.getpid()
    waiting, working = os.pipe()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        # Its own child waits, so that the script has no child that it knows nothing of.
        if not os.fork():
            _wait(waiting, working, line)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(waiting)

    def saved() -> None:
        if os.getpid() == owner:
            with contextlib.suppress(OSError):  # the script may close all that is open
                os.write(working, b"done")

    try:
        yield saved
    finally:
        saved()
        with contextlib.suppress(OSError):
            os.close(working)


def _wait(waiting: int, working: int, line: str) -> NoReturn:
    """What the other process does."""
    try:
        os.setsid()  # what the terminal sends to the script is not for us
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(null, stream)
        os.close(working)
        if not os.read(waiting, 4):
            os.write(2, f"opscope: {line}\n".encode())
    finally:
        os._exit(0)
