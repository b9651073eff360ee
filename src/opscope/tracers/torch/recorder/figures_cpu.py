"""Figures of tensors on the CPU: of large ones at once, pass by pass in the cache; of small ones many together, from a
buffer that they are copied to, because a call costs more than their numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.ir.measurements import EXPONENTS, LOWEST, WIDTH, Figures, content

Floats = npt.NDArray[Any]  # float32 or float64

_SMALL = 2048  # numbers of a tensor that is put off
_ROOM = 1 << 17  # numbers that a buffer holds
_MOST = 1 << 12  # tensors that wait
_PIECE = 1 << 15  # numbers that stay in the cache from one pass to the next
_SAMPLE = 1 << 12  # numbers of a large tensor whose exponents are counted, at equal distances
_ONES, _ONES64 = np.ones(_PIECE, np.float32), np.ones(_PIECE)  # a product with them is the fastest sum
_TINY = {"float16": 2.0**-14, "float8_e4m3fn": 2.0**-6, "float8_e4m3fnuz": 2.0**-7, "float8_e5m2": 2.0**-14,
         "float8_e5m2fnuz": 2.0**-15}  # fmt: skip


class OnCpu:
    """Takes tensors, and gives figures by value."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._plain = {torch.float32: 0.0, torch.float64: 0.0}
        self.figures: dict[int, Figures] = {}
        self._waiting = {np.float32: _Waiting(np.dtype(np.float32)), np.float64: _Waiting(np.dtype(np.float64))}

    def take(self, value: int, tensor: Any) -> None:
        torch, dtype = self._torch, tensor.dtype
        tiny = self._plain.get(dtype)
        if tiny is None:
            if tensor.is_complex():
                self.figures[value] = _complex(torch, tensor)
                return
            # What is not finite, or subnormal, in 8 or 16 bits is so in 32 by these limits.
            is_float = tensor.is_floating_point()
            tiny = _TINY.get(str(dtype).removeprefix("torch."), 0.0) if is_float else -1.0
            tensor = tensor.to(torch.float32 if is_float else torch.float64)
        numbers = tensor.numpy()
        if numbers.size > _SMALL:
            self.figures[value] = _large(np.ascontiguousarray(numbers).reshape(-1), tiny)
            return
        if not numbers.size:
            self.figures[value] = Figures(size=0)
            return
        waiting = self._waiting[numbers.dtype.type]
        if waiting.filled + numbers.size > _ROOM or len(waiting) == _MOST:
            self.figures.update(waiting.emptied())
        waiting.add(value, numbers, tiny)

    def finish(self) -> dict[int, Figures]:
        for waiting in self._waiting.values():
            self.figures.update(waiting.emptied())
        return self.figures


class _Waiting:
    """Small tensors of one type, one after another."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._numbers: npt.NDArray[Any] = np.empty(0, dtype)
        self._dtype = dtype
        self._values: list[int] = []
        self._starts: list[int] = []
        self._tiny: list[float] = []
        self.filled = 0

    def __len__(self) -> int:
        return len(self._values)

    def add(self, value: int, numbers: npt.NDArray[Any], tiny: float) -> None:
        if not self.filled and not self._numbers.size:
            self._numbers = np.empty(_ROOM, self._dtype)
        end = self.filled + numbers.size
        self._numbers[self.filled : end].reshape(numbers.shape)[...] = numbers
        self._values.append(value)
        self._starts.append(self.filled)
        self._tiny.append(tiny)
        self.filled = end

    def emptied(self) -> dict[int, Figures]:
        if not self.filled:
            return {}
        numbers, starts = self._numbers[: self.filled], np.array(self._starts)
        found: dict[int, Figures] = {}
        with np.errstate(all="ignore"):
            wide = numbers.astype(np.float64)
            sizes = np.diff(starts, append=self.filled)
            low, high = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
            total, squares = np.add.reduceat(wide, starts), np.add.reduceat(wide * wide, starts)
            zeros = np.add.reduceat((numbers == 0).astype(np.int64), starts)
            bits = np.add.reduceat(_bits(numbers).astype(np.int64), starts)
            mantissa, top, middle = _layout(self._dtype)
            fields = (_bits(numbers) >> mantissa) & top
            least = np.repeat(_least_field(self._dtype, np.array(self._tiny)), sizes)
            is_lost = (fields < least) & (numbers != 0)
            subnormal = np.add.reduceat(is_lost.astype(np.int64), starts)
            ranges = np.clip((fields - (middle + LOWEST)) // WIDTH, 0, EXPONENTS - 1)
            of = np.repeat(np.arange(len(starts)) * EXPONENTS, sizes) + ranges
            counts = np.bincount(of[(fields >= least) & (fields < top)], minlength=len(starts) * EXPONENTS)
            counts = counts.reshape(-1, EXPONENTS)
        has_any: list[int] = np.add.reduce(counts, axis=1, dtype=np.int64).tolist()
        is_finite = np.isfinite(low) & np.isfinite(high) & np.isfinite(squares)
        rows = zip(
            *(column.tolist() for column in (sizes, low, high, total, squares, zeros, bits, subnormal, is_finite)),
            strict=True,
        )
        for place, (size, least, most, sum_, norm2, nulls, hashed, lost, fine) in enumerate(rows):
            kind = self._tiny[place]
            if not fine:
                start = self._starts[place]
                found[self._values[place]] = _large(numbers[start : start + size].copy(), kind)
                continue
            norm = math.sqrt(norm2)
            if norm == 0 and most > least:
                norm = float(np.linalg.norm(wide[self._starts[place] :][:size] * 2.0**500)) * 2.0**-500
            is_float = kind >= 0
            found[self._values[place]] = Figures(
                size=size,
                zeros=nulls,
                subnormal=lost if is_float else 0,
                min=least,
                max=most,
                mean=sum_ / size,
                norm=norm,
                rms=norm / math.sqrt(size),
                hash=content(hashed, least, most),
                exponents=tuple(counts[place].tolist()) if is_float and has_any[place] else (),
            )
        self._values, self._starts, self._tiny, self.filled = [], [], [], 0
        return found


def _large(numbers: Floats, tiny: float) -> Figures:
    """Of one tensor, contiguous. `tiny`: the least normal number of its own type; 0: of this one; -1: no float."""
    with np.errstate(all="ignore"):
        low = high = float(numbers[0])
        total = squares = 0.0
        zeros = bits = 0
        for start in range(0, numbers.size, _PIECE):
            part = numbers[start : start + _PIECE]
            low, high = min(low, float(part.min())), max(high, float(part.max()))
            total += float(np.dot(part, _ONES[: part.size] if part.dtype == np.float32 else _ONES64[: part.size]))
            squares += float(np.dot(part, part))
            zeros += part.size - int(np.count_nonzero(part != 0))
            bits += _sum_of_bits(part)
        exponents: tuple[int, ...] = ()
        subnormal, step = 0, -(-numbers.size // _SAMPLE)
        if tiny >= 0:
            subnormal, exponents = _exponents(np.ascontiguousarray(numbers[::step]), tiny)
        found = Figures(
            size=numbers.size, zeros=zeros, subnormal=subnormal, exponents=exponents, sampled=step > 1 and tiny >= 0
        )
        if not math.isfinite(total) or not math.isfinite(low) or not math.isfinite(high):
            is_finite = np.isfinite(numbers)
            nan, finite = int(np.isnan(numbers).sum()), numbers[is_finite].astype(np.float64)
            infinite = numbers.size - nan - finite.size
            if nan or infinite:
                found = found._replace(
                    nan=nan, inf=infinite, neginf=int((numbers == -math.inf).sum()), hash=content(bits, nan, infinite)
                )
            if not finite.size:
                return found
            low, high, total = float(finite.min()), float(finite.max()), float(finite.sum())
            numbers, squares = finite, math.nan
        if not found.hash:
            found = found._replace(hash=content(bits, low, high))
        count = numbers.size
        norm = math.sqrt(squares) if squares >= 0 else math.nan
        if not 1e-30 * count < squares < math.inf:  # squares are out of range, though numbers are not
            largest = max(abs(low), abs(high))
            parts = numbers.astype(np.float64) / (largest or 1.0)
            norm = math.sqrt(float(np.dot(parts, parts))) * largest
    return found._replace(min=low, max=high, mean=total / count, norm=norm, rms=norm / math.sqrt(count))


def _complex(torch: Any, tensor: Any) -> Figures:
    """Of the magnitudes; what is not finite or zero is counted by number, exponents and bits by part."""
    parts = torch.view_as_real(tensor.resolve_conj().resolve_neg())
    if not tensor.numel():
        return Figures(size=0)
    whole = _large(np.ascontiguousarray(parts.numpy()).reshape(-1), 0.0)
    sizes = _large(np.ascontiguousarray(tensor.abs().numpy()).reshape(-1), -1.0)
    nan = int(torch.isnan(tensor).sum())
    return sizes._replace(
        nan=nan,
        inf=int((torch.isinf(tensor) & ~torch.isnan(tensor)).sum()),
        neginf=0,
        zeros=tensor.numel() - int(torch.count_nonzero(tensor)),
        subnormal=whole.subnormal,
        exponents=whole.exponents,
        sampled=whole.sampled,
        hash=whole.hash,
    )


def _bits(numbers: Floats) -> npt.NDArray[Any]:
    return numbers.view(np.int32 if numbers.dtype == np.float32 else np.int64)


def _sum_of_bits(part: Floats) -> int:
    """In any order; it wraps around."""
    bits = _bits(part)
    return int(np.add.reduce(bits, dtype=bits.dtype)) & 0xFFFFFFFF


def _layout(dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """Of a type of float: its bits of mantissa, its largest exponent field, the field of 1.0."""
    return (52, 2047, 1023) if dtype == np.float64 else (23, 255, 127)


def _least_field(dtype: np.dtype[Any], tiny: Any) -> Any:
    """The field of the exponent of the least number that is not subnormal in its own type."""
    return np.where(tiny > 0, np.log2(np.where(tiny > 0, tiny, 1.0)) + _layout(dtype)[2], 1).astype(np.int64)


def _exponents(sample: Floats, tiny: float) -> tuple[int, tuple[int, ...]]:
    """How many of a sample are subnormal, and how many lie in each range of exponents."""
    mantissa, top, middle = _layout(sample.dtype)
    bits = _bits(sample)
    fields = np.bincount((bits >> mantissa) & top, minlength=top + 1)
    fields[top] = 0
    if fields[0]:
        fields[0] -= sample.size - int(np.count_nonzero(sample))
    lost, least = 0, 1 if tiny == 0 else round(math.log2(tiny)) + middle
    if fields[:least].any():
        lost = int(fields[:least].sum())
        fields[:least] = 0
    counts = np.add.reduceat(fields, _STARTS[top])
    return lost, tuple(counts.tolist()) if lost < sample.size and counts.any() else ()


def _starts(top: int, middle: int) -> npt.NDArray[np.int64]:
    """Where the ranges begin in the fields of exponents; the first and the last take what lies outside."""
    starts = np.arange(EXPONENTS) * WIDTH + LOWEST + middle
    starts[0] = 0
    return np.minimum(np.maximum(starts, 0), top)


_STARTS = {
    top: _starts(top, middle) for _, top, middle in (_layout(np.dtype(np.float32)), _layout(np.dtype(np.float64)))
}
