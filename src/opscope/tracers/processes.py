"""Work on many ranks at once: each in a process of its own, forked from this one, as many as there is room for.

A rank starts from a process that has imported the framework and run nothing. So it costs a few milliseconds, what it
leaves behind goes with it, and any function can be run, not only one that can be sent elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from opscope.errors import OpscopeError, one_line

_LENGTH = struct.Struct("!I")
_LAST_LINES = 12
_KILO = 1024 if sys.platform != "darwin" else 1  # of `ru_maxrss`


class Event(NamedTuple):
    """What a rank said. `done` and `broke` are the last words of it."""

    rank: int
    kind: str  # asks, waits, goes on, done, broke
    content: dict[str, Any]


class Line:
    """What a rank has to talk to the process that started it."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def tell(self, kind: str, **content: Any) -> None:
        data = json.dumps([kind, content]).encode()
        self._end.sendall(_LENGTH.pack(len(data)) + data)

    def ask(self, **content: Any) -> bool:
        """Whether the other side wants more."""
        self.tell("asks", **content)
        return self._end.recv(1) == b"y"


Work = Callable[[int, Line], dict[str, Any]]


class _Worker(NamedTuple):
    rank: int
    pid: int
    end: socket.socket


class Processes:
    """Ranks at work. A rank that waits for another one's message takes no room."""

    def __init__(self, work: Work, most: int, folder: Path, loud: int = 0) -> None:
        if not hasattr(os, "fork"):
            raise OpscopeError("this system cannot fork processes: run one rank at a time")
        self._work = work
        self.most = most
        self._folder = folder
        self._loud = loud  # the rank whose output is shown
        self._workers: dict[int, _Worker] = {}
        self._waiting: set[int] = set()
        self._selector = selectors.DefaultSelector()

    @property
    def has_room(self) -> bool:
        return len(self._workers) - len(self._waiting) < self.most

    @property
    def at_work(self) -> set[int]:
        return set(self._workers)

    @property
    def all_wait(self) -> bool:
        return bool(self._workers) and len(self._waiting) == len(self._workers)

    def start(self, rank: int) -> None:
        here, there = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            here.close()
            for worker in self._workers.values():
                worker.end.close()
            self._be(rank, there)
        there.close()
        self._workers[rank] = _Worker(rank, pid, here)
        self._selector.register(here, selectors.EVENT_READ, rank)

    def wait(self) -> list[Event]:
        """What ranks say next."""
        found: list[Event] = []
        for key, _ in self._selector.select(1.0):
            rank = int(key.data)
            said = _received(self._workers[rank].end)
            event = Event(rank, *said) if said is not None else self._ended(rank)
            if event.kind == "waits":
                self._waiting.add(rank)
            elif event.kind == "goes on":
                self._waiting.discard(rank)
            elif event.kind in ("done", "broke"):
                self._forget(rank)
            found.append(event)
        return found

    def answer(self, rank: int, wanted: bool) -> None:
        with contextlib.suppress(OSError):
            self._workers[rank].end.sendall(b"y" if wanted else b"n")

    def close(self) -> None:
        """End whatever is still at work."""
        for rank in list(self._workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._workers[rank].pid, signal.SIGKILL)
            self._forget(rank)
        self._selector.close()

    def _ended(self, rank: int) -> Event:
        """A rank has gone without a last word."""
        status = self._forget(rank)
        how = (
            f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
            if os.WIFSIGNALED(status)
            else f"ended with exit code {os.waitstatus_to_exitcode(status)}"
        )
        return Event(rank, "broke", {"error": f"rank {rank} {how}", "report": self._last_lines(rank)})

    def _forget(self, rank: int) -> int:
        worker = self._workers.pop(rank)
        self._waiting.discard(rank)
        self._selector.unregister(worker.end)
        worker.end.close()
        return os.waitpid(worker.pid, 0)[1]

    def _log(self, rank: int) -> Path:
        return self._folder / f"rank{rank}.log"

    def _last_lines(self, rank: int) -> str:
        with contextlib.suppress(OSError):
            lines = self._log(rank).read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
            return "".join(f"{line}\n" for line in lines)
        return ""

    # -- in the other process -------------------------------------------------------------------

    def _be(self, rank: int, end: socket.socket) -> NoReturn:
        code = 1
        line = Line(end)
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
            if rank != self._loud:
                self._be_quiet(rank)
            content = self._work(rank, line)
            line.tell("done", **content, resident_bytes=_resident())
            code = 0
        except BaseException as error:
            is_told = isinstance(error, OpscopeError)  # its line says all of it
            report = str(getattr(error, "report", "")) or ("" if is_told else traceback.format_exc())
            text = str(error) if is_told else f"{type(error).__name__}: {error}"
            with contextlib.suppress(Exception):
                line.tell("broke", error=one_line(text), report=report)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(code)

    def _be_quiet(self, rank: int) -> None:
        log = os.open(self._log(rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)


def _resident() -> int:
    """The most memory that this process had."""
    import resource  # not on Windows, which cannot fork either

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILO


def _received(end: socket.socket) -> tuple[str, dict[str, Any]] | None:
    head = _exactly(end, _LENGTH.size)
    if head is None:
        return None
    body = _exactly(end, _LENGTH.unpack(head)[0])
    if body is None:
        return None
    kind, content = json.loads(body)
    return str(kind), content


def _exactly(end: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        more = end.recv(count - len(data))
        if not more:
            return None
        data += more
    return data
