"""3,000 mutations of Paddle's files: bytes, words, JSON values. No traceback, no hang."""

from __future__ import annotations

from collections import Counter

import pytest

from fuzz import run
from fuzz_samples import paddle_samples

RUNS = 3_000
PARTS = 3  # so that pytest-xdist can share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_files_are_read_or_refused(part: int) -> None:
    counts: Counter[str] = Counter()
    for number, name, result in run(RUNS // PARTS, seed=6026 + part, found=paddle_samples()):
        assert not result.startswith("FAILED"), f"seed {6026 + part}, run {number}, {name}: {result}"
        counts[result] += 1
    assert counts["read"] > RUNS // PARTS // 10
    assert counts["refused"] > RUNS // PARTS // 30
