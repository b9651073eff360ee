"""Which module made which backward function: modules are watched while the model runs, and every function has a
number that counts up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from opscope.tracers.torch import private
from opscope.tracers.torch.private import the_torch

from .places import Places


class ModulesSeen:
    def __init__(self) -> None:
        self._events: list[tuple[int, tuple[tuple[Any, int], ...]]] = []  # from this number on: the modules around
        self._stack: list[tuple[Any, int]] = []
        self._calls: dict[int, int] = {}

    @contextmanager
    def watching(self) -> Generator[None, None, None]:
        torch = the_torch()

        number = private.sequence_number(torch)
        if number is None:
            yield
            return

        def enter(module: Any, *_: Any) -> None:
            call = self._calls[id(module)] = self._calls.get(id(module), -1) + 1
            self._stack.append((module, call))
            self._events.append((number(), tuple(self._stack)))

        def leave(module: Any, *_: Any) -> None:
            while self._stack:  # an exception may have gone through several
                inner, _call = self._stack.pop()
                if inner is module:
                    break
            self._events.append((number(), tuple(self._stack)))

        handles = private.watch_modules(torch, enter, leave)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def scopes(self, places: Places) -> Callable[[int], int]:
        """The scope of a backward function, by its number."""
        starts = [number for number, _ in self._events]
        # Made in the order of the calls: that is how calls of one module are numbered.
        scopes = [
            places.scope({f"{id(module)}@{call}": ("", cast("type[Any]", type(module))) for module, call in around})
            for _, around in self._events
        ]

        def scope(number: int) -> int:
            at = bisect_right(starts, number) - 1
            return scopes[at] if at >= 0 else 0

        return scope
