"""The kernel that computes all figures of a tensor in one pass over it. Triton comes with PyTorch for GPUs."""

# The kernel is Triton's language, in which annotations are not types.
# pyright: basic, reportInvalidTypeForm=false

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

from opscope.ir.measurements import EXPONENTS, LOWEST, WIDTH

BLOCK, PROGRAMS = 1024, 256  # numbers of a step, most programs: each counts exponents in its first step alone
COUNTS = 8  # whole numbers of a row, before those of exponents


tl: Any = None  # triton.language: the kernel's text looks it up here


@functools.cache
def kernel() -> Any:
    """`launch(programs, tensor, sums, counts, row, its numbers, least normal number, is wide)`; None without Triton."""
    global tl
    try:
        triton = importlib.import_module("triton")
        tl = importlib.import_module("triton.language")
    except ImportError:
        return None
    jitted = triton.jit(_figures, do_not_specialize=["row", "n"])

    constants = BLOCK, EXPONENTS, WIDTH, LOWEST
    compiled: dict[Any, Any] = {}

    def launch(
        programs: int, tensor: Any, sums: Any, counts: Any, row: int, size: int, tiny: float, wide: bool
    ) -> None:
        # What Triton asks of every launch takes longer than a small kernel runs: it compiles one for each of these.
        key = tensor.dtype, tensor.device, tiny, tensor.data_ptr() & 15 == 0, size < 1 << 31
        given = tensor, sums, counts, row, size, tiny, wide, *constants
        known = compiled.get(key)
        if known is not None:
            known[(programs, 1, 1)](*given)
            return
        made = jitted[(programs,)](*given)
        if hasattr(made, "__getitem__") and not _TESTED:
            compiled[key] = made

    return launch


_TESTED = os.environ.get("TRITON_INTERPRET") == "1"  # then nothing is compiled


def _figures(
    x, sums, counts, row, n,
    TINY: tl.constexpr, WIDE: tl.constexpr, B: tl.constexpr,
    RANGES: tl.constexpr, SPAN: tl.constexpr, LOW: tl.constexpr,
):  # fmt: skip
    lanes = tl.arange(0, B).to(tl.int64)
    nan = tl.zeros((B,), tl.int32)
    inf = tl.zeros((B,), tl.int32)
    negative = tl.zeros((B,), tl.int32)
    zeros = tl.zeros((B,), tl.int32)
    lost = tl.zeros((B,), tl.int32)
    bits = tl.zeros((B,), tl.int64)
    low = tl.zeros((B,), tl.int64) + 0x7FFFFFFFFFFFFFFF
    high = -low - 1
    total = tl.zeros((B,), tl.float64)
    squares = tl.zeros((B,), tl.float64)
    first = tl.zeros((B,), tl.int32) - 1
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        place = start + lanes
        given = place < n
        loaded = tl.load(x + place, mask=given, other=0)
        wide = loaded.to(tl.float64)
        image = wide.to(tl.int64, bitcast=True)
        power = (image >> 52) & 2047
        is_bad = power == 2047
        is_nan = is_bad & ((image & 0xFFFFFFFFFFFFF) != 0)
        is_zero = given & ((image & 0x7FFFFFFFFFFFFFFF) == 0)
        fine = given & ~is_bad
        is_lost = fine & (tl.abs(wide) < TINY) & ~is_zero
        nan += is_nan.to(tl.int32)
        inf += (is_bad & ~is_nan).to(tl.int32)
        negative += (is_bad & ~is_nan & (image < 0)).to(tl.int32)
        zeros += is_zero.to(tl.int32)
        lost += is_lost.to(tl.int32)
        if WIDE:
            bits += image & 0xFFFFFFFF
        else:
            bits += loaded.to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64)
        key = image ^ ((image >> 63) & 0x7FFFFFFFFFFFFFFF)
        low = tl.where(fine & (key < low), key, low)
        high = tl.where(fine & (key > high), key, high)
        finite = tl.where(fine, wide, 0.0)
        total += finite
        squares += finite * finite
        span = (power.to(tl.int32) - 1023 - LOW) // SPAN
        span = tl.minimum(tl.maximum(span, 0), RANGES - 1)
        is_first = start == tl.program_id(0) * B
        first = tl.where(is_first & fine & ~is_zero & ~is_lost, span, first)
    own = counts + row * (8 + RANGES)
    tl.atomic_add(own + 0, tl.sum(nan.to(tl.int64)))
    tl.atomic_add(own + 1, tl.sum(inf.to(tl.int64)))
    tl.atomic_add(own + 2, tl.sum(negative.to(tl.int64)))
    tl.atomic_add(own + 3, tl.sum(zeros.to(tl.int64)))
    tl.atomic_add(own + 4, tl.sum(lost.to(tl.int64)))
    tl.atomic_add(own + 5, tl.sum(bits))
    tl.atomic_min(own + 6, tl.min(low))
    tl.atomic_max(own + 7, tl.max(high))
    tl.atomic_add(sums + row * 2, tl.sum(total))
    tl.atomic_add(sums + row * 2 + 1, tl.sum(squares))
    # What has no exponent is counted behind the others.
    spans = tl.arange(0, 2 * RANGES)
    found = tl.histogram(tl.where(first < 0, RANGES, first), 2 * RANGES)
    tl.atomic_add(own + 8 + spans, found.to(tl.int64), mask=(spans < RANGES) & (found > 0))
