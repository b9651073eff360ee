"""Live object -> Capture. `trace` runs a model once, `record` watches a block of the user's own code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Generic, Protocol, TypeVar

from opscope.errors import OpscopeError
from opscope.ir import Capture

from . import registry
from .contract import Options, Part
from .failing import ended_by, report_of
from .frames import users_frame
from .session import Join, Session, operators_so_far
from .ways import Way, Ways

__all__ = ["Recording", "Way", "Ways", "operators_so_far", "record", "start_passes", "trace", "ways"]


class Fillable(Protocol):
    def fill(self, other: Capture) -> None: ...


Into = TypeVar("Into", bound=Fillable)


def trace(target: Any, *args: Any, how: str = "auto", **kwargs: Any) -> Capture:
    """Call a model or a function once with these arguments and return what it computed.

    The framework is found from the type of `target` and of its arguments.
    """
    tracer = registry.load(registry.detect(target, args, kwargs))
    tracer.check_how(how)
    return tracer.trace(target, args, kwargs, how=how, caller=users_frame())


def record(
    into: Into,
    model: Any = None,
    *,
    optimizer: Any = None,
    framework: str | None = None,
    how: str = "auto",
    values: bool | str = False,
    part: Part | None = None,
    times: bool | str = False,
    join: Join = lambda capture, measured: capture,
) -> Recording[Into]:
    """See opscope.record; `into` is filled when the block ends. `join` lays what a profiler measured on it."""
    tracer = registry.load(framework or registry.detect(model, optimizer))
    options = Options(users_frame(), model, optimizer, how, values, part, times)
    tracer.check(options)
    return Recording(into, lambda: tracer.start(options), join)


def start_passes(framework: str) -> Callable[[FrameType], Session]:
    """What starts a recording of each compiler pass, given the user's frame."""
    start = registry.load(framework).passes
    if start is None:
        able = ", ".join(name for name in sorted(registry.FRAMEWORKS) if registry.load(name).passes is not None)
        raise OpscopeError(f"opscope cannot watch the passes of {framework} (it can for {able})")
    return start


def ways(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    keep: bool = False,
    progress: Callable[[str], None] = lambda how: None,
) -> Ways:
    """Try every way of capturing on a model. `progress` is called before each; with `keep` the captures
    stay in `Ways.captures`."""
    tracer = registry.load(registry.detect(target, args, kwargs))
    if tracer.ways is None:
        raise OpscopeError(f"there is only one way to capture {tracer.name}: opscope.trace(…, how='record')")
    return tracer.ways(target, args, kwargs, caller=users_frame(), keep=keep, progress=progress)


class Recording(Generic[Into]):
    """The context manager behind `record`: gives a capture that is filled at the end of the block."""

    def __init__(self, into: Into, start: Callable[[], Session], join: Join) -> None:
        self._into = into
        self._join = join
        self._start: Callable[[], Session] | None = start
        self._session: Session | None = None

    def __enter__(self) -> Into:
        if self._start is None:
            raise RuntimeError("a recording can be used once: call opscope.record() again")
        # Not kept: a model that the block drops must be able to go, and a frame holds all its variables.
        start, self._start = self._start, None
        self._session = start()
        return self._into

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        session, self._session = self._session, None
        if kind is None:
            capture = session.finish()
            self._into.fill(capture if session.measured is None else self._join(capture, session.measured))
            return
        try:
            # Of a generator that nobody finishes, nobody looks at the recording; the interpreter may be ending.
            if error is not None and not issubclass(kind, GeneratorExit):
                with suppress(Exception):  # the user's own exception is what counts
                    self._into.fill(_failed(session, error))
        finally:
            session.abort()


def _failed(session: Session, error: BaseException) -> Capture:
    """What the block did until an exception ended it."""
    session.fails()
    capture = session.finish()
    capture.warnings.insert(0, ended_by(error, report_of(error)[1]))
    return capture
