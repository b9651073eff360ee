"""Statistics of every tensor while it is there: computed where the tensor is, kept as a row of numbers.

On the CPU the figures are at hand at once. On another device they are computed there, into a row of a block that was
taken beforehand, and fetched when the recording ends: the program never waits for the device. No tensor is kept.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opscope.ir.measurements import EXPONENTS, Figures

_SAMPLE = 1 << 14  # numbers whose exponents are counted; of more, as many at equal distances
_BLOCK = 1 << 12  # rows of a device's block
_PLAIN = 11  # figures of a row on a device, before the counts of exponents
_LOWEST = -150  # the exponent of the first count; below: with it
_WIDTH = 300 // EXPONENTS + 1


class Statistics:
    """Takes tensors and gives figures by value."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._figures: dict[int, Figures] = {}
        self._blocks: dict[Any, _Block] = {}
        self._unset: set[int] = set()  # storages that hold no numbers yet
        self._whole: dict[int, int] = {}  # storage -> a value that shows all of it, and was not written since

    def made_empty(self, storage: int) -> None:
        """An operator took memory and wrote nothing there: what lies in it is no number of the program's."""
        self._unset.add(storage)

    def take(self, value: int, tensor: Any, storage: int, is_write: bool) -> None:
        """A tensor that an operator made, wrote, or reads for the first time."""
        torch = self._torch
        if is_write:
            self._unset.discard(storage)
        if storage in self._unset:
            return
        if tensor.is_meta or type(tensor).__name__ == "FakeTensor":
            return
        tensor = tensor.detach()
        if tensor.layout is not torch.strided:
            tensor = tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()
        shows_all = _shows_all(tensor)
        known = self._whole.get(storage) if shows_all and not is_write else None
        if is_write:
            self._whole.pop(storage, None)
        if known is not None:  # another view of the same numbers
            self._copy(known, value)
            return
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        if tensor.device.type == "cpu":
            self._figures[value] = _on_cpu(torch, tensor)
        else:
            block = self._blocks.get(tensor.device)
            if block is None:
                block = self._blocks[tensor.device] = _Block(torch, tensor.device)
            block.take(value, tensor)
        if shows_all:
            self._whole[storage] = value

    def _copy(self, known: int, value: int) -> None:
        if known in self._figures:
            self._figures[value] = self._figures[known]
            return
        for block in self._blocks.values():
            if known in block.row_of:
                block.row_of[value] = block.row_of[known]

    def has_nan(self) -> bool:
        """Whether any number so far is NaN; devices are waited for."""
        return any(found.nan for found in self.finish().values())

    def finish(self) -> dict[int, Figures]:
        """The figures by value; now devices are waited for."""
        found = dict(self._figures)
        for block in self._blocks.values():
            found |= block.figures()
        return found


def _shows_all(tensor: Any) -> bool:
    try:
        return tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    except (RuntimeError, NotImplementedError):
        return False


# -- on the CPU -------------------------------------------------------------------------------------------


def _on_cpu(torch: Any, tensor: Any) -> Figures:
    count = tensor.numel()
    content = _content(torch, tensor)
    if not count:
        return Figures(size=0, hash=content)
    if tensor.is_complex():
        parts = torch.view_as_real(tensor.resolve_conj())
        nan = int(torch.isnan(tensor).sum())
        inf = int(torch.isinf(tensor).sum())
        zeros = count - int(torch.count_nonzero(tensor))
        return _finite(torch, tensor.abs(), parts, Figures(size=count, nan=nan, inf=inf, zeros=zeros, hash=content))
    zeros = count - int(torch.count_nonzero(tensor if tensor.element_size() > 1 else tensor.to(torch.float32)))
    if not tensor.is_floating_point():
        numbers = tensor.to(torch.float64)
        return _finite(torch, numbers, None, Figures(size=count, zeros=zeros, hash=content))
    numbers = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float32)
    low, high = (float(bound) for bound in torch.aminmax(numbers))
    if math.isfinite(low) and math.isfinite(high):
        return _finite(torch, numbers, tensor, Figures(size=count, zeros=zeros, hash=content, min=low, max=high))
    nan = int(torch.isnan(numbers).sum())
    negative = int((numbers == -math.inf).sum())
    inf = int(torch.isinf(numbers).sum())
    found = Figures(size=count, nan=nan, inf=inf, neginf=negative, zeros=zeros, hash=content)
    return _finite(torch, numbers[torch.isfinite(numbers)], tensor, found)


def _finite(torch: Any, numbers: Any, exponents_of: Any, found: Figures) -> Figures:
    """The figures of the numbers that are finite."""
    if numbers.numel():
        if math.isnan(found.min):
            low, high = (float(bound) for bound in torch.aminmax(numbers))
            found = found._replace(min=low, max=high)
        total = float(numbers.sum(dtype=torch.float64))
        norm = float(torch.linalg.vector_norm(numbers))
        if not math.isfinite(norm) or (norm == 0 and found.max > found.min):
            norm = float(torch.linalg.vector_norm(numbers, dtype=torch.float64))
        found = found._replace(mean=total / numbers.numel(), norm=norm, rms=norm / math.sqrt(numbers.numel()))
    if exponents_of is None:
        return found
    subnormal, counts, is_sample = _exponents(torch, exponents_of)
    return found._replace(subnormal=subnormal, exponents=counts, sampled=is_sample)


# Of each type of float: the integers of its size, and its bits of mantissa and of exponent.
_BITS = {
    "float64": ("int64", 52, 11),
    "float32": ("int32", 23, 8),
    "float16": ("int16", 10, 5),
    "bfloat16": ("int16", 7, 8),
}


def _exponents(torch: Any, tensor: Any) -> tuple[int, tuple[int, ...], bool]:
    """How many numbers are subnormal, and how many lie in each range of exponents; of a sample, if it is large."""
    name = str(tensor.dtype).removeprefix("torch.")
    lost = 0
    if name not in _BITS:  # what is subnormal in eight bits is not in 32
        wide = tensor.to(torch.float32)
        is_tiny = (wide.abs() < torch.finfo(tensor.dtype).tiny) & (wide != 0)
        lost = int(is_tiny.sum())
        tensor, name = torch.where(is_tiny, 0.0, wide), "float32"
    flat = tensor.reshape(-1) if tensor.is_contiguous() else tensor.contiguous().reshape(-1)
    step = -(-flat.numel() // _SAMPLE)
    if step > 1:
        flat = flat[::step].contiguous()
    whole, mantissa, exponent = _BITS[name]
    bits = flat.view(getattr(torch, whole)).numpy()
    field = (bits >> mantissa) & ((1 << exponent) - 1)
    has_none = field == 0
    subnormal = int((has_none & ((bits & ((1 << mantissa) - 1)) != 0)).sum()) if has_none.any() else 0
    top = (1 << exponent) - 1
    powers = np.bincount(field.astype(np.int64), minlength=top + 1)
    ranges = (np.arange(1, top) - (top // 2) - _LOWEST) // _WIDTH
    counts = np.bincount(np.clip(ranges, 0, EXPONENTS - 1), powers[1:top], minlength=EXPONENTS).astype(np.int64)
    return subnormal + lost, tuple(counts.tolist()), step > 1


def _content(torch: Any, tensor: Any) -> str:
    """A hash of the bits, in any order: equal numbers give equal hashes, whatever their layout in memory."""
    try:
        whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(tensor.element_size())
        if tensor.is_complex():
            bits = torch.view_as_real(tensor.resolve_conj())
            bits = bits.view(torch.int32 if tensor.element_size() == 8 else torch.int64)
        elif whole is None:
            return ""
        else:
            bits = tensor.resolve_neg().view(whole)
        total = int(bits.sum(dtype=torch.int64))
    except (RuntimeError, TypeError, NotImplementedError):
        return ""
    return f"{total & (1 << 64) - 1:016x}"


# -- on another device --------------------------------------------------------------------------------------


class _Block:
    """Rows of figures on one device."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch, self._device = torch, device
        self._full: list[Any] = []
        self._rows: Any = None
        self._next = _BLOCK
        self._fraction = torch.float32 if device.type == "mps" else torch.float64
        self.row_of: dict[int, int] = {}

    def take(self, value: int, tensor: Any) -> None:
        torch = self._torch
        if not tensor.numel():
            return
        if self._next == _BLOCK:
            if self._rows is not None:
                self._full.append(self._rows)
            self._rows = torch.zeros(_BLOCK, _PLAIN + EXPONENTS, dtype=self._fraction, device=self._device)
            self._next = 0
        row = self._rows[self._next]
        self._fill(row, tensor)
        self.row_of[value] = len(self._full) * _BLOCK + self._next
        self._next += 1

    def _fill(self, row: Any, tensor: Any) -> None:
        """Everything on the device: no number is looked at."""
        torch = self._torch
        numbers = tensor.abs() if tensor.is_complex() else tensor
        if numbers.dtype not in (torch.float32, torch.float64):
            numbers = numbers.to(torch.float32)
        is_finite = torch.isfinite(numbers)
        finite = torch.where(is_finite, numbers, 0)
        infinite = torch.full((), math.inf, dtype=numbers.dtype, device=numbers.device)
        exponents = torch.frexp(finite)[1]
        is_zero = finite == 0
        tiny = torch.finfo(tensor.dtype).tiny if tensor.is_floating_point() else 0.0
        is_subnormal = (finite.abs() < tiny) & ~is_zero
        figures = (
            torch.tensor(numbers.numel(), dtype=self._fraction, device=numbers.device),
            torch.isnan(numbers).sum(),
            torch.isinf(numbers).sum(),
            (numbers == -math.inf).sum(),
            is_zero.sum() - (~is_finite).sum(),
            torch.where(is_finite, numbers, infinite).amin(),
            torch.where(is_finite, numbers, -infinite).amax(),
            finite.sum(dtype=self._fraction),
            torch.linalg.vector_norm(finite, dtype=self._fraction),
            is_subnormal.sum(),
            self._hash(tensor),
        )
        torch.stack([figure.to(self._fraction) for figure in figures], out=row[:_PLAIN])
        ranges = torch.clamp((exponents.to(torch.float32) - 1 - _LOWEST) / _WIDTH, 0, EXPONENTS - 1).floor()
        ranges = torch.where(is_zero | is_subnormal, -1.0, ranges)  # these have no exponent of their own
        counts = torch.histc(ranges, bins=EXPONENTS, min=0, max=EXPONENTS)
        row[_PLAIN:].copy_(counts)

    def _hash(self, tensor: Any) -> Any:
        torch = self._torch
        whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(tensor.element_size())
        if whole is None or tensor.is_complex():
            return torch.zeros((), device=tensor.device)
        return tensor.view(whole).sum(dtype=torch.int64) % (1 << 50)  # as many bits as a fraction holds

    def figures(self) -> dict[int, Figures]:
        if self._rows is None:
            return {}
        rows = cast("npt.NDArray[np.float64]", self._torch.cat([*self._full, self._rows]).cpu().double().numpy())
        return {value: _fetched(rows[row]) for value, row in self.row_of.items()}


def _fetched(row: npt.NDArray[np.float64]) -> Figures:
    size, nan, inf, negative, zeros = (int(figure) for figure in row[:5])
    low, high, total, norm = row[5:9].tolist()
    finite = size - nan - inf
    return Figures(
        size=size,
        nan=nan,
        inf=inf,
        neginf=negative,
        zeros=zeros,
        subnormal=int(row[9]),
        min=low if finite else math.nan,
        max=high if finite else math.nan,
        mean=total / finite if finite else math.nan,
        norm=norm,
        rms=norm / math.sqrt(finite) if finite else math.nan,
        hash=f"{int(row[10]):016x}",
        exponents=tuple(int(count) for count in row[_PLAIN:]),
    )
