"""Arrow tables to bytes and back, through arro3."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import arro3.core as ac
import numpy as np
import numpy.typing as npt

from opscope.errors import BadInput

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


def to_list(array: ac.Array) -> list[Any]:
    return cast("list[Any]", array.to_pylist())


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
            from arro3.io import read_ipc

            self.table = read_ipc(io.BytesIO(data)).read_all()
        except BaseException as error:  # a Rust panic is not an Exception
            if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
                raise
            raise BadInput(f"member {name} is not a readable Arrow table ({_first_line(error)})") from None

    def __len__(self) -> int:
        return self.table.num_rows

    def ints(self, column: str, dtype: type[np.generic] = np.int32) -> npt.NDArray[Any]:
        """A numeric column: the bytes of the file, not copied where the file has one batch."""
        array = self.array(column)
        if array.null_count:
            raise BadInput(f"member {self.name}: column {column!r} has {array.null_count} nulls")
        values = cast("npt.NDArray[Any]", array.to_numpy())
        if values.dtype != dtype:
            raise BadInput(f"member {self.name}: column {column!r} is {values.dtype}, not {np.dtype(dtype)}")
        values.flags.writeable = False
        return values

    def texts(self, column: str) -> list[str]:
        return to_list(self.text_array(column))

    def text_array(self, column: str) -> ac.Array:
        array = self.array(column)
        if array.type != ac.DataType.utf8() or array.null_count:
            raise BadInput(f"member {self.name}: column {column!r} is not a column of text without nulls")
        return array

    def array(self, column: str) -> ac.Array:
        if column not in self.table.column_names:
            raise BadInput(
                f"member {self.name}: column {column!r} is missing (found: {', '.join(self.table.column_names)})"
            )
        chunks = self.table.column(column)
        return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
