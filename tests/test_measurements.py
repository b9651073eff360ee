"""Statistics of tensors and the tables that all frameworks store them in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opscope.ir.measurements import MOST_NUMBERS, measured, statistics_of, times_table, values_table

ORDINARY = st.floats(-1e6, 1e6, allow_subnormal=False, width=32)


@given(hnp.arrays(np.float32, st.integers(1, 200), elements=ORDINARY))
def test_statistics_are_those_of_double_precision(numbers: np.ndarray) -> None:
    exact = numbers.astype(np.float64)
    found = statistics_of(numbers)
    assert (found.min, found.max, found.size) == (exact.min(), exact.max(), exact.size)
    scale = float(np.abs(exact).max())
    assert found.mean == pytest.approx(exact.mean(), rel=1e-5, abs=1e-5 * scale)
    assert found.std == pytest.approx(exact.std(), rel=1e-4, abs=1e-6 * scale)
    assert found.norm == pytest.approx(np.linalg.norm(exact), rel=1e-5)


def test_a_small_deviation_around_a_large_mean_is_seen() -> None:
    numbers = np.array([1000.0, 1000.001, 999.999] * 40_000)
    assert statistics_of(numbers).std == pytest.approx(numbers.std(), rel=1e-6)


def test_what_is_not_finite_is_counted() -> None:
    found = statistics_of(np.array([1.0, math.nan, math.inf, -math.inf], dtype=np.float32))
    assert (found.nan, found.inf) == (1, 2)
    assert math.isnan(found.mean)
    assert math.isnan(found.std)


@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float16", "complex64"])
def test_every_dtype_has_statistics(dtype: str) -> None:
    found = statistics_of(np.array([[1, 0], [0, 1]]).astype(dtype))
    assert found[:5] == pytest.approx((math.sqrt(2), 0, 1, 0.5, 0.5))


def test_of_large_tensors_the_first_numbers_are_kept() -> None:
    large = measured(np.arange(MOST_NUMBERS + 1))
    assert large.numbers == list(range(MOST_NUMBERS))
    assert large.statistics.max == MOST_NUMBERS
    table = values_table(0, {7: large, 5: measured(np.array([]))})
    assert table.index.tolist() == [5, 7]
    assert table.columns["mean"].known.tolist() == [False, True]  # a tensor without numbers has no mean


def test_times_that_are_not_known_are_not_zero() -> None:
    time = times_table(0, "node", range(2), [5.0, 0.0], [True, False]).columns["time"]
    assert (time.unit, time.known.tolist()) == ("ns", [True, False])
