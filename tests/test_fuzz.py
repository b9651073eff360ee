"""5,000 mutations of real files: no traceback, no hang. `make fuzz` runs more."""

from __future__ import annotations

from collections import Counter

import pytest

from fuzz import run

RUNS = 5_000
PARTS = 4  # so that pytest-xdist can share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_files_are_read_or_refused(part: int) -> None:
    counts: Counter[str] = Counter()
    for number, name, result in run(RUNS // PARTS, seed=2026 + part):
        assert not result.startswith("FAILED"), f"seed {2026 + part}, run {number}, {name}: {result}"
        counts[result] += 1
    # If nearly all were refused at once, the fuzzing would not reach the readers.
    assert counts["read"] > RUNS // PARTS // 10
    assert counts["refused"] > RUNS // PARTS // 10
