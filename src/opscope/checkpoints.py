"""Two checkpoints compared: which tensors are new, gone, of another type, or hold other numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.readers import registry
from opscope.readers.checkpoints.tree import Tensor
from opscope.readers.source import Options, Source

_STEP = 1 << 18  # numbers that are compared at a time
_NUMPY = {
    "float64": "f8", "float32": "f4", "float16": "f2", "int64": "i8", "int32": "i4", "int16": "i2", "int8": "i1",
    "uint64": "u8", "uint32": "u4", "uint16": "u2", "uint8": "u1", "bool": "u1", "bfloat16": "u2",
}  # fmt: skip
_KINDS = ("retyped", "changed", "not compared", "removed", "added")


class Difference(NamedTuple):
    """What is different about a tensor. `apart`: the norm of the difference; `most`: its largest number."""

    kind: str
    name: str
    before: str = ""
    after: str = ""
    norm_before: float | None = None
    norm_after: float | None = None
    apart: float | None = None
    most: float | None = None

    @property
    def relative(self) -> float | None:
        """The norm of the difference, as a part of the norm before."""
        return self.apart / self.norm_before if self.apart is not None and self.norm_before else None

    def to_dict(self) -> dict[str, Any]:
        figures = {
            "norm_before": self.norm_before, "norm_after": self.norm_after, "difference": self.apart,
            "largest": self.most, "relative": self.relative,
        }  # fmt: skip
        known = {key: figure for key, figure in figures.items() if figure is not None and math.isfinite(figure)}
        return {"kind": self.kind, "name": self.name, "before": self.before, "after": self.after, **known}


class Differences(NamedTuple):
    before: int  # tensors
    after: int
    same: int
    each: list[Difference]

    def to_dict(self) -> dict[str, Any]:
        counts = {kind.replace(" ", "_"): sum(d.kind == kind for d in self.each) for kind in _KINDS}
        return {"tensors": [self.before, self.after], "summary": {**counts, "same": self.same},
                "changes": [one.to_dict() for one in self.each]}  # fmt: skip

    def lines(self, most: int = 40) -> list[str]:
        counts = [f"{n:,} {kind}" for kind in _KINDS if (n := sum(d.kind == kind for d in self.each))]
        lines = [f"{self.before:,} → {self.after:,} tensors  {', '.join([*counts, f'{self.same:,} same'])}"]
        for kind in _KINDS:
            chosen = [one for one in self.each if one.kind == kind]
            chosen.sort(key=lambda one: -(one.relative or 0))
            if chosen:
                lines += ["", f"  {kind} ({len(chosen):,})"]
                lines += [f"    {_line(one)}" for one in chosen[:most]]
            if len(chosen) > most:
                lines.append(f"    … and {len(chosen) - most:,} more (--json has all)")
        return lines


def _line(one: Difference) -> str:
    type_ = f"{one.before} → {one.after}" if one.before and one.after and one.before != one.after else ""
    text = f"{one.name}  {type_ or one.before or one.after}"
    if one.apart is None:
        return text
    relative = f" ({one.relative:.2%} of the norm)" if one.relative is not None and math.isfinite(one.relative) else ""
    norms = f"norm {one.norm_before:.4g} → {one.norm_after:.4g}"
    return f"{text}  ‖Δ‖ {one.apart:.4g}{relative}, max |Δ| {one.most:.4g}, {norms}"


def diff(before: Path, after: Path) -> Differences:
    """What is different between the tensors of two files. Both are read a piece at a time."""
    found: list[Differences] = []

    def first(old: Sequence[Tensor]) -> None:
        registry.read(Source.of(after), Options(visit=lambda new: found.append(_compared(old, new))))

    registry.read(Source.of(before), Options(visit=first))
    return found[0]


def _compared(before: Sequence[Tensor], after: Sequence[Tensor]) -> Differences:
    old, new = ({_name(tensor): tensor for tensor in tensors} for tensors in (before, after))
    each: list[Difference] = []
    same = 0
    for name, tensor in old.items():
        other = new.get(name)
        if other is None:
            each.append(Difference("removed", name, _type(tensor)))
            continue
        found = _numbers_apart(name, tensor, other)
        same += found is None
        if found is not None:
            each.append(found)
    each += [Difference("added", name, "", _type(tensor)) for name, tensor in new.items() if name not in old]
    return Differences(len(old), len(new), same, each)


def _name(tensor: Tensor) -> str:
    return "/".join((*tensor.within, tensor.name))


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype or '?'}[{','.join(map(str, tensor.shape))}]" if tensor.shape is not None else "?"


def _numbers_apart(name: str, old: Tensor, new: Tensor) -> Difference | None:
    types = _type(old), _type(new)
    kind = "changed" if types[0] == types[1] else "retyped"
    readers = _numbers(old), _numbers(new)
    if old.shape != new.shape or readers[0] is None or readers[1] is None:
        return Difference("not compared" if kind == "changed" else kind, name, *types)
    squares = [0.0, 0.0, 0.0]
    most = 0.0
    equal = True
    count = [0, 0]
    with np.errstate(all="ignore"):
        for a, b in zip(_even(readers[0]()), _even(readers[1]()), strict=False):
            if len(a) != len(b):
                return Difference("not compared", name, *types)
            count = [count[0] + len(a), count[1] + len(b)]
            equal &= bool(np.array_equal(a, b, equal_nan=True))
            apart = a - b
            for i, part in enumerate((a, b, apart)):
                squares[i] += float(np.dot(part, part))
            most = float(np.maximum(most, np.abs(apart).max(initial=0.0)))  # NaN stays
    if count[0] != math.prod(old.shape or ()):
        return Difference("not compared", name, *types)
    if equal and kind == "changed":
        return None
    one, other, apart = (math.sqrt(square) if square >= 0 else math.nan for square in squares)
    return Difference(kind, name, *types, one, other, apart, most)


def _numbers(tensor: Tensor) -> Callable[[], Iterator[npt.NDArray[np.float64]]] | None:
    dtype = str(tensor.attrs.get("read as", tensor.dtype))
    pieces = tensor.pieces
    if pieces is None or dtype not in _NUMPY:
        return None
    kind = np.dtype((">" if tensor.is_big_endian else "<") + _NUMPY[dtype])

    def numbers() -> Iterator[npt.NDArray[np.float64]]:
        left = b""
        for piece in pieces():
            if isinstance(piece, np.ndarray):
                yield piece.astype(np.float64)
                continue
            data = left + piece
            whole = len(data) // kind.itemsize * kind.itemsize
            left = data[whole:]
            raw = np.frombuffer(data[:whole], dtype=kind)
            if dtype == "bfloat16":
                raw = (raw.astype(np.uint32) << 16).view(np.float32)
            yield raw.astype(np.float64)

    return numbers


def _even(pieces: Iterator[npt.NDArray[np.float64]]) -> Iterator[npt.NDArray[np.float64]]:
    """The same numbers in parts of one length, but for the last."""
    left: npt.NDArray[np.float64] = np.zeros(0)
    for piece in pieces:
        left = np.concatenate([left, piece]) if len(left) else piece
        while len(left) >= _STEP:
            yield left[:_STEP]
            left = left[_STEP:]
    if len(left):
        yield left
