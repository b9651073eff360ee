"""What modules and tensors are called."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from opscope.tracers.frames import name_in_stack


class Step(NamedTuple):
    """One step down the tree of modules."""

    name: str
    cls: str


class Known(NamedTuple):
    name: str
    role: str


class Modules:
    """Models, and the way to each module inside of them."""

    def __init__(self, hidden: Any = None) -> None:
        self._hidden = hidden  # the one model of `opscope.trace(model, …)`: a box around everything says nothing
        self._roots: list[tuple[str, weakref.ref[Any]]] = []
        self._ways: dict[int, tuple[Step, ...]] = {}
        self._references: dict[int, weakref.ref[Any]] = {}

    def add(self, name: str, model: Any) -> None:
        self._roots.append((name, weakref.ref(model)))
        inside: dict[str, Any] = dict(model.named_modules())
        top = () if model is self._hidden else (Step(name, type(model).__name__),)
        for path, module in inside.items():
            way, so_far = list(top), ""
            for part in path.split(".") if path else ():
                so_far = f"{so_far}.{part}" if so_far else part
                way.append(Step(part, type(inside[so_far]).__name__ if so_far in inside else ""))
            self._ways.setdefault(id(module), tuple(way))
            self._references[id(module)] = weakref.ref(module)

    def way(self, module: Any, frame: FrameType | None) -> tuple[Step, ...]:
        """From the outermost model that holds it. One that was never seen is a model of its own."""
        reference = self._references.get(id(module))
        if reference is None or reference() is not module:
            self._ways.pop(id(module), None)
            self.add(name_in_stack(frame, module) or type(module).__name__, module)
        return self._ways[id(module)]

    def knows(self, module: Any) -> bool:
        reference = self._references.get(id(module))
        return reference is not None and reference() is module

    def tensors(self) -> Iterator[tuple[Any, Known]]:
        """Parameters and buffers; the model's own name first where there are several."""
        many = len(self._roots) > 1
        for name, reference in self._roots:
            model = reference()
            if model is None:
                continue
            prefix = f"{name}." if many else ""
            for path, tensor in model.named_parameters():
                yield tensor, Known(prefix + path, "parameter")
            for path, tensor in model.named_buffers():
                yield tensor, Known(prefix + path, "buffer")
