"""One run under torch.compile with a backend of ours: what Dynamo captured, where it broke off, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opscope.ir.pools import Frame
from opscope.tracers.torch import private
from opscope.tracers.torch.private import the_torch

from .errors import CannotCapture, one_line
from .frames import is_users
from .fxgraph import Named

_SOURCE = re.compile(r"_(?:modules|parameters|buffers)\[['\"](.+?)['\"]\]")


@dataclass(frozen=True)
class Break:
    """A place where Dynamo had to leave the graph."""

    reason: str
    frame: Frame | None

    def __str__(self) -> str:
        where = f"{self.frame.file}:{self.frame.line}: " if self.frame else ""
        return f"{where}graph break: {self.reason}"


@dataclass
class Compiled:
    """What one run gave, besides the graphs, which the backend has."""

    breaks: list[Break] = field(default_factory=list[Break])
    recompiles: list[str] = field(default_factory=list[str])


Backend = Callable[[Any, list[Any]], Callable[..., Any]]


def compiled_run(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], backend: Backend) -> Compiled:
    """Call the target once, compiled by `backend`. Dynamo forgets what it had compiled, before and after: a
    function that the user compiled himself is compiled again when it is next called."""
    torch = the_torch()

    run = Compiled()
    before = private.compilations()
    with _fresh_dynamo(), private.watch_graph_breaks(lambda reason, stack: _broke(run, reason, stack)):
        torch.compile(target, backend=backend)(*args, **kwargs)
        run.recompiles = private.recompile_reasons(before)
    return run


@contextmanager
def _fresh_dynamo() -> Generator[None, None, None]:
    torch = the_torch()

    with kept_counters():
        torch._dynamo.reset()
        try:
            yield
        finally:
            torch._dynamo.reset()


@contextmanager
def kept_counters() -> Generator[None, None, None]:
    """What Dynamo has counted of the user's own compilations stays as it is."""
    counters = private.dynamo_counters()
    before = {key: dict(value) for key, value in counters.items()}
    try:
        yield
    finally:
        counters.clear()
        for key, value in before.items():
            counters[key].update(value)


def _broke(run: Compiled, reason: str, stack: list[Frame]) -> None:
    users = [frame for frame in stack if is_users(frame.file)]
    found = Break(one_line(reason), users[-1] if users else None)
    if found not in run.breaks:
        run.breaks.append(found)


def add_break(run: Compiled, reason: Any) -> None:
    """The reason that Dynamo keeps with a graph. It is often shorter than what it said at the time: that counts."""
    if reason is None or not getattr(reason, "graph_break", False):
        return
    stack = [Frame(entry.filename, entry.lineno or 0, entry.name) for entry in reason.user_stack or ()]
    users = [frame for frame in stack if is_users(frame.file)]
    last = users[-1] if users else None
    if last is not None and any(b.frame is not None and b.frame[:2] == last[:2] for b in run.breaks):
        return
    _broke(run, str(reason.reason), stack)


def lines_of(reason: Any) -> set[tuple[str, int]]:
    """The lines in the stack at which a graph ended by a break."""
    if reason is None or not getattr(reason, "graph_break", False):
        return set()
    return {(entry.filename, entry.lineno or 0) for entry in reason.user_stack or ()}


def no_graph(how: str, run: Compiled) -> CannotCapture:
    """Dynamo gave up on all of it."""
    first = run.breaks[0] if run.breaks else None
    reason = f"Dynamo captured no graph: {first.reason}" if first else "Dynamo captured no graph: nothing to compile"
    frame = first.frame if first else None
    return CannotCapture(how, reason, frame.file if frame else "", frame.line if frame else 0)


class Owners:
    """What the inputs of Dynamo's graphs are: parameters and buffers by identity, the rest by their source."""

    def __init__(self, modules: list[Any]) -> None:
        self._tensors: dict[int, Named] = {}
        for module in modules:
            for name, tensor in module.named_buffers(remove_duplicate=False):
                self._tensors.setdefault(id(tensor), Named(name, "buffer"))
            for name, tensor in module.named_parameters(remove_duplicate=False):
                self._tensors[id(tensor)] = self._tensors.get(id(tensor)) or Named(name, "parameter")

    def base(self, placeholders: list[Any], examples: list[Any]) -> str:
        """The full name of the module whose code a graph is from: after a graph break Dynamo begins again inside."""
        for placeholder, example in zip(placeholders, examples, strict=False):
            known, source = self._tensors.get(id(example)), private.source_name(placeholder)
            inside = ".".join(_SOURCE.findall(source))
            if known is not None and source.startswith("L[") and inside and known.name.endswith(f".{inside}"):
                return known.name.removesuffix(f".{inside}")
        return ""

    def of(self, placeholder: Any, example: Any) -> Named:
        known = self._tensors.get(id(example))
        if known is not None:
            return known
        source = private.source_name(placeholder)
        parts = _SOURCE.findall(source)
        if parts and ("_parameters" in source or "_buffers" in source):
            return Named(".".join(parts), "parameter" if "_parameters" in source else "buffer")
        plain = re.fullmatch(r"L\[['\"](\w+)['\"]\]", source)
        return Named(plain[1] if plain else str(placeholder.target))
