"""5,000 mutations of PyTorch's files: bytes, whole members, JSON values, words of code. No traceback, no hang."""

from __future__ import annotations

from collections import Counter

import pytest

from fuzz import run
from fuzz_samples import torch_samples

RUNS = 5_000
PARTS = 4  # so that pytest-xdist can share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_files_are_read_or_refused(part: int) -> None:
    counts: Counter[str] = Counter()
    for number, name, result in run(RUNS // PARTS, seed=4026 + part, found=torch_samples()):
        assert not result.startswith("FAILED"), f"seed {4026 + part}, run {number}, {name}: {result}"
        counts[result] += 1
    assert counts["read"] > RUNS // PARTS // 10
    assert counts["refused"] > RUNS // PARTS // 10
