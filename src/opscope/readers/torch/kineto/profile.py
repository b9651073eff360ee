"""What a profiler saw: calls on the CPU, one inside the other, and the work on devices that they started.

A profile is not a graph: it knows what ran when, and mostly not on what.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.ir.columns import Int8, Int32

Floats = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

# What a call is: an operator of the framework, a named region, a Python function, a call of the device's library.
CALL_KINDS = ("operator", "region", "python", "launch")
# What a device did.
WORK_KINDS = ("kernel", "copy", "set")
OPERATOR, REGION, PYTHON, LAUNCH = range(len(CALL_KINDS))
KERNEL, COPY, SET = range(len(WORK_KINDS))


@dataclass(frozen=True, eq=False)
class Calls:
    """What ran on the CPU, in the order of its beginning within each thread. Times are in microseconds."""

    name: Int32  # into `Profile.names`
    kind: Int8  # into CALL_KINDS
    thread: Int32  # into `Profile.threads`
    start: Floats
    duration: Floats
    parent: Int32  # the call around it; -1: none
    ident: Int64  # by which work on a device names it; -1: none
    record: Int64  # its number in an execution trace of the same run; -1: none
    sequence: Int64  # joins a forward operator to its backward; -1: none
    shapes: Int32  # into `Profile.names`: the shapes of its inputs, as JSON; 0: not known

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, eq=False)
class Work:
    """What ran on devices, in the order of its beginning. Times are in microseconds."""

    name: Int32
    kind: Int8  # into WORK_KINDS
    device: Int32
    stream: Int32
    start: Floats
    duration: Floats
    call: Int32  # the operator or region that started it; -1: not known
    launch: Int32  # the call of the device's library that started it; -1: not known
    attrs: Int32  # into `Profile.attr_sets`

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, eq=False)
class Profile:
    """A measured run of one process."""

    format: str
    names: list[str]
    threads: list[str]
    calls: Calls
    work: Work
    attr_sets: list[dict[str, Any]]
    devices: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # as the profiler describes them
    rank: int | None = None
    world: int | None = None
    warnings: tuple[str, ...] = ()

    def text(self, column: Int32, row: int) -> str:
        """What a column of numbers of names says."""
        return self.names[int(column[row])]

    @property
    def kernels(self) -> Int32:
        """The rows of `work` that are kernels: not copies, and not the setting of memory."""
        return np.flatnonzero(self.work.kind == KERNEL).astype(np.int32)
