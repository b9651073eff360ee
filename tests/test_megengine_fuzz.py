"""5,000 mutations of MegEngine's files: flipped bits, cut off, offsets and sizes near 2^32. No traceback, no hang."""

from __future__ import annotations

from collections import Counter

import pytest

from fuzz import run
from fuzz_samples import megengine_samples

RUNS = 5_000
PARTS = 2  # so that pytest-xdist can share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_files_are_read_or_refused(part: int) -> None:
    counts: Counter[str] = Counter()
    for number, name, result in run(RUNS // PARTS, seed=5026 + part, found=megengine_samples()):
        assert not result.startswith("FAILED"), f"seed {5026 + part}, run {number}, {name}: {result}"
        counts[result] += 1
    assert counts["read"] > RUNS // PARTS // 10
    assert counts["refused"] > RUNS // PARTS // 10
