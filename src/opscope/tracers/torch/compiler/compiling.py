"""Models of a script that does not compile them itself: each that is called runs compiled, while it is recorded."""

from __future__ import annotations

import weakref
from typing import Any

from opscope.tracers.torch import private
from opscope.tracers.torch.private import the_torch

from . import hooks


class CompilingModels:
    """Calls of modules from outside of any compiled code go to a compiled one. The module itself is left as it is."""

    def __init__(self) -> None:
        self._compiled: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._original: Any = None

    @property
    def is_open(self) -> bool:
        return self._original is not None

    def open(self) -> None:
        if self._original is not None:
            return
        torch = the_torch()
        kind = torch.nn.Module
        self._original = original = kind.__call__

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if private.uncompiled(module) is not module or private.is_compiling():
                return original(module, *args, **kwargs)
            if module not in self._compiled:
                with private.own_backends(hooks.own_wrapper):
                    # What is kept must not keep the module: it is called with it.
                    self._compiled[module] = torch.compile(module, **hooks.separate(torch.compile))
            return self._compiled[module](*args, **kwargs)

        kind.__call__ = call

    def close(self) -> None:
        if self._original is not None:
            the_torch().nn.Module.__call__ = self._original
            self._original = None
