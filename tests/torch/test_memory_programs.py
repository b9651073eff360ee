"""Edges through views and writes, against the truth about every byte (memory_programs.py)."""

from __future__ import annotations

import pytest
from memory_programs import Program


@pytest.mark.parametrize("steps", [14, 60])
def test_every_reader_leads_to_all_that_wrote_what_it_reads(steps: int) -> None:
    edges = 0
    for seed in range(6000 // (steps + 10)):
        program = Program(seed, steps)
        assert not program.missing(), f"seed {seed}"
        edges += program.edges()
    assert edges > 500
