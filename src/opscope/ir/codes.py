"""What the bytes of a tensor mean: every dtype's bits as numbers, also those that numpy has no type for.

Types of 16 bits or less have few codes, and `numbers_of_codes` gives the number of each. Wider ones are numpy's own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

WIDE = {
    "float32": "f4", "tfloat32": "f4", "float64": "f8", "complex64": "c8", "complex128": "c16",
    "int32": "i4", "int64": "i8", "uint32": "u4", "uint64": "u8",
}  # fmt: skip
_INTEGERS = re.compile(r"(u?)int(\d+)")


class _Layout(NamedTuple):
    """Of a type of float: its bits, what is added to its exponent, and which of its codes are no finite numbers."""

    exponent: int
    mantissa: int
    bias: int
    odd: str  # "ieee": the largest exponent; "fn": a mantissa of ones there is NaN; "fnuz": −0 is NaN; "none": no code


_FLOATS = {
    "float16": _Layout(5, 10, 15, "ieee"),
    "bfloat16": _Layout(8, 7, 127, "ieee"),
    "float8_e3m4": _Layout(3, 4, 3, "ieee"),
    "float8_e4m3": _Layout(4, 3, 7, "ieee"),
    "float8_e4m3fn": _Layout(4, 3, 7, "fn"),
    "float8_e4m3fnuz": _Layout(4, 3, 8, "fnuz"),
    "float8_e4m3b11fnuz": _Layout(4, 3, 11, "fnuz"),
    "float8_e5m2": _Layout(5, 2, 15, "ieee"),
    "float8_e5m2fnuz": _Layout(5, 2, 16, "fnuz"),
    "float6_e2m3fn": _Layout(2, 3, 1, "none"),
    "float6_e3m2fn": _Layout(3, 2, 3, "none"),
    "float4_e2m1fn": _Layout(2, 1, 1, "none"),
}


class Codes(NamedTuple):
    """A dtype of few codes: how many bits one has, the number of each, and the least normal number (0: no float)."""

    bits: int
    numbers: npt.NDArray[np.float64]
    tiny: float


@lru_cache(maxsize=64)
def codes(dtype: str) -> Codes | None:
    """
    >>> codes("float8_e4m3fn").numbers[[0x38, 0x7e]].tolist()
    [1.0, 448.0]
    """
    if dtype == "float4_e2m1fn_x2":  # two numbers in what counts as one element
        dtype = "float4_e2m1fn"
    if dtype == "bool":
        return Codes(8, (np.arange(256) != 0).astype(np.float64), 0.0)
    if dtype == "float8_e8m0fnu":
        powers = np.ldexp(1.0, np.arange(256) - 127)
        return Codes(8, np.where(np.arange(256) == 255, np.nan, powers), 0.0)
    if (layout := _FLOATS.get(dtype)) is not None:
        return _of_floats(layout)
    if (found := _INTEGERS.fullmatch(dtype)) is not None and int(found[2]) <= 16:
        bits = int(found[2])
        numbers = np.arange(1 << bits, dtype=np.float64)
        if not found[1]:
            numbers[1 << (bits - 1) :] -= 1 << bits
        return Codes(bits, numbers, 0.0)
    return None


def _of_floats(layout: _Layout) -> Codes:
    exponent, mantissa, bias, odd = layout
    bits = 1 + exponent + mantissa
    code = np.arange(1 << bits)
    fraction, power = code & ((1 << mantissa) - 1), (code >> mantissa) & ((1 << exponent) - 1)
    is_normal = power > 0
    numbers = np.ldexp(
        np.where(is_normal, fraction + (1 << mantissa), fraction).astype(np.float64),
        np.where(is_normal, power, 1) - bias - mantissa,
    )
    top, ones = (1 << exponent) - 1, (1 << mantissa) - 1
    if odd == "ieee":
        numbers = np.where(power == top, np.where(fraction == 0, np.inf, np.nan), numbers)
    elif odd == "fn":
        numbers = np.where((power == top) & (fraction == ones), np.nan, numbers)
    is_negative = code >> (bits - 1) == 1
    numbers = np.where(is_negative, -numbers, numbers)
    if odd == "fnuz":
        numbers[1 << (bits - 1)] = np.nan
    return Codes(bits, numbers, float(np.ldexp(1.0, 1 - bias)))


def unpacked(data: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[Any]:
    """The codes in bytes; where several share a byte, the lowest bits are the first."""
    if bits == 8:
        return data
    if bits == 16:
        return data.view("<u2")
    if bits == 4:
        return np.stack([data & 15, data >> 4], axis=1).reshape(-1)
    each = np.unpackbits(data, bitorder="little")
    each = each[: each.size - each.size % bits].reshape(-1, bits)
    return np.packbits(each, axis=1, bitorder="little").reshape(-1)
