"""A TORCH_TRACE log: one JSON object a line, with a payload in the lines after it that begin with a tab."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

# `V1118 08:00:47.624000 475 torch/_dynamo/utils.py:2126] {"…": …}`; the prefix is absent where a log was shortened.
LINE = re.compile(rb"^(?:[VDIWEF]\d{4} [0-9:.]+ +\d+ [^\]\n]{1,400}\] )?(?=\{)")
_LONGEST_LINE = 64 << 20
_ENVELOPE = frozenset(
    ("rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "has_payload", "stack")
)
# What says nothing about graphs and is most of a log: not kept.
_SKIPPED = (b'{"describe_storage', b'{"describe_tensor', b'{"chromium_event"')


class CompileId(NamedTuple):
    """Which compilation an entry is about: a frame of Python, how often it was compiled, and the try at it."""

    frame: int
    compile: int
    attempt: int
    autograd: int = -1  # the compiled-autograd graph that it belongs to

    def __str__(self) -> str:
        name = f"{self.frame}/{self.compile}"
        return f"!{self.autograd}/{name}" if self.autograd >= 0 else name


@dataclass
class Entry:
    kind: str  # "dynamo_output_graph", or the name of an artifact
    id: CompileId | None
    data: Any  # what is under the kind
    rank: int | None = None
    payload: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "\n".join(self.payload)


@dataclass
class Log:
    entries: list[Entry]
    damaged: int  # lines that are no entry
    strings: dict[int, str] = field(default_factory=dict[int, str])  # that stacks refer to


def parse(lines: Iterable[bytes]) -> Log:
    log = Log([], 0)
    payload: list[str] | None = None  # of the last entry; None where it is not kept
    for line in lines:
        if line.startswith(b"\t"):
            if payload is not None:
                payload.append(line[1:].rstrip(b"\r\n").decode("utf-8", "replace"))
            continue
        payload = None
        if not line.strip():
            continue
        start = LINE.match(line)
        if start is None or len(line) > _LONGEST_LINE:
            log.damaged += 1
            continue
        if line.startswith(_SKIPPED, start.end()):
            continue
        entry = _entry(line[start.end() :], log)
        if entry is not None:
            log.entries.append(entry)
            payload = entry.payload
    return log


def _entry(line: bytes, log: Log) -> Entry | None:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        log.damaged += 1
        return None
    if not isinstance(found, dict):
        log.damaged += 1
        return None
    data = cast("dict[str, Any]", found)
    kind = next((key for key in data if key not in _ENVELOPE), "")
    if not kind:
        return None
    if kind == "str":
        row = cast("list[Any]", content) if isinstance(content := data[kind], list) else []
        if len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], int):
            log.strings[row[1]] = row[0]
        return None
    content = data[kind]
    if kind in ("artifact", "graph_dump") and isinstance(content, dict):
        kind = str(cast("dict[str, Any]", content).get("name", kind))
    if kind == "dynamo_start":
        _name_files(content, log)
    rank = data.get("rank")
    return Entry(kind, _id(data), content, rank if isinstance(rank, int) else None)


def _name_files(content: Any, log: Log) -> None:
    stack = cast("dict[str, Any]", content).get("stack") if isinstance(content, dict) else None
    for frame in cast("list[Any]", stack) if isinstance(stack, list) else []:
        if isinstance(frame, dict):
            row = cast("dict[str, Any]", frame)
            if isinstance(number := row.get("filename"), int):
                row["filename"] = log.strings.get(number, "")


def _id(data: dict[str, Any]) -> CompileId | None:
    numbers = [data.get(key) for key in ("frame_id", "frame_compile_id")]
    if not all(isinstance(number, int) for number in numbers):
        return None
    attempt, autograd = data.get("attempt"), data.get("compiled_autograd_id")
    return CompileId(
        cast("int", numbers[0]),
        cast("int", numbers[1]),
        attempt if isinstance(attempt, int) else 0,
        autograd if isinstance(autograd, int) else -1,
    )
