"""tests/dtypes.json names every dtype of this Paddle, with the bits that Paddle says."""

from __future__ import annotations

import json
from pathlib import Path

import paddle
from paddle.base import core

KNOWN = json.loads((Path(__file__).parent.parent / "dtypes.json").read_text(encoding="utf-8"))["paddle"]


def test_no_dtype_is_missing() -> None:
    found = [value for value in vars(paddle).values() if isinstance(value, paddle.dtype)]
    sizes = {str(dtype): 8 * core.size_of_dtype(dtype) for dtype in found if str(dtype).startswith("paddle.")}
    assert sizes
    assert {name: KNOWN[name] for name in sizes} == sizes
