"""Compiled code in a recording: one call of a compiled graph is one operator, and what it runs inside is its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .schemas import Schema


class Region:
    """One compiled graph, as an operator that takes its inputs by name and writes to some of them."""

    def __init__(self, name: str, names: Sequence[str], written: Sequence[int]) -> None:
        self.name = name  # the operator's
        self.names = list(names)
        self.written = frozenset(written)
        self._run: Callable[[], Any] | None = None

    def __str__(self) -> str:
        return self.name

    def schema(self) -> Schema:
        return _RegionSchema(self)

    def arguments(self, inputs: Sequence[Any]) -> dict[str, Any]:
        return {
            self.names[i] if i < len(self.names) else f"input{i}": value
            for i, value in enumerate(inputs)
            if value is not None
        }

    def running(self, run: Callable[[], Any]) -> Region:
        self._run = run
        return self

    def __call__(self, **arguments: Any) -> Any:
        """Called by the recorder, where any other operator would run."""
        run, self._run = self._run, None
        assert run is not None
        return run()


class _RegionSchema(Schema):
    __slots__ = ("region",)

    def __init__(self, region: Region) -> None:
        super().__init__(region)
        self.region = region
        self.may_write = bool(region.written)
        self.is_plain = not self.may_write

    def written(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        names = self.region.names
        return [kwargs[names[i]] for i in sorted(self.region.written) if i < len(names) and names[i] in kwargs]
