"""tests/dtypes.json names every dtype of this Jittor, with the bits that Jittor says."""

from __future__ import annotations

import json
from pathlib import Path

import jittor as jt

KNOWN = json.loads((Path(__file__).parent.parent / "dtypes.json").read_text(encoding="utf-8"))["jittor"]


def test_no_dtype_is_missing() -> None:
    whole = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    names = ["bool", *whole, "float16", "bfloat16", "float32", "float64"]
    sizes = {name: 8 * jt.NanoString(name).dsize() for name in names}
    assert {name: KNOWN[name] for name in sizes} == sizes
