"""What goes on around the operators: calls of modules, the backward pass, steps of optimizers, and what runs on a way
that has no hook."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any


class Watcher:
    """Wraps the methods that every model, GradManager and optimizer goes through, and puts them back."""

    def __init__(
        self,
        module: tuple[Callable[[Any], None], Callable[[Any], None]],
        backward: tuple[Callable[[Any], None], Callable[[Any], None]],
        step: tuple[Callable[[Any], None], Callable[[Any], None]],
        unhooked: Callable[[str, tuple[Any, ...], Any], None],
    ) -> None:
        """`unhooked(name, inputs, output)` is told what MegEngine runs past its own hook."""
        megengine: Any = importlib.import_module("megengine")
        self._wanted: list[tuple[Any, str, Any]] = [
            (megengine.module.Module, "__call__", module),
            (importlib.import_module("megengine.autodiff").GradManager, "backward", backward),
            (importlib.import_module("megengine.optimizer").Optimizer, "step", step),
        ]
        self._unhooked = unhooked
        functions: Any = importlib.import_module("megengine.functional.tensor")
        self._past_the_hook: list[tuple[Any, str, str]] = [
            (megengine.Tensor, "detach", "Detach"),
            (functions, "create_complex", "CreateComplex"),
            (functions, "get_real", "GetReal"),
            (functions, "get_imag", "GetImag"),
        ]
        self._trace: Any = importlib.import_module("megengine.jit").trace
        self._replaced: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        for owner, name, (before, after) in self._wanted:
            original = owner.__dict__[name]
            setattr(owner, name, _around(original, before, after))
            self._replaced.append((owner, name, original))
        for owner, name, label in self._past_the_hook:
            original = owner.__dict__[name]
            setattr(owner, name, _told(original, label, self._unhooked))
            self._replaced.append((owner, name, original))
        original = self._trace.__dict__["__call__"]
        self._trace.__call__ = _uncompiled(original)
        self._replaced.append((self._trace, "__call__", original))

    def remove(self) -> None:
        while self._replaced:
            owner, name, original = self._replaced.pop()
            setattr(owner, name, original)


def _uncompiled(original: Any) -> Any:
    """A traced function as plain Python, which computes the same: a compiled one cannot be looked into. One that is
    made to be dumped (`capture_as_const`) is left as it is."""

    @functools.wraps(original)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, "_capture_as_const", False):
            return original(self, *args, **kwargs)
        return self.__wrapped__(*args, **kwargs)

    return called


def _told(original: Any, label: str, tell: Callable[[str, tuple[Any, ...], Any], None]) -> Any:
    @functools.wraps(original)
    def called(*inputs: Any, **options: Any) -> Any:
        output = original(*inputs, **options)
        tell(label, (*inputs, *options.values()), output)
        return output

    return called


def _around(original: Any, before: Callable[[Any], None], after: Callable[[Any], None]) -> Any:
    @functools.wraps(original)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        before(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            after(self)

    return called
