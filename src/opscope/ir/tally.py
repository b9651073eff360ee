"""Statistics of a tensor that comes in pieces: of a file's weights, which need never be in memory as a whole.

They are the figures of a live recording, to the hash: a weight of a file has the hash of the parameter loaded from it,
unless it holds NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from .codes import WIDE, Codes, codes, unpacked
from .measurements import EXPONENTS, LOWEST, WIDTH, Figures, content

Piece = bytes | bytearray | memoryview | npt.NDArray[Any]

_STEP = 1 << 16  # numbers that stay in the cache between the passes over them


def figures_of(
    pieces: Iterable[Piece], dtype: str, count: int | None = None, *, big_endian: bool = False
) -> Figures | None:
    """Statistics of a tensor of this dtype (spelled as in `ir.dtypes`), one piece after another; None where the dtype
    has no numbers that are known from its bits (strings, quantized ones without their scale).

    A piece is raw bytes as the file has them, of any length, or an array of numbers that were decoded already: then
    `dtype` is what they mean to be, and may be one that numpy has not. `count` is the number of elements: what comes
    after them, as half of a last byte, is padding. Memory is that of one piece and a little.

    >>> figures_of([bytes([0x38, 0x7F])], "float8_e4m3fn").nan
    1
    >>> figures_of([np.array([1.0, -3.0])], "float64").rms ** 2
    5.0
    """
    few = codes(dtype)
    if few is None and dtype not in WIDE:
        return None
    if count is not None and dtype == "float4_e2m1fn_x2":
        count *= 2
    tally = _Tally(few, dtype.startswith("complex"), dtype.startswith(("float", "bfloat", "tfloat", "complex")))
    left = count
    for array in _arrays(pieces, dtype, few, big_endian):
        taken = array if left is None else array[:left]
        tally.add(taken)
        if left is not None:
            left -= taken.size
            if left <= 0:
                break
    return tally.figures()


def _arrays(pieces: Iterable[Piece], dtype: str, few: Codes | None, big_endian: bool) -> Iterable[npt.NDArray[Any]]:
    """Codes, or numbers where there are many; bytes that belong to the next number wait for the next piece."""
    kind = np.dtype((">" if big_endian else "<") + WIDE[dtype]) if few is None else None
    # Bytes after which a number begins anew: of 6 bits, four of them are in three bytes.
    width = kind.itemsize if kind is not None else math.lcm(few.bits, 8) // 8 if few is not None else 1
    rest = b""
    for piece in pieces:
        if isinstance(piece, np.ndarray):
            yield piece.reshape(-1)
            continue
        data = memoryview(piece).cast("B")
        if rest:
            head = bytes(data[: width - len(rest)])
            rest, data = rest + head, data[len(head) :]
            if len(rest) < width:
                continue
            yield _numbers(rest, kind, few, big_endian)
            rest = b""
        whole = len(data) - len(data) % width
        rest = bytes(data[whole:])
        for start in range(0, whole, _STEP * width):
            yield _numbers(data[start : min(start + _STEP * width, whole)], kind, few, big_endian)
    if rest and few is not None and few.bits < 8:  # 3 numbers of 6 bits end within their third byte
        yield _numbers(rest, kind, few, big_endian)


def _numbers(
    data: bytes | memoryview, kind: np.dtype[Any] | None, few: Codes | None, big_endian: bool
) -> npt.NDArray[Any]:
    if few is None:
        return np.frombuffer(data, kind)
    if few.bits == 16 and big_endian:
        return np.frombuffer(data, ">u2").astype(np.uint16)
    return unpacked(np.frombuffer(data, np.uint8), few.bits)


class _Tally:
    """Of few codes, how often each is there: everything else follows. Of many, sums over pieces."""

    def __init__(self, few: Codes | None, is_complex: bool, is_float: bool) -> None:
        self._few, self._is_complex, self._is_float = few, is_complex, is_float
        self._counts = np.zeros(len(few.numbers), np.int64) if few is not None else None
        self._sums = _Sums(few.tiny if few is not None else 0.0, is_float)
        self._parts = _Sums(0.0, is_float) if is_complex else None

    def add(self, array: npt.NDArray[Any]) -> None:
        if self._counts is not None and array.dtype.kind == "u" and array.dtype.itemsize * 8 <= 16:
            self._counts += np.bincount(array, minlength=len(self._counts))[: len(self._counts)]
            return
        for start in range(0, array.size, _STEP):
            piece = array[start : start + _STEP]
            if self._parts is not None:
                piece = piece.astype(np.complex128 if piece.dtype.itemsize > 8 else np.complex64, copy=False)
                self._parts.add(piece.view(np.float64 if piece.dtype.itemsize > 8 else np.float32))
                with np.errstate(all="ignore"):
                    piece = np.abs(piece)
            self._sums.add(piece)

    def figures(self) -> Figures:
        if self._few is not None and self._counts is not None and self._counts.any():
            there = np.flatnonzero(self._counts)
            self._sums.add(self._few.numbers[there].astype(_image(self._is_float)), self._counts[there])
        found = self._sums.figures()
        if self._parts is None:
            return found
        parts = self._parts.figures()
        return found._replace(neginf=0, subnormal=parts.subnormal, exponents=parts.exponents, hash=parts.hash)


def _image(is_float: bool) -> Any:
    """What the hash is taken of: narrow floats as float32, whole numbers as float64."""
    return np.float32 if is_float else np.float64


class _Sums:
    """Figures of numbers that come in pieces, each of them as often as `times` says."""

    def __init__(self, tiny: float, is_float: bool) -> None:
        self._tiny, self._is_float = tiny, is_float
        self._size = self._nan = self._inf = self._neginf = self._zeros = self._subnormal = self._bits = 0
        self._low, self._high = math.inf, -math.inf
        self._total = self._norm = 0.0
        self._exponents = np.zeros(EXPONENTS, np.int64)

    def add(self, numbers: npt.NDArray[Any], times: npt.NDArray[np.int64] | None = None) -> None:
        if not numbers.size:
            return
        if numbers.dtype.kind != "f" or numbers.dtype.itemsize not in (4, 8):
            numbers = numbers.astype(_image(self._is_float))
        elif not numbers.dtype.isnative or not numbers.flags.c_contiguous:
            numbers = np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("="))
        with np.errstate(all="ignore"):
            self._add(numbers, times)

    def _add(self, numbers: npt.NDArray[Any], times: npt.NDArray[np.int64] | None) -> None:
        bits = numbers.view(np.int32 if numbers.dtype.itemsize == 4 else np.int64)
        weighted = bits.astype(np.int64) * times if times is not None else bits
        self._bits += int(np.add.reduce(weighted, dtype=np.int64)) & 0xFFFFFFFF
        self._size += numbers.size if times is None else int(times.sum())
        wide = numbers.astype(np.float64, copy=False)
        if not math.isfinite(float(wide.sum())):
            is_finite = np.isfinite(wide)
            self._nan += _count(np.isnan(wide), times)
            self._inf += _count(np.isinf(wide), times)
            self._neginf += _count(wide == -math.inf, times)
            numbers, wide, bits = numbers[is_finite], wide[is_finite], bits[is_finite]
            times = times[is_finite] if times is not None else None
            if not wide.size:
                return
        self._low, self._high = min(self._low, float(wide.min())), max(self._high, float(wide.max()))
        self._total += float(wide.sum()) if times is None else float(np.dot(wide, times))
        self._norm = math.hypot(self._norm, _norm(wide, times))
        is_zero = wide == 0
        self._zeros += _count(is_zero, times)
        if self._is_float:
            self._count_exponents(numbers, bits, is_zero, times)

    def _count_exponents(
        self,
        numbers: npt.NDArray[Any],
        bits: npt.NDArray[Any],
        is_zero: npt.NDArray[np.bool_],
        times: npt.NDArray[np.int64] | None,
    ) -> None:
        mantissa, top, middle = (23, 255, 127) if numbers.dtype.itemsize == 4 else (52, 2047, 1023)
        fields = (bits >> mantissa) & top
        counted = np.bincount(fields, times, minlength=top + 1).astype(np.int64)
        counted[0] -= _count(is_zero, times)
        least = 1 if self._tiny == 0 else round(math.log2(self._tiny)) + middle
        if least < 1:  # its own least normal number lies below that of float32, as of float8_e8m0
            least = 1
        self._subnormal += int(counted[:least].sum())
        counted[:least] = 0
        spans = np.clip((np.arange(top + 1) - middle - LOWEST) // WIDTH, 0, EXPONENTS - 1)
        self._exponents += np.bincount(spans, counted, minlength=EXPONENTS).astype(np.int64)

    def figures(self) -> Figures:
        finite = self._size - self._nan - self._inf
        is_odd = bool(self._nan or self._inf)
        found = Figures(
            size=self._size,
            nan=self._nan,
            inf=self._inf,
            neginf=self._neginf,
            zeros=self._zeros,
            subnormal=self._subnormal,
            exponents=tuple(self._exponents.tolist()) if self._exponents.any() else (),
        )
        if not self._size:
            return found
        ends = (self._nan, self._inf) if is_odd else (self._low, self._high)
        found = found._replace(hash=content(self._bits, *ends))
        if not finite:
            return found
        return found._replace(
            min=self._low,
            max=self._high,
            mean=self._total / finite,
            norm=self._norm,
            rms=self._norm / math.sqrt(finite),
        )


def _count(which: npt.NDArray[np.bool_], times: npt.NDArray[np.int64] | None) -> int:
    return int(np.count_nonzero(which)) if times is None else int(times[which].sum())


def _norm(numbers: npt.NDArray[np.float64], times: npt.NDArray[np.int64] | None) -> float:
    squares = float(np.dot(numbers, numbers)) if times is None else float(np.dot(numbers * numbers, times))
    if 1e-280 < squares < math.inf:
        return math.sqrt(squares)
    largest = float(np.abs(numbers).max())  # the squares are out of range, though the numbers are not
    if not largest:
        return 0.0
    scaled = numbers / largest
    total = float(np.dot(scaled, scaled)) if times is None else float(np.dot(scaled * scaled, times))
    return math.sqrt(total) * largest
