"""The captures that a server shows, and the source text that belongs to them."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from threading import RLock
from typing import Any

from opscope import wire
from opscope.export.costs import costs_alone
from opscope.export.page import capture_bytes
from opscope.ir import Capture, Graph

_LARGEST_SOURCE = 8 << 20
_MANY_NODES = 200_000  # a graph of more is sent first and counted when the page has drawn it


@dataclass
class Shown:
    """One capture. A `local` one was opened or made on this machine: its own source files may be read."""

    name: str
    capture: Capture
    local: bool
    _lock: RLock = field(default_factory=RLock, repr=False)

    @cached_property
    def _content(self) -> tuple[bytes, str]:
        data = capture_bytes(self.capture, costs=not self.is_large)
        return data, f'"{hashlib.sha256(data).hexdigest()[:32]}"'

    def content(self) -> tuple[bytes, str]:
        """The .opscope bytes and their ETag, made when first asked for."""
        with self._lock:
            return self._content

    @property
    def is_large(self) -> bool:
        return sum(stage.graph.n_nodes for stage in self.capture.stages) > _MANY_NODES

    @cached_property
    def _costs(self) -> bytes:
        out = io.BytesIO()
        wire.write(costs_alone(self.capture), out)
        return out.getvalue()

    def costs(self) -> bytes:
        """What the operators of a large capture cost: .opscope bytes with tables alone."""
        with self._lock:
            return self._costs

    def entry(self, number: int) -> dict[str, str]:
        """Where the page finds it."""
        more = {"costs": f"api/costs/{number}"} if self.is_large else {}
        return {"name": self.name, "url": f"api/capture/{number}", **more}

    @cached_property
    def _named(self) -> dict[str, int]:
        """Every file that the capture names -> the last line it names, or 0."""
        named: dict[str, int] = dict.fromkeys(self.capture.sources, 0)
        for frame in self.capture.pools.frames:
            if frame.file:
                named[frame.file] = max(named.get(frame.file, 0), frame.line)
        for path in _group_files(self.capture):
            named.setdefault(path, 0)
        return named

    def source(self, path: str) -> str | None:
        """The text of a file that the capture names, by exactly that name; of any other, nothing."""
        with self._lock:
            if path not in self._named:
                return None
            text = self.capture.sources.get(path) or _group_code(self.capture, path)
            if text is None and self.local:
                text = _from_disk(path)
                if text is not None and text.count("\n") + 1 < self._named[path]:
                    return None  # another version of the file: its lines would be the wrong ones
            return text

    def summary(self, number: int) -> dict[str, Any]:
        stages = [{"name": stage.name, "nodes": stage.graph.n_nodes} for stage in self.capture.stages]
        return {**self.entry(number), "stages": stages}


def _graphs(capture: Capture) -> list[Graph]:
    found: dict[int, Graph] = {}
    todo = [stage.graph for stage in capture.stages]
    while todo:
        graph = todo.pop()
        if id(graph) not in found:
            found[id(graph)] = graph
            todo += [body.graph for body in graph.bodies]
    return list(found.values())


def _group_files(capture: Capture) -> dict[str, int]:
    """The files of generated code that kernels name -> their code, as a string id (0: not embedded)."""
    files: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    for graph in _graphs(capture):
        for groups in graph.groups.values():
            pairs = set(zip(groups.attrs.tolist(), groups.code.tolist(), strict=True)) - seen
            seen |= pairs
            for attrs, code in pairs:
                file = capture.pools.attrs_of(attrs).get("file")
                if isinstance(file, str) and file:
                    files[file] = code or files.get(file, 0)
    return files


def _group_code(capture: Capture, path: str) -> str | None:
    code = _group_files(capture).get(path, 0)
    return capture.pools.strings[code] if code else None


def _from_disk(path: str) -> str | None:
    """A plain file at exactly this absolute path. What has no size (as in /proc) is not read."""
    parts = PureWindowsPath(path).parts if "\\" in path else PurePosixPath(path).parts
    try:
        file = Path(path)
        if not file.is_absolute() or ".." in parts or not file.is_file():
            return None
        size = file.stat().st_size
        if not 0 < size <= _LARGEST_SOURCE:
            return None
        with file.open("rb") as opened:
            return opened.read(size).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


class Shelf:
    """The captures in the order they were opened. Several threads look at it."""

    def __init__(self) -> None:
        self._shown: list[Shown] = []
        self._lock = RLock()

    def add(self, name: str, capture: Capture, *, local: bool) -> int:
        with self._lock:
            self._shown.append(Shown(name, capture, local))
            return len(self._shown) - 1

    def get(self, number: str) -> Shown | None:
        """By its number, as it stands in an address."""
        with self._lock:
            known = number.isascii() and number.isdigit() and len(number) < 7 and int(number) < len(self._shown)
            return self._shown[int(number)] if known else None

    def all(self) -> list[Shown]:
        with self._lock:
            return list(self._shown)
