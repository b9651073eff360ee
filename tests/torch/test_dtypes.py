"""tests/dtypes.json names every dtype of this PyTorch, with the bits that PyTorch says."""

from __future__ import annotations

import json
from pathlib import Path

import torch

KNOWN = json.loads((Path(__file__).parent.parent / "dtypes.json").read_text(encoding="utf-8"))["torch"]


def test_no_dtype_is_missing() -> None:
    found = {str(dtype) for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}
    assert found <= KNOWN.keys()
    # Of the types below a byte torch says how many bytes hold one or several of them.
    for name in found:
        size = 8 * getattr(torch, name.removeprefix("torch.")).itemsize
        assert KNOWN[name] == size or size == 8 > KNOWN[name]
