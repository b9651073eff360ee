"""What each pass of the compiler made of the graph: watched where torch observes its passes itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .stream import Record, Stream


class Running(NamedTuple):
    graph: int  # id of the module
    name: str
    began: float
    before: list[Any]


class Passes:
    """Passes inside of another one belong to it."""

    def __init__(self, stream: Stream, print_graph: Callable[[Any], tuple[str, Record | None]]) -> None:
        self._stream = stream
        self._print = print_graph
        self._running: list[Running] = []
        self._after: dict[int, list[Any]] = {}  # what a pass left behind
        self._seen: list[tuple[str, str, float, bool]] = []
        self.level = ""

    def begin(self, observer: Any) -> None:
        module = observer.gm
        before = [] if self._running else _state(module)
        self._running.append(Running(id(module), str(observer.passname), time.perf_counter(), before))

    def end(self, observer: Any) -> None:
        if not self._running:
            return
        running = self._running.pop()
        if self._running or running.graph != id(observer.gm):
            return
        seconds = time.perf_counter() - running.began
        after = _state(observer.gm)
        changed = after != running.before
        text, described = "", None
        if changed:
            text, described = self._print(observer.gm)
            changed = not self._stream.repeats(text)
        if changed:
            about = {"pass": running.name, "of": self.level, "seconds": seconds}
            self._stream.records.append(Record(self._stream.about("pass", "string", **about), text))
            if described is not None:
                self._stream.records.append(described)
        self._seen.append((running.name, self.level, seconds, changed))

    def taken(self) -> list[tuple[str, str, float, bool]]:
        seen, self._seen = self._seen, []
        return seen


def _state(module: Any) -> list[Any]:
    """What would be another object if the graph had been changed. Arguments are never written to, only replaced."""
    return [
        part for node in module.graph.nodes for part in (node.name, node.target, _Same(node.args), _Same(node.kwargs))
    ]


class _Same:
    """Equal to itself only, and holding it, so that nothing else gets its address."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.held is other.held

    __hash__ = None  # pyright: ignore[reportAssignmentType]
