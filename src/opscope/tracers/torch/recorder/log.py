"""What was recorded, as numbers: a row of integers for each operator."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.ir.measurements import Measured

from .schemas import Schema

NO_SEQUENCE = -1
ACCUMULATES = -2  # in `node_sequence`: the operator adds to the gradient of a leaf

# In `state`:
IN_BACKWARD, GRAD_ENABLED = 1, 2

ARGUMENT_BITS = 20  # of a use: the rest is the value

# The fields of a row, by operator. `sequence` is that of the gradient function that the operator gets,
# `node_sequence` and `node` are those of the gradient function that it runs in.
FIELDS = (
    "schema",
    "constant",
    "call",
    "place",
    "state",
    "sequence",
    "node_sequence",
    "node",
    "use_end",
    "output_end",
)
_ROW = 8 * len(FIELDS)  # bytes
_first = struct.Struct("q").unpack_from
_ends = struct.Struct("2q").unpack  # the last two fields
pack = struct.Struct(f"{len(FIELDS)}q").pack


class Log:
    """What was recorded, as numbers."""

    def __init__(self) -> None:
        self.rows = bytearray()  # packing a row and adding its bytes is five times as fast as array.extend
        self.uses = array("q")  # value and argument name in one number, see `use`
        self.output_value = array("i")
        self.schemas: list[Schema] = []
        self.constants: list[tuple[Any, ...]] = []  # arguments that are not tensors: schema, name, value, name, …
        self.node_names: list[str] = [""]
        self.accumulated: dict[int, int] = {}  # operator -> the storage of the leaf whose gradient it adds to
        self.threads: dict[int, int] = {}  # operator -> the thread it ran in, if not the one that records
        self.seconds = array("d")
        self.measured: dict[int, Measured] = {}  # value -> its statistics, on request

    @property
    def count(self) -> int:
        """How many operators were recorded."""
        return len(self.rows) // _ROW

    def drop_unfinished(self) -> None:
        """Forget what was noted of an operator that got no row."""
        uses, outputs = _ends(self.rows[-16:]) if self.rows else (0, 0)
        del self.uses[uses:]
        del self.output_value[outputs:]

    def schemas_since(self, count: int) -> Iterator[Schema]:
        """Of the operators that were recorded since there were `count`."""
        for row in range(count, self.count):
            yield self.schemas[_first(self.rows, row * _ROW)[0]]

    def column(self, name: str) -> list[int]:
        table: npt.NDArray[np.int64] = np.frombuffer(self.rows, dtype=np.int64).reshape(-1, len(FIELDS))
        return table[:, FIELDS.index(name)].tolist()

    def use_columns(self) -> tuple[list[int], list[int]]:
        """The value and the argument name of each use."""
        uses = np.frombuffer(self.uses, dtype=np.int64)
        return (uses >> ARGUMENT_BITS).tolist(), (uses & (1 << ARGUMENT_BITS) - 1).tolist()
