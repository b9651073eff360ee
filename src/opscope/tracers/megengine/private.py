"""MegEngine's private parts that the recorder relies on, all in one place.

`traced_module` has a hook that MegEngine calls for every operator before it runs, from C++, so that operators which
never pass through Python are seen too. It is bound once, when MegEngine is imported; what can be changed is the code of
the function that it is bound to. While MegEngine's own `trace_module` is at work, that code is left in charge.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

_NAME = "_opscope_hook"


def _instead(cls: Any, opdef: Any, *inputs: Any) -> Any:
    return _opscope_hook(cls, opdef, *inputs)  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownVariableType]


class OperatorHook:
    """Calls `seen(opdef, inputs, run)` for every operator; `run()` runs it, and `seen` gives back what that gave."""

    def __init__(self, seen: Callable[[Any, tuple[Any, ...], Callable[[], Any]], Any]) -> None:
        self._core: Any = importlib.import_module("megengine.core._imperative_rt.core2")
        self._expr: Any = importlib.import_module("megengine.traced_module.expr")
        tracer: Any = importlib.import_module("megengine.traced_module.module_tracer")
        self._active: Callable[[], Any] = tracer.active_module_tracer
        self._seen = seen
        self._function: FunctionType = self._expr.Apply.apply_module_trace_hook.__func__
        self._original: FunctionType | None = None
        self._code: CodeType = self._function.__code__

    @property
    def is_on(self) -> bool:
        return self._original is not None

    def install(self) -> None:
        if hasattr(self._expr, _NAME):
            raise RuntimeError("another recording of MegEngine is under way")
        code, names = self._function.__code__, self._function.__globals__
        self._original = FunctionType(code, names, self._function.__name__, self._function.__defaults__)
        setattr(self._expr, _NAME, self._called)
        self._function.__code__ = _instead.__code__
        self._core.set_module_tracing()

    def stay(self) -> None:
        """`trace_module` switches the hook off for all when it is done."""
        if self._original is not None and self._active() is None and not self._core.is_tracing_module():
            self._core.set_module_tracing()

    def remove(self) -> None:
        if self._original is None:
            return
        self._original = None
        if self._active() is None:
            self._core.unset_module_tracing()
        self._function.__code__ = self._code
        delattr(self._expr, _NAME)

    def _called(self, cls: Any, opdef: Any, *inputs: Any) -> list[Any]:
        core = self._core

        def run() -> Any:
            core.unset_module_tracing()
            try:
                if self._active() is not None and self._original is not None:
                    return self._original(cls, opdef, *inputs)
                return core.apply(opdef, *inputs)
            finally:
                if self._original is not None:
                    core.set_module_tracing()

        # What the recorder itself computes on the way must not come back here.
        return list(self._seen(opdef, inputs, run))


def value_id(tensor: Any) -> int:
    """The number of the value that a tensor holds. Writing into a tensor gives it another value."""
    return tensor.value_id()
