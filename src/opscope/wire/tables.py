"""Stored tables (measured figures) to Arrow and back. What is not known is null there."""

from __future__ import annotations

from typing import Any

import arro3.core as ac
import numpy as np

from opscope.errors import BadInput
from opscope.ir import Column, Table
from opscope.ir.columns import frozen

from .arrow import Columns, ReadTable, to_array, to_list

_ARROW = {"f": ac.DataType.float64(), "i": ac.DataType.int64(), "b": ac.DataType.bool()}
_NUMPY: dict[str, Any] = {"f": np.float64, "i": np.int64, "b": np.bool_}


def table_columns(table: Table) -> Columns:
    columns: dict[str, Any] = {"index": table.index}
    for name, column in table.columns.items():
        columns[f"column {name}"] = _to_arrow(column)
    return columns


def _to_arrow(column: Column) -> ac.Array:
    values = column.values
    if isinstance(values, np.ndarray):
        wide = values.astype(_NUMPY[values.dtype.kind])
        if column.known.all():
            return to_array(wide)
        rows = [value if known else None for value, known in zip(wide.tolist(), column.known, strict=True)]
        return ac.Array(rows, type=_ARROW[values.dtype.kind])
    if any(not isinstance(row, str) for row in values):
        flat = [float(x) for row in values for x in row]
        start = np.zeros(len(values) + 1, dtype=np.int32)
        np.cumsum([len(row) for row in values], out=start[1:])
        return ac.list_array(to_array(start), to_array(np.array(flat, dtype=np.float64)))
    rows = [row if known else None for row, known in zip(values, column.known, strict=True)]
    return ac.Array(rows, type=ac.DataType.utf8())


def read_table(read: ReadTable, stage: int, by: str, units: dict[str, str]) -> Table:
    columns = {name: _from_arrow(read, name, unit) for name, unit in units.items()}
    return Table(stage, by, frozen(read.ints("index")), columns)


def _from_arrow(read: ReadTable, name: str, unit: str) -> Column:
    array = read.array(f"column {name}")
    rows = to_list(array)
    known = np.array([row is not None for row in rows], dtype=bool)
    if array.type == ac.DataType.utf8():
        return Column([row or "" for row in rows], known, unit)
    if ac.DataType.is_list(array.type):
        return Column([row or [] for row in rows], known, unit)
    for kind, arrow_type in _ARROW.items():
        if array.type == arrow_type:
            return Column(np.array([0 if row is None else row for row in rows], dtype=_NUMPY[kind]), known, unit)
    raise BadInput(f"member {read.name}: column {name!r} has the type {array.type}, which no table holds")
