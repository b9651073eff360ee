"""Mutations of Hidet's files: bytes, JSON values, words of the printed text. No traceback, no hang."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from fuzz import attempt, run
from fuzz_samples import hidet_samples
from mutations import mutate_code

RUNS = 3_000
PARTS = 2  # so that pytest-xdist can share the work


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_files_are_read_or_refused(part: int) -> None:
    counts: Counter[str] = Counter()
    for number, name, result in run(RUNS // PARTS, seed=6026 + part, found=hidet_samples()):
        assert not result.startswith("FAILED"), f"seed {6026 + part}, run {number}, {name}: {result}"
        counts[result] += 1
    assert counts["read"] > RUNS // PARTS // 10
    assert counts["refused"] > RUNS // PARTS // 10


def test_mutated_words_of_printed_graphs() -> None:
    texts = {name: data.decode() for name, data in hidet_samples().items() if name.endswith(".txt")}
    counts: Counter[str] = Counter()
    for number in range(1_500):
        rng = random.Random(number)
        name = rng.choice(sorted(texts))
        counts[attempt(name, mutate_code(texts[name], rng).encode("utf-8", "surrogatepass"))] += 1
    assert counts["read"] > 200
    assert counts["refused"] > 200
