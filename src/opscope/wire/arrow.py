"""Arrow tables to bytes, through arro3, and back: `ipc` reads what comes from a file, with every length checked."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import arro3.core as ac
import numpy as np
import numpy.typing as npt

from opscope.errors import BadInput

from . import ipc

Columns: TypeAlias = Mapping[str, "npt.NDArray[Any] | Sequence[str] | ac.Array"]


def to_table(columns: Columns) -> ac.Table:
    """A table from numpy arrays (not copied), lists of strings and Arrow arrays."""
    return ac.Table.from_pydict({name: to_array(values) for name, values in columns.items()})


def to_array(values: npt.NDArray[Any] | Sequence[str] | ac.Array) -> ac.Array:
    if isinstance(values, ac.Array):
        return values
    if isinstance(values, np.ndarray):
        # arro3 0.8, the last one for Python 3.10, takes no empty array.
        return (
            ac.Array.from_numpy(values) if len(values) else ac.Array.from_numpy(np.zeros(1, values.dtype)).slice(0, 0)
        )
    return ac.Array(values, type=ac.DataType.utf8())


def to_bytes(table: ac.Table) -> bytes:
    from arro3.io import write_ipc

    buffer = io.BytesIO()
    # Not compressed: the zip member around it is, and flechette (the page) reads no LZ4.
    write_ipc(table, buffer, compression=None)
    return buffer.getvalue()


class ReadTable:
    """A table from a file, its columns checked for the type that is asked for."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        try:
            self._table = ipc.Table(data)
        except BadInput as error:
            raise BadInput(f"member {name} is not a readable Arrow table: {error}") from None

    def __len__(self) -> int:
        return self._table.length

    @property
    def names(self) -> list[str]:
        return self._table.names

    def ints(self, name: str, dtype: type[np.generic] = np.int32) -> npt.NDArray[Any]:
        """A numeric column: the bytes of the file, not copied where the file has one batch."""
        column = self.column(name)
        if column.has_nulls:
            raise BadInput(f"member {self.name}: column {name!r} has nulls")
        if column.kind != np.dtype(dtype).name:
            raise BadInput(f"member {self.name}: column {name!r} is {column.kind}, not {np.dtype(dtype)}")
        values = column.numbers()
        values.flags.writeable = False
        return values

    def texts(self, name: str) -> list[str]:
        return self.text_column(name).rows()

    def text_column(self, name: str) -> ipc.Column:
        """A column of text, whose rows are made when they are asked for."""
        column = self.column(name)
        if column.kind != "text" or column.has_nulls:
            raise BadInput(f"member {self.name}: column {name!r} is not a column of text without nulls")
        return column

    def column(self, name: str) -> ipc.Column:
        column = self._table.column(name)
        if column is None:
            raise BadInput(f"member {self.name}: column {name!r} is missing (found: {', '.join(self._table.names)})")
        return column
