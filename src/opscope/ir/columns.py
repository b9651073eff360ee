"""Columns: read-only numpy arrays of small integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Int32: TypeAlias = npt.NDArray[np.int32]
Int8: TypeAlias = npt.NDArray[np.int8]


def frozen(values: Sequence[int] | npt.NDArray[Any]) -> Int32:
    """An int32 column that cannot be written to."""
    if isinstance(values, np.ndarray) and not values.flags.writeable and values.dtype == np.int32:
        return np.ascontiguousarray(values)
    column: Int32 = np.array(values, dtype=np.int32)
    column.flags.writeable = False
    return column


def frozen8(values: Sequence[int] | npt.NDArray[Any]) -> Int8:
    """An int8 column that cannot be written to."""
    column = np.array(values, dtype=np.int8)
    column.flags.writeable = False
    return column


def view(column: npt.NDArray[Any]) -> memoryview[int]:
    """A column to read number by number: numpy's own numbers take three times as long. One that lies askew in a file is
    copied: Python does not read that."""
    return np.require(column, requirements="A").data
