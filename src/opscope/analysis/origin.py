"""What is said of a place where numbers that are not finite were born."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Seen:
    """A tensor that an operator read or made: what it is called, its type, and its statistics as far as known."""

    name: str
    type: str
    figures: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.type, **{name: _plain(f) for name, f in self.figures.items()}}


@dataclass(frozen=True)
class Origin:
    """An operator that made numbers that are not finite of finite ones; or a parameter, a buffer or an input that came
    with them (then `op` is its role, and `name` what it is called)."""

    op: str
    path: str
    phase: str
    file: str
    line: int
    kind: str  # "nan" or "inf"
    inputs: list[Seen] = field(default_factory=list[Seen])
    outputs: list[Seen] = field(default_factory=list[Seen])
    name: str = ""
    node: int = -1  # -1: it is a value from outside
    forward: Origin | None = None  # of an operator of the backward pass: what it differentiates
    spread: int = 0  # how many operators after it got what it made
    # It went nowhere: all that read it made finite numbers of it, and nothing that came to stay is due to it.
    absorbed: bool = False
    value: int = -1  # in which they appear first
    story: list[int] = field(default_factory=list[int])  # the operators on the way to where it ended

    def to_dict(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "path": self.path,
            "phase": self.phase,
            "file": self.file,
            "line": self.line,
            "kind": self.kind,
            "name": self.name,
            "node": self.node,
            "inputs": [seen.to_dict() for seen in self.inputs],
            "outputs": [seen.to_dict() for seen in self.outputs],
            "forward": self.forward.to_dict() if self.forward is not None else None,
            "spread": self.spread,
            "absorbed": self.absorbed,
            "story": self.story,
        }

    def __str__(self) -> str:
        where = f" at {self.file}:{self.line}" if self.file else ""
        called = f" {self.name}" if self.name else ""
        inside = f" in {self.path}" if self.path else ""
        return f"{self.kind}: {self.op}{called}{inside} ({self.phase}){where}"


def _plain(figure: float) -> float | int | str:
    return str(figure) if not math.isfinite(figure) else int(figure) if figure == int(figure) else figure
