"""Everything that a session saw, before it is a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from opscope.ir.measurements import Figures

from .calls import Call
from .log import FIELDS, Log
from .memory import Memory
from .places import Places
from .schemas import ARGUMENT_NAMES


class StepEnd(NamedTuple):
    """One call of an optimizer's step()."""

    optimizer: int  # id()
    name: str
    cls: str
    began: int  # operators recorded before it
    ended: int


@dataclass(frozen=True)
class Lost:
    """Operators that ran and could not be recorded: the same one, in the same call, for the same reason."""

    op: str
    call: int
    is_backward: bool
    reason: str
    count: int


@dataclass
class Names:
    """What memory is called: by storage and window, and by storage alone where that says enough."""

    places: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    storages: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    owners: dict[int, str] = field(default_factory=dict[int, str])  # storage of a state -> the parameter it is for

    def add(self, place: int, storage: int, name: str, role: str, owner: str = "") -> None:
        self.places.setdefault(place, (name, role))
        self.storages.setdefault(storage, (name, role))
        if owner:
            self.owners.setdefault(storage, owner)


@dataclass
class Account:
    """Everything that a session saw."""

    log: Log
    memory: Memory
    calls: list[Call]
    places: Places
    names: Names
    variables: dict[int, str]
    arguments: list[str]
    outputs: list[int] | None  # None: what the recorded code left behind
    steps: list[StepEnd]
    first_sequence: int
    has_sequences: bool
    version: str
    lost: list[Lost]
    unseen: dict[int, str]  # calls of modules that were not recorded, and why
    threads: list[str]  # what may have run in other threads, unseen, each as a reason
    statistics: dict[int, Figures]  # by value, where they were asked for
    whole: dict[int, list[float]]  # the numbers of values that are kept whole
    unmeasured: dict[str, int]  # why the numbers of values could not be taken, and how often
    rank: tuple[int, int] | None  # which rank of how many it was, if it was one of several
    groups: list[tuple[str, str]]  # of ranks: dimension and ranks
    runs_compiled: bool  # what torch.compile compiled ran compiled; else as it is written


class Columns:
    """The log with its rows as columns."""

    def __init__(self, log: Log) -> None:
        self.schema, self.constant, self.call, self.place, self.state = map(log.column, FIELDS[:5])
        self.sequence, self.node_sequence, self.node_name, self.use_end, self.output_end = map(log.column, FIELDS[5:])
        self.use_value, self.use_argument = log.use_columns()
        self.output_value = log.output_value.tolist()
        self.schemas, self.constants = log.schemas, log.constants
        self.argument_names, self.node_names = ARGUMENT_NAMES, log.node_names
        self.accumulated, self.seconds, self.measured = log.accumulated, log.seconds, log.measured
        self.threads = log.threads
