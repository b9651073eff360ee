"""Figures of tensors on a device: one kernel each, into a row of memory that was taken beforehand, fetched at the end.

Where Triton is missing, several operators of PyTorch compute the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.ir.measurements import EXPONENTS, LOWEST, WIDTH, Figures, content

from .figures_kernel import BLOCK, COUNTS, PROGRAMS, kernel

_ROWS = 1 << 12  # of a block of memory: 2 MB

Integers = npt.NDArray[np.int64]


class OnDevice:
    """Takes tensors of one device, and gives figures by value."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch, self._device = torch, device
        self._fused = _Fused(torch, device) if device.type == "cuda" and kernel() is not None else None
        self._plain = _Plain(torch, device)
        self._sizes: dict[int, int] = {}

    def take(self, value: int, tensor: Any) -> None:
        self._sizes[value] = tensor.numel()
        if not self._sizes[value]:
            return
        if self._fused is not None:
            try:
                self._fused.take(value, tensor)
                return
            except Exception:  # a compiler, a driver or a type that Triton cannot do
                if not self._fused.row_of:
                    self._fused = None
        self._plain.take(value, tensor)

    def finish(self) -> dict[int, Figures]:
        found = {value: Figures(size=0) for value, size in self._sizes.items() if not size}
        if self._fused is not None:
            found |= self._fused.finish(self._sizes)
        return found | self._plain.finish(self._sizes)


class _Fused:
    """One launch for each tensor, of whatever type."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch, self._device = torch, device
        self._launch = kernel()
        self._blocks: list[tuple[Any, Any]] = []
        self._next = _ROWS
        self._is_complex: set[int] = set()
        self._whole: set[int] = set()
        self.row_of: dict[int, int] = {}
        # Smallest normal numbers: what lies below, in a tensor of this type, is subnormal.
        self._tiny = {
            dtype: float(torch.finfo(dtype).tiny)
            for name in ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                         "float8_e4m3fnuz", "float8_e5m2fnuz")
            if (dtype := getattr(torch, name, None)) is not None
        }  # fmt: skip
        self._small = {torch.float32, torch.float16, torch.bfloat16}
        self._capturing = getattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        self._is_only = device.type != "cuda" or torch.cuda.device_count() == 1

    def take(self, value: int, tensor: Any) -> None:
        torch = self._torch
        if self._device.type == "cuda" and self._capturing():
            return  # a launch would become a part of the CUDA graph
        dtype = tensor.dtype
        tiny = self._tiny.get(dtype, 0.0)
        if dtype in self._small:
            is_wide = False
        elif tensor.is_complex():
            self._is_complex.add(value)
            tensor = tensor.abs()
            is_wide = tensor.dtype == torch.float64
        elif tensor.is_floating_point():
            is_wide = dtype == torch.float64
            tensor = tensor if is_wide else tensor.to(torch.float32)
        else:
            is_wide = True
            self._whole.add(value)
            tensor = tensor.view(torch.uint8) if dtype == torch.bool else tensor
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        if self._next == _ROWS:
            self._grow()
        sums, counts = self._blocks[-1]
        count = tensor.numel()
        given = min(-(-count // BLOCK), PROGRAMS), tensor, sums, counts, self._next, count, tiny, is_wide
        if not self._is_only and torch.cuda.current_device() != self._device.index:
            with torch.cuda.device(self._device):
                self._launch(*given)
        else:
            self._launch(*given)
        self.row_of[value] = (len(self._blocks) - 1) * _ROWS + self._next
        self._next += 1

    def _grow(self) -> None:
        torch = self._torch
        sums = torch.zeros(_ROWS, 2, dtype=torch.float64, device=self._device)
        counts = torch.zeros(_ROWS, COUNTS + EXPONENTS, dtype=torch.int64, device=self._device)
        counts[:, COUNTS - 2] = (1 << 63) - 1
        counts[:, COUNTS - 1] = -(1 << 63)
        self._blocks.append((sums, counts))
        self._next = 0

    def finish(self, sizes: dict[int, int]) -> dict[int, Figures]:
        if not self._blocks:
            return {}
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)
        rows = list(self.row_of.values())
        sums = np.concatenate([block.cpu().numpy() for block, _ in self._blocks])[rows]
        counts = np.concatenate([block.cpu().numpy() for _, block in self._blocks])[rows]
        ends = _numbers(counts[:, COUNTS - 2 : COUNTS])
        each = zip(
            self.row_of,
            counts[:, : COUNTS - 2].tolist(),
            ends.tolist(),
            sums.tolist(),
            counts[:, COUNTS:].tolist(),
            strict=True,
        )
        found: dict[int, Figures] = {}
        for value, numbers, lowest_highest, total, exponents in each:
            figures = _figures(sizes[value], numbers, lowest_highest, total, exponents)
            if value in self._is_complex:  # the magnitudes have other bits and exponents
                figures = figures._replace(hash="", exponents=())
            found[value] = figures._replace(exponents=(), sampled=False) if value in self._whole else figures
        return found


def _numbers(keys: Integers) -> npt.NDArray[np.float64]:
    """Whole numbers in the order of the numbers that they stand for -> these."""
    return (keys ^ ((keys >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


def _figures(size: int, counts: list[int], ends: list[float], sums: list[float], exponents: list[int]) -> Figures:
    nan, inf, negative, zeros, subnormal, bits = counts
    finite = size - nan - inf
    (low, high), (total, squares) = ends, sums
    norm = math.sqrt(squares) if squares >= 0 else math.nan
    return Figures(
        size=size,
        nan=nan,
        inf=inf,
        neginf=negative,
        zeros=zeros,
        subnormal=subnormal,
        min=low if finite else math.nan,
        max=high if finite else math.nan,
        mean=total / finite if finite else math.nan,
        norm=norm if finite else math.nan,
        rms=norm / math.sqrt(finite) if finite else math.nan,
        hash=content(bits, nan, inf) if nan or inf else content(bits, low, high),
        exponents=tuple(exponents) if any(exponents) else (),
        sampled=size > BLOCK * PROGRAMS,
    )


def _whole(numbers: npt.NDArray[np.float64]) -> list[int]:
    return numbers.astype(np.int64).tolist()


class _Plain:
    """The same in operators of PyTorch: no number is looked at before the end."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self._fraction = torch.float32 if device.type == "mps" else torch.float64
        self._rows: list[Any] = []
        self._values: list[int] = []
        self._floats: set[int] = set()
        self._is_complex: set[int] = set()

    def take(self, value: int, tensor: Any) -> None:
        torch, fraction = self._torch, self._fraction
        numbers = tensor.abs() if tensor.is_complex() else tensor
        tiny = float(torch.finfo(tensor.dtype).tiny) if tensor.is_floating_point() else 0.0
        if tensor.is_floating_point():
            self._floats.add(value)
        if tensor.is_complex():
            self._is_complex.add(value)
        if numbers.dtype not in (torch.float32, torch.float64):
            numbers = numbers.to(torch.float32 if numbers.is_floating_point() else fraction)
        is_finite = torch.isfinite(numbers)
        finite = torch.where(is_finite, numbers, 0)
        is_zero = numbers == 0
        is_subnormal = (finite.abs() < tiny) & ~is_zero & is_finite
        bits = numbers.contiguous().view(torch.int32 if numbers.dtype == torch.float32 else torch.int64)
        figures = (
            torch.isnan(numbers).sum(),
            torch.isinf(numbers).sum(),
            (numbers == -math.inf).sum(),
            is_zero.sum(),
            is_subnormal.sum(),
            bits.sum(dtype=torch.int64) & 0xFFFFFFFF,
            torch.where(is_finite, numbers, math.inf).amin(),
            torch.where(is_finite, numbers, -math.inf).amax(),
            finite.sum(dtype=fraction),
            finite.to(fraction).square().sum(),
        )
        exponents = torch.frexp(finite)[1].to(torch.float32) - 1
        ranges = torch.clamp((exponents - LOWEST) / WIDTH, 0, EXPONENTS - 1).floor()
        ranges = torch.where(is_zero | is_subnormal | ~is_finite, -1.0, ranges)  # these have no exponent of their own
        counts = torch.histc(ranges, bins=EXPONENTS, min=0, max=EXPONENTS)
        row = torch.cat([torch.stack([figure.to(fraction) for figure in figures]), counts.to(fraction)])
        self._rows.append(row)
        self._values.append(value)

    def finish(self, sizes: dict[int, int]) -> dict[int, Figures]:
        if not self._rows:
            return {}
        rows = self._torch.stack(self._rows).cpu().double().numpy()
        found: dict[int, Figures] = {}
        for value, row in zip(self._values, rows, strict=True):
            figures = _figures(sizes[value], _whole(row[:6]), row[6:8].tolist(), row[8:10].tolist(), _whole(row[10:]))
            figures = figures._replace(sampled=False)
            if value not in self._floats:
                figures = figures._replace(exponents=())
            found[value] = figures._replace(hash="") if value in self._is_complex else figures
        return found
