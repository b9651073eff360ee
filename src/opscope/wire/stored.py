"""Tables beside a graph (facts and measured figures) to Arrow and back.

Numbers and lists are stored as they are; where some are not known, a column of booleans `known <name>` says which ones
are. Text that is not known is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import arro3.core as ac
import numpy as np
import numpy.typing as npt

from opscope.errors import BadInput
from opscope.ir import Column, Table, frozen
from opscope.ir.pools import clean

from .arrow import Columns, ReadTable, to_array

_NUMBERS = ("int8", "int16", "int32", "int64", "float64", "bool")


def table_columns(table: Table) -> Columns:
    columns: dict[str, Any] = {"index": table.index}
    for name, column in table.columns.items():
        columns[f"column {name}"] = _to_arrow(column)
        if not column.known.all() and not _is_text(column):
            columns[f"known {name}"] = column.known
    return columns


def _is_text(column: Column) -> bool:
    return not isinstance(column.values, np.ndarray) and all(isinstance(row, str) for row in column.values)


def _to_arrow(column: Column) -> ac.Array | npt.NDArray[Any]:
    values = column.values
    if isinstance(values, np.ndarray):
        return values if values.dtype.name in _NUMBERS else values.astype(_wide(values.dtype))
    if not _is_text(column):
        return _lists(cast("Sequence[Sequence[float]]", values))
    texts = cast("Sequence[str]", values)
    rows = [clean(row) if known else None for row, known in zip(texts, column.known, strict=True)]
    return ac.Array(rows, type=ac.DataType.utf8())


def _wide(dtype: np.dtype[Any]) -> type[np.generic]:
    """What a column of another width is stored as."""
    return np.float64 if dtype.kind == "f" else np.bool_ if dtype.kind == "b" else np.int64


def _lists(rows: Sequence[Sequence[float]]) -> ac.Array:
    flat = [number for row in rows for number in row]
    start = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(row) for row in rows], out=start[1:])
    whole = bool(flat) and all(isinstance(number, int) for number in flat)
    return ac.list_array(to_array(start), to_array(np.array(flat, dtype=np.int32 if whole else np.float64)))


def read_table(read: ReadTable, stage: int, by: str, units: dict[str, str], fact: str) -> Table:
    columns = {name: _from_arrow(read, name, unit) for name, unit in units.items()}
    return Table(stage, by, frozen(read.ints("index")), columns, fact)


def _from_arrow(read: ReadTable, name: str, unit: str) -> Column:
    column = read.column(f"column {name}")
    if column.kind == "text":
        rows = column.rows()
        return Column([row or "" for row in rows], np.array([row is not None for row in rows], dtype=bool), unit)
    if column.kind == "list":
        return Column([row or [] for row in column.rows()], _known(read, name), unit)
    if column.kind not in _NUMBERS:
        raise BadInput(f"member {read.name}: column {name!r} is {column.kind}, which no table holds")
    if column.has_nulls:  # files of version 1, and what other tools write
        rows = column.rows()
        known = np.array([row is not None for row in rows], dtype=bool)
        return Column(np.array([0 if row is None else row for row in rows], dtype=column.kind), known, unit)
    return Column(column.numbers(), _known(read, name), unit)


def _known(read: ReadTable, name: str) -> npt.NDArray[np.bool_]:
    label = f"known {name}"
    return read.ints(label, np.bool_) if label in read.names else np.ones(len(read), dtype=bool)
