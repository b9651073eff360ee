"""tests/dtypes.json names every dtype of this Hidet, with the bits that Hidet says."""

from __future__ import annotations

import json
from pathlib import Path

from hidet.ir import dtypes

KNOWN = json.loads((Path(__file__).parent.parent / "dtypes.json").read_text(encoding="utf-8"))["hidet"]


def test_no_dtype_is_missing() -> None:
    sizes = {name: dtype.nbits for name, dtype in dtypes.name2dtype.items()}
    assert {name: KNOWN[name] for name in sizes} == sizes
