"""What a tracer is: the one object through which opscope captures a framework.

To add a framework, write a package with `TRACER = Tracer(…)` in its `__init__`, and add one line to
`registry.FRAMEWORKS`. The package is imported when it is first needed; it imports its framework inside functions,
so `import opscope` costs nothing for frameworks that are not in use.

`trace` and `start` are required. Everything else is declared here and optional: where a member is None, opscope
says in one line that the framework does not support it. `refuses` names the options of a recording that the
framework cannot honour, each with the reason; they never reach `start`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import Capture

from .messages import Mailbox
from .session import Session
from .ways import Ways

DEVICE = "device"  # the value of `times` that lets the framework's profiler measure beside the recorder
FULL = "full"  # figures of every tensor, and all numbers of those that `part` chooses
STATISTICS = "stats"  # the value of `values` that keeps figures of every tensor and no numbers
RECORDS = ("auto", "record")  # the values of `how` that record what runs


# Whether an operator, by its name and its modules (name and class of each, the outermost first), is chosen.
Part = Callable[[str, tuple[tuple[str, str], ...]], bool]


@dataclass(frozen=True)
class Options:
    """What one recording was asked for."""

    caller: FrameType  # the user's frame: names are looked up there
    model: Any = None
    optimizer: Any = None
    how: str = "auto"
    values: bool | str = False  # statistics of every tensor, see opscope.record
    part: Part | None = None  # with values="full": the operators whose tensors are kept whole
    times: bool | str = False  # seconds of every operator, see opscope.record
    steps: int | None = None  # end the recording after so many steps of every optimizer
    ends: bool = False  # the program ends when those steps are made
    after_step: Callable[[], None] | None = None  # called after a step without NaN; one with NaN ends the program


class Held(NamedTuple):
    """A parameter of a model, with all its names."""

    names: tuple[str, ...]
    dtype: str
    elements: int
    bytes: int
    is_trained: bool
    is_taken: bool = False  # the model's code took it, whether an operator reads it or not


class Count(NamedTuple):
    """A model run once for its cost."""

    capture: Capture
    held: tuple[Held, ...] = ()
    guesses: tuple[str, ...] = ()  # numbers that the model read and that had to be made up


class Trace(Protocol):
    def __call__(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, how: str, caller: FrameType
    ) -> Capture:
        """Call `target` once and return what it computed, or return a graph that exists already as it is."""
        ...


class TryWays(Protocol):
    def __call__(
        self,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        caller: FrameType,
        keep: bool,
        progress: Callable[[str], None],
    ) -> Ways:
        """Try every way of capturing. `progress` is called with each before it is tried; `keep` keeps the captures."""
        ...


class CountCost(Protocol):
    def __call__(
        self,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        train: bool,
        fake: bool | None,
        caller: FrameType,
    ) -> Count:
        """Run the model once and leave it as it was. `fake`: without numbers; None: as the framework sees fit."""
        ...


class AsRank(Protocol):
    def __call__(
        self, rank: int, world: int, local: int, *, fake: bool, box: Mailbox
    ) -> AbstractContextManager[list[str]]:
        """What runs inside runs as rank `rank` of `world`, with `local` ranks on each machine; `fake`: on tensors
        without numbers. Objects that ranks send each other go through `box`. Gives what a reader should know."""
        ...


@dataclass(frozen=True)
class Tracer:
    """How one framework is captured."""

    name: str  # as its makers write it, for messages
    how: tuple[str, ...]  # the values of `how=`: "auto", the default, "record", and the framework's own
    trace: Trace
    start: Callable[[Options], Session]
    records: tuple[str, ...] = RECORDS  # those of `how` that record a block of code or a script; none: it cannot
    refuses: Mapping[str, str] = field(default_factory=dict[str, str])  # option of a recording -> why not
    passes: Callable[[FrameType], Session] | None = None  # records what each compiler pass does (opscope.passes)
    keeps: bool = False  # it can keep chosen tensors whole (`values="full"`)
    profiles: bool = False  # its profiler can measure beside the recorder (`times="device"`)
    ways: TryWays | None = None  # None: there is only one way
    count: CountCost | None = None  # None: `trace` serves for counting, without train= and fake=
    training: Callable[[Any], Any] | None = None  # a model with its backward pass, as one function (trace --train)
    tensor: Callable[[npt.NDArray[np.generic], str], Any] | None = None  # array and dtype -> tensor (trace --input)
    prepare_ranks: Callable[[], None] | None = None  # imports what ranks need, before processes are forked for them
    as_rank: AsRank | None = None  # one process as any rank of a world without peers; None: it cannot be
    runs_on: tuple[str, ...] = ()  # frameworks that it uses itself: a script that imports both is about this one

    def check_how(self, how: str) -> None:
        if how not in self.how:
            raise OpscopeError(f"how={how!r} is not a way to capture {self.name} (there are: {', '.join(self.how)})")

    def check(self, options: Options) -> None:
        """Raise OpscopeError, with the reason in one line, if this framework cannot record so."""
        how = options.how
        self.check_how(how)
        if how not in self.records:
            raise OpscopeError(
                f"how={how!r} captures a model, not a block of code: opscope.trace(model, x, how={how!r})"
            )
        if options.values not in (False, True, STATISTICS, FULL):
            raise OpscopeError(
                f"values={options.values!r} is not known (there are: False, True, {STATISTICS!r}, {FULL!r})"
            )
        if options.values == FULL and not self.keeps:
            raise OpscopeError(f"values={FULL!r} is not supported for {self.name}: use values=True")
        if options.part is not None and options.values != FULL:
            raise OpscopeError(f"a part is chosen, which says what values={FULL!r} keeps: pass that, too")
        if options.times not in (False, True, DEVICE):
            raise OpscopeError(f"times={options.times!r} is not known (there are: False, True, {DEVICE!r})")
        if options.times == DEVICE and not self.profiles:
            raise OpscopeError(f"times={DEVICE!r} is not supported for {self.name}: opscope does not run its profiler")
        for option, reason in self.refuses.items():
            if given := getattr(options, option):
                raise OpscopeError(f"{option}={given!r} is not supported for {self.name}: {reason}")
