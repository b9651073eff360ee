"""Looks on while Hidet works: which module and line makes an operator, which graphs are traced, what each pass gives.

Hidet's classes are wrapped while a session is open, and are as before when it ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from opscope.ir import Frame, Pools
from opscope.readers.hidet.flow import Flow
from opscope.tracers.frames import OWN, frame_at

from .objects import Names, snapshot

_DEEPEST = 64


@dataclass
class Passed:
    """A graph after a pass (or before all of them), with the operators that it has."""

    name: str
    flow: Flow
    operators: list[Any]  # held, so that no other object gets the identity of one of them
    seconds: float | None = None


@dataclass
class Run:
    """One optimization: the graph that came in, and what each pass made of it."""

    passes: list[Passed]
    last: Any  # the graph that the newest pass gave


@dataclass
class _Called:
    path: str
    scope: int
    calls: dict[str, int] = field(default_factory=dict[str, int])


class Watch:
    def __init__(self, hidet: Any, pools: Pools, caller: FrameType | None) -> None:
        self.pools = pools
        self.runs: list[Run] = []
        self.traced: list[Any] = []
        self.names: Names = {}
        self._held: list[Any] = []  # parameters whose identity we know
        self._root = os.path.dirname(hidet.__file__) + os.sep
        self._base = caller.f_back if caller is not None else None
        self._places: dict[int, tuple[int, int]] = {}
        self._kept: list[Any] = []
        self._modules: list[_Called] = []
        self._paths: dict[int, str] = {}
        self._depth = 0
        self._undo: list[tuple[Any, str, Any]] = []
        self._wrap(hidet)

    def close(self) -> None:
        while self._undo:
            owner, name, original = self._undo.pop()
            setattr(owner, name, original)

    # -- wrapping -------------------------------------------------------------------------------

    def _wrap(self, hidet: Any) -> None:
        import importlib

        operator = importlib.import_module("hidet.graph.operator").Operator
        flow_graph = importlib.import_module("hidet.graph.flow_graph")
        base = importlib.import_module("hidet.graph.transforms.base")
        module = importlib.import_module("hidet.graph.nn.module").Module
        self._tracing = flow_graph.trace_from.__code__
        self._replace(operator, "__init__", self._on_operator)
        self._replace(operator, "reforward", self._on_reforward)
        self._replace(flow_graph.FlowGraph, "__init__", self._on_graph)
        self._replace(base.GraphPass, "__call__", self._on_pass)
        self._replace(module, "__call__", self._on_module)
        self._replace(module, "flow_graph_for", self._on_module)

    def _replace(self, owner: Any, name: str, handler: Callable[..., Any]) -> None:
        original = owner.__dict__[name]

        def wrapped(this: Any, *args: Any, **kwargs: Any) -> Any:
            return handler(original, this, *args, **kwargs)

        wrapped.__name__, wrapped.__doc__ = original.__name__, original.__doc__
        setattr(owner, name, wrapped)
        self._undo.append((owner, name, original))

    # -- operators ------------------------------------------------------------------------------

    def _on_operator(self, original: Any, operator: Any, *args: Any, **kwargs: Any) -> None:
        if id(operator) not in self._places:
            scope = self._modules[-1].scope if self._modules else 0
            self._know(operator, (scope, self._stack() if not self._depth else 0))
        original(operator, *args, **kwargs)

    def _on_reforward(self, original: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        """A pass that makes an operator once more, with other inputs: it stays where it was."""
        outputs = original(operator, *args, **kwargs)
        place = self._places.get(id(operator))
        for tensor in outputs:
            made = getattr(tensor, "op", None)
            if place is not None and made is not None:
                self._know(made, place)
        return outputs

    def _know(self, operator: Any, place: tuple[int, int]) -> None:
        self._places[id(operator)] = place
        self._kept.append(operator)

    def place(self, operator: Any) -> tuple[int, int]:
        return self._places.get(id(operator), (0, 0))

    def _stack(self) -> int:
        """The user's lines that lead here, outermost first."""
        frames: list[Frame] = []
        frame: FrameType | None = frame_at(2)
        while frame is not None and frame is not self._base and len(frames) < _DEEPEST:
            code = frame.f_code
            if not code.co_filename.startswith((self._root, OWN, "<")):
                frames.append(Frame(code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)))
            frame = frame.f_back
        return self.pools.stack(frames[::-1])

    # -- modules --------------------------------------------------------------------------------

    def _on_module(self, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        is_root = not self._modules
        self._modules.append(self._enter(module))
        try:
            return original(module, *args, **kwargs)
        finally:
            self._modules.pop()
            if is_root:
                self._paths = {}
                self.take_names(module)

    def _enter(self, module: Any) -> _Called:
        if not self._modules:
            self._paths = dict(_paths(module))
            return _Called("", 0)
        above, root = self._modules[-1], self._modules[0]
        path = self._paths.get(id(module), type(module).__name__)
        inside = path.removeprefix(f"{above.path}.") if above.path else path
        call = root.calls.get(path, 0)
        root.calls[path] = call + 1
        scope = above.scope
        *containers, last = inside.split(".")
        for name in containers:
            scope = self.pools.scope(scope, name)
        return _Called(path, self.pools.scope(scope, last, type(module).__name__, call))

    def take_names(self, module: Any) -> None:
        for name, tensor in module.named_parameters():
            if tensor is not None and id(tensor) not in self.names:
                self.names[id(tensor)] = str(name)
                self._held.append(tensor)

    # -- graphs and passes ----------------------------------------------------------------------

    def _on_graph(self, original: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
        original(graph, *args, **kwargs)
        if not self._depth and frame_at(2).f_code is self._tracing:
            self.traced.append(graph)

    def _on_pass(self, original: Any, made: Any, graph: Any) -> Any:
        if not self._depth and (not self.runs or self.runs[-1].last is not graph):
            self.runs.append(Run([self._passed("Origin", graph, None)], graph))
        run = self.runs[-1]
        self._depth += 1
        start = time.perf_counter()
        try:
            result = original(made, graph)
        finally:
            seconds = time.perf_counter() - start
            self._depth -= 1
        run.passes.append(self._passed(str(made.name), result, seconds))
        run.last = result
        return result

    def _passed(self, name: str, graph: Any, seconds: float | None) -> Passed:
        return Passed(name, snapshot(graph, self.place, self.names), list(graph.nodes), seconds)


def _paths(module: Any, prefix: str = "", depth: int = 0) -> list[tuple[int, str]]:
    """(identity, path) of all modules inside; the first path of one that is in two places."""
    found: list[tuple[int, str]] = []
    for name, inner in reversed(module._submodules.items()) if depth < _DEEPEST else ():
        if inner is not None:
            path = f"{prefix}{name}"
            found += [*_paths(inner, f"{path}.", depth + 1), (id(inner), path)]
    return found
