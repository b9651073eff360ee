"""5,000 mutations of real files: no traceback, no hang. `make fuzz` runs more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fuzz import MEASURED, run
from fuzz_samples import samples
from mutations import known_changes
from opscope.readers import registry
from opscope.readers.source import Source

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


def test_every_reader_and_every_packing_is_reached_by_changes_that_know_the_format() -> None:
    """A new reader needs a sample in fuzz_samples.py and a change in `mutations.known_changes`."""
    reached: set[str] = set()
    for name, data in samples().items():
        if Path(name).stem in MEASURED:
            continue
        assert known_changes(name, data) or name.endswith(("state_dict.pt", "state_dict_old.pt")), name
        source = Source(name, data=data).unpacked()
        taking = next((reader.NAME for reader in registry.readers() if reader.match(source)), None)
        reached.add(taking or Path(name).suffix)
    assert reached >= {*registry.BUILT_IN, ".zip", ".tar"}
    assert {Path(name).suffix for name in samples()} >= {".gz", ".zst"}
