"""The captures that a server shows, and the source text that belongs to them."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

from opscope import wire
from opscope.analysis.annotate import annotate, costs_alone
from opscope.export.page import capture_bytes
from opscope.ir import Capture, Stage
from opscope.sources import NamedSources, Refused

_MANY_NODES = 200_000  # a graph of more is sent first and counted when the page has drawn it


@dataclass
class Shown:
    """One capture. Of a `local` one, opened or made on this machine, source files below the current folder are read."""

    name: str
    capture: Capture
    local: bool
    _lock: RLock = field(default_factory=RLock, repr=False)

    @cached_property
    def _content(self) -> tuple[bytes, str]:
        data = capture_bytes(annotate(self.capture, costs=not self.is_large))
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
    def _sources(self) -> NamedSources:
        return NamedSources(self.capture, [Path.cwd()] if self.local else [])

    def source(self, path: str) -> str | Refused | None:
        """The text of a file that the capture names, by exactly that name; of any other, nothing."""
        with self._lock:
            return self._sources.text(path)

    def summary(self, number: int) -> dict[str, Any]:
        stages = [{"name": stage.name, "nodes": stage.graph.n_nodes} for stage in self.capture.stages]
        return {**self.entry(number), "stages": stages}


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
        """By its number, as in an address."""
        with self._lock:
            known = number.isascii() and number.isdigit() and len(number) < 7 and int(number) < len(self._shown)
            return self._shown[int(number)] if known else None

    def stage(self, place: str) -> tuple[Capture, Stage, str] | None:
        """`1:0` is the first stage of the second capture; with the name to show."""
        number, _, index = place.partition(":")
        shown = self.get(number)
        if shown is None or not (index.isascii() and index.isdigit() and len(index) < 7):
            return None
        stages = shown.capture.stages
        if int(index) >= len(stages):
            return None
        stage = stages[int(index)]
        return shown.capture, stage, f"{shown.name} · {stage.name}" if len(stages) > 1 else shown.name

    def all(self) -> list[Shown]:
        with self._lock:
            return list(self._shown)
