"""A recording that is under way: what ends it, and how far it is, whatever the framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager

from opscope.errors import OpscopeError
from opscope.ir import Capture

Join = Callable[[Capture, Capture], Capture]  # lays what a profiler measured on a capture

_OPEN: list[Session] = []


class NothingRecorded(OpscopeError):
    """The framework was there, but ran nothing."""


class Session(ABC):
    """A recording that is under way. Exactly one of `finish` and `abort` ends it and restores the framework.

    A subclass calls `open` when `restore` can undo whatever it has changed so far, and `close` in `finish`.
    """

    is_open = False
    measured: Capture | None = None  # after `finish`: what a profiler measured meanwhile, as a capture of its own

    @property
    def count(self) -> int:
        """How many operators were recorded so far; 0 where it is not known before the end."""
        return 0

    def open(self) -> None:
        self.is_open = True
        _OPEN.append(self)

    @abstractmethod
    def finish(self) -> Capture:
        """End the recording and return what it saw."""

    def fails(self) -> None:  # noqa: B027 (most frameworks have nothing to do here)
        """The program raised an exception, and `finish` comes next: the last operator may be the one that raised."""

    def abort(self) -> None:
        """End the recording and forget what it saw. Safe at any point, and more than once."""
        self.close()

    @contextmanager
    def or_abort(self) -> Generator[None]:
        """A block that ends the recording if it fails."""
        try:
            yield
        except BaseException:
            self.abort()
            raise

    def close(self) -> None:
        """Restore the framework, once."""
        if self.is_open:
            self.is_open = False
            _OPEN.remove(self)
            self.restore()

    @abstractmethod
    def restore(self) -> None:
        """Undo everything that the recording changed in the framework. `close` calls it once."""


def operators_so_far() -> int:
    """How many operators the open recordings have recorded."""
    return sum(session.count for session in tuple(_OPEN))
