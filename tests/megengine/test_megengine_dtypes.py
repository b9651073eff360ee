"""tests/dtypes.json names every dtype of this MegEngine, with the bits that MegEngine says."""

from __future__ import annotations

import json
from pathlib import Path

from megengine.core.tensor import dtype

KNOWN = json.loads((Path(__file__).parent.parent / "dtypes.json").read_text(encoding="utf-8"))["megengine"]


def test_no_dtype_is_missing() -> None:
    assert dtype._builtin_quant_dtypes.keys() <= KNOWN.keys()
    low = {name: dtype.get_dtype_bit(name) for name in ("qint8", "qint32", "quint8", "qint4", "quint4", "qint1")}
    assert {name: KNOWN[name] for name in low} == low
