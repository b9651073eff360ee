"""Live object -> Capture. `trace` runs a model once, `record` watches a block of the user's own code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Generic, Protocol, TypeVar

from opscope.errors import OpscopeError
from opscope.ir import Capture

from . import registry
from .tried import Way, Ways

__all__ = ["Recording", "Way", "Ways", "operators_so_far", "record", "trace", "ways"]

_OWN = str(Path(__file__).parents[1]) + os.sep


class Fillable(Protocol):
    def fill(self, other: Capture) -> None: ...


Into = TypeVar("Into", bound=Fillable)


def trace(target: Any, *args: Any, how: str = "auto", **kwargs: Any) -> Capture:
    """Call a model or a function once with these arguments and return what it computed.

    The framework is found from the type of `target` and of its arguments.
    """
    framework = registry.detect(target, args, kwargs)
    tracer = registry.load(framework)
    registry.check_how(framework, tracer, how)
    return tracer.trace(target, args, kwargs, how=how, caller=users_frame())


def record(
    into: Into,
    model: Any = None,
    *,
    optimizer: Any = None,
    framework: str | None = None,
    how: str = "auto",
    values: bool = False,
    times: bool = False,
) -> Recording[Into]:
    """Record everything that a `with` block computes, as it really runs; `into` is filled when the block ends.

    `values=True` keeps the numbers of every tensor, `times=True` measures every kernel. An exception in the
    block goes through, and leaves the framework as it was.
    """
    framework = framework or registry.detect(model, optimizer)
    tracer = registry.load(framework)
    registry.check_how(framework, tracer, how)
    options = {"model": model, "optimizer": optimizer, "how": how, "values": values, "times": times}
    return Recording(into, tracer, options, users_frame())


def ways(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    keep: bool = False,
    progress: Callable[[str], None] = lambda how: None,
) -> Ways:
    """Try every way of capturing on a model. `progress` is told each before it is tried; with `keep` the captures
    stay in `Ways.captures`."""
    framework = registry.detect(target, args, kwargs)
    module = f"{registry.FRAMEWORKS[framework].tracer}.ways"
    if importlib.util.find_spec(module) is None:
        raise OpscopeError(f"there is only one way to capture {framework}: opscope.trace(…, how='record')")
    tried: Any = importlib.import_module(module)
    return tried.ways(target, args, kwargs, caller=users_frame(), keep=keep, progress=progress)


def operators_so_far() -> int:
    """How many operators the recordings that are under way have recorded; frameworks that cannot tell count none."""
    modules = [sys.modules.get(f"{framework.tracer}.session") for framework in registry.FRAMEWORKS.values()]
    return sum(session.count for module in modules for session in tuple(getattr(module, "OPEN", ())))


def users_frame() -> FrameType:
    """The innermost frame that is not opscope's own: where the user's names are."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


class Recording(Generic[Into]):
    """The context manager behind `record`: gives a capture that is filled at the end of the block."""

    def __init__(self, into: Into, tracer: registry.Tracer, options: dict[str, Any], caller: FrameType) -> None:
        self._into = into
        self._tracer = tracer
        self._given: tuple[dict[str, Any], FrameType] | None = (options, caller)
        self._session: registry.Session | None = None

    def __enter__(self) -> Into:
        if self._given is None:
            raise RuntimeError("a recording can be used once: call opscope.record() again")
        # Not kept: a model that the block drops must be able to go, and a frame holds all its variables.
        (options, caller), self._given = self._given, None
        self._session = self._tracer.start(caller=caller, **options)
        return self._into

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        session, self._session = self._session, None
        if kind is None:
            self._into.fill(session.finish())
        else:
            session.abort()
