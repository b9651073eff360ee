"""PyTorch's own log of the compiler, listened to in the process: what TORCH_TRACE would write, without a file.

A handler more on torch's structured logger changes none of the user's settings: his TORCH_TRACE goes on as it was.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import hooks

# What says nothing about graphs and is most of the log.
_SKIPPED = ("chromium_event", "describe_storage", "describe_tensor", "str", "link", "exported_program")
_MOST_TEXTS = 24  # printed graphs that have not come by as a record


class Record(NamedTuple):
    metadata: dict[str, Any]
    payload: str | Callable[[], str] | None  # made when the recording is over

    def lines(self) -> Iterator[bytes]:
        payload = self.payload() if callable(self.payload) else self.payload
        metadata = self.metadata if payload is None else {**self.metadata, "has_payload": ""}
        yield json.dumps(metadata, default=str).encode() + b"\n"
        if payload is not None:
            for line in payload.split("\n"):
                yield b"\t" + line.encode("utf-8", "replace") + b"\n"


class Stream(logging.Handler):
    """Keeps the records in order. `described` is asked for what else is known of a printed graph."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[Record] = []
        self.last = ""  # the graph that was printed last
        self.kinds: set[str] = set()
        self.printed: deque[tuple[str, Callable[[str], Record | None]]] = deque(maxlen=_MOST_TEXTS)
        self.before_code: Callable[[], None] = lambda: None
        self.began: Callable[[str], None] = lambda kind: None

    def open(self) -> bool:
        log = hooks.trace_log()
        if log is None:
            return False
        log.addHandler(self)
        return True

    def shut(self) -> None:
        log = hooks.trace_log()
        if log is not None:
            log.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._take(record.__dict__["metadata"], record.__dict__.get("payload"))
        except Exception:  # never the user's problem
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        self.kinds.add("damaged")

    def _take(self, metadata: Any, payload: Any) -> None:
        if any(key in metadata for key in _SKIPPED):
            return
        content = metadata.get("artifact") or metadata.get("graph_dump")
        kind = str(content.get("name")) if content else next(iter(metadata))
        self.kinds.add(kind)
        if kind == "inductor_output_code":
            self.before_code()
        self.records.append(Record(dict(metadata), payload if isinstance(payload, str) else None))
        if isinstance(payload, str):
            self._describe(kind, payload)
        self.began(kind)

    def _describe(self, kind: str, payload: str) -> None:
        for text, describe in reversed(self.printed):
            if payload.startswith(text):
                self.last = text
                found = describe(kind)
                if found is not None:
                    self.records.append(found)
                return

    def add(self, name: str, payload: str | Callable[[], str], encoding: str = "json", **more: Any) -> None:
        """A record of ours, which TORCH_TRACE does not have."""
        self.records.append(Record(self.about(name, encoding, **more), payload))

    def about(self, name: str, encoding: str = "json", **more: Any) -> dict[str, Any]:
        return {"artifact": {"name": f"opscope_{name}", "encoding": encoding, **more}, **hooks.compile_id()}

    def repeats(self, text: str) -> bool:
        """Whether a graph is printed as the one before it was."""
        same, self.last = text == self.last, text
        return same

    def lines(self) -> Iterator[bytes]:
        for text, number in hooks.interned_strings():
            yield from Record({"str": [text, number]}, None).lines()
        for record in self.records:
            yield from record.lines()
