"""What is said of two runs that were compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """One side of a divergence: an operator, or a value from outside (then `op` is its role)."""

    op: str
    path: str
    file: str
    line: int
    phase: str
    node: int
    name: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def __str__(self) -> str:
        inside = f" in {self.path}" if self.path else ""
        where = f" at {self.file}:{self.line}" if self.file else ""
        return f"{self.op}{f' {self.name}' if self.name else ''}{inside}{where}"


@dataclass(frozen=True)
class Numbers:
    """What both sides make at a divergence, number by number in order."""

    size: int
    differ: int  # by more than a thousandth of their rms
    worst: int  # the place of the largest difference
    a: float
    b: float

    def __str__(self) -> str:
        return f"{self.differ:,} of {self.size:,} numbers differ, most at {self.worst:,}: {self.a:.6g} and {self.b:.6g}"


@dataclass(frozen=True)
class Point:
    """Where the two diverge: `a` and `b` compute it on either side; None: the side computes nothing there."""

    a: Place | None
    b: Place | None
    error: float | None  # relative, of the nearest two results there; None: nothing there can be compared
    input_error: float  # the largest error of what `a` reads
    explained_by_inputs: bool  # what it reads has no counterpart either
    numbers: Numbers | None = None  # where both could run once more

    def to_dict(self) -> dict[str, Any]:
        return {
            "a": self.a.to_dict() if self.a is not None else None,
            "b": self.b.to_dict() if self.b is not None else None,
            "error": self.error,
            "input_error": self.input_error,
            "explained_by_inputs": self.explained_by_inputs,
            "numbers": vars(self.numbers) if self.numbers is not None else None,
        }


@dataclass(frozen=True)
class Divergence:
    """`first` is None where the two agree. `matched` of `compared` tensors have a counterpart; `error` is the largest
    error among these."""

    first: Point | None
    compared: int
    matched: int
    error: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "first": self.first.to_dict() if self.first is not None else None,
            "compared": self.compared,
            "matched": self.matched,
            "error": self.error,
        }

    def __str__(self) -> str:
        if self.first is None:
            return f"the two agree: {self.matched:,} of {self.compared:,} tensors match, to {self.error:.1e}"
        error = f", off by {self.first.error:.1e}" if self.first.error is not None else ""
        numbers = f"\n  {self.first.numbers}" if self.first.numbers is not None else ""
        return f"the two diverge{error} at\n  a: {self.first.a or 'nothing'}\n  b: {self.first.b or 'nothing'}{numbers}"
