"""Statistics of weights that come in pieces, of every dtype."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opscope.ir.codes import codes
from opscope.ir.dtypes import DTYPES
from opscope.ir.measurements import EXPONENTS, LOWEST, WIDTH
from opscope.ir.tally import figures_of

NUMBERS = np.random.default_rng(3).normal(size=5000)


@pytest.mark.parametrize(
    ("dtype", "code", "number"),
    [
        ("bfloat16", 0x3FC0, 1.5),
        ("float16", 0x7C00, math.inf),
        ("float16", 0x0001, 2.0**-24),
        ("float8_e4m3fn", 0x7E, 448.0),
        ("float8_e4m3fn", 0x7F, math.nan),
        ("float8_e4m3fnuz", 0x80, math.nan),
        ("float8_e5m2", 0xFC, -math.inf),
        ("float8_e5m2fnuz", 0x7F, 57344.0),
        ("float8_e3m4", 0x6F, 15.5),
        ("float8_e8m0fnu", 0x7F, 1.0),
        ("float6_e2m3fn", 0x1F, 7.5),
        ("float6_e3m2fn", 0x1F, 28.0),
        ("float4_e2m1fn", 0x7, 6.0),
        ("int4", 0x8, -8.0),
        ("uint2", 0x3, 3.0),
        ("int8", 0xFF, -1.0),
    ],
)
def test_codes(dtype: str, code: int, number: float) -> None:
    found = codes(dtype)
    assert found is not None
    assert found.numbers[code] == number or (math.isnan(number) and math.isnan(found.numbers[code]))


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "u1", "i2", "i4", "i8", "u8", "c8", "c16"])
@pytest.mark.parametrize("big", [False, True])
def test_against_numpy(kind: str, big: bool) -> None:
    numbers = (NUMBERS * 50).astype(kind) if kind[0] != "u" else np.abs(NUMBERS * 50).astype(kind)
    names = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
    dtype = f"{names[kind[0]]}{int(kind[1:]) * 8}"
    raw = numbers.astype(np.dtype(kind).newbyteorder(">" if big else "<")).tobytes()
    pieces = [raw[:7], raw[7:8], raw[8:4001], raw[4001:]]  # numbers lie across pieces
    found = figures_of(pieces, dtype, len(numbers), big_endian=big)
    assert found is not None
    wide = np.abs(numbers) if kind[0] == "c" else numbers.astype(np.float64)
    assert found.size == 5000
    assert found.min == pytest.approx(wide.min()) and found.max == pytest.approx(wide.max())
    assert found.mean == pytest.approx(wide.mean(), rel=1e-5, abs=1e-5)
    assert found.rms == pytest.approx(np.sqrt(np.mean(np.square(wide.astype(np.float64)))), rel=1e-5)
    assert found.zeros == np.count_nonzero(numbers == 0)
    decoded = figures_of([numbers[:17], numbers[17:]], dtype)
    assert decoded is not None and decoded.hash == found.hash and decoded.exponents == found.exponents


def test_what_is_not_finite() -> None:
    numbers = np.array([1.0, np.nan, -np.inf, np.inf, 0.0, 1e-40, 3e38], np.float32)
    found = figures_of([numbers.tobytes()], "float32")
    assert found is not None
    assert (found.nan, found.inf, found.neginf, found.zeros, found.subnormal) == (1, 2, 1, 1, 1)
    assert (found.min, found.max) == (0.0, float(np.float32(3e38)))
    assert found.rms == pytest.approx(3e38 / math.sqrt(4), rel=1e-6)
    assert found.exponents[(0 - LOWEST) // WIDTH] == 1 and sum(found.exponents) == 2
    assert len(found.exponents) == EXPONENTS
    only = figures_of([np.array([np.nan])], "float64")
    assert only is not None and only.nan == 1 and math.isnan(only.max)


def test_huge_and_tiny_numbers() -> None:
    for size in (1e200, 1e-200):
        found = figures_of([np.full(100_000, size)], "float64")
        assert found is not None and found.rms == pytest.approx(size)


def test_padding_and_shared_bytes() -> None:
    found = figures_of([bytes([0x21, 0x8F])], "int4", 3)  # 1, 2, -1, and -8 is padding
    assert found is not None and (found.size, found.min, found.max) == (3, -1.0, 2.0)
    six = figures_of([bytes([0b00011111, 0, 0])], "float6_e2m3fn", 1)
    assert six is not None and six.max == 7.5
    two = figures_of([bytes([0x72])], "float4_e2m1fn_x2", 1)  # one element of two numbers
    assert two is not None and (two.size, two.min, two.max) == (2, 1.0, 6.0)


def test_every_dtype_is_known_or_refused() -> None:
    for dtype in DTYPES:
        found = figures_of([bytes(48)], dtype.name)
        is_plain = dtype.family in ("float", "int", "uint", "bool", "complex")
        if found is None:
            assert not is_plain or dtype.name in ("float8", "complex32", "bcomplex32"), dtype.name
        else:
            assert is_plain and found.size > 0
            assert found.zeros == found.size or dtype.name == "float8_e8m0fnu"


def test_empty() -> None:
    found = figures_of([], "float32", 0)
    assert found is not None and found.size == 0 and math.isnan(found.mean)
