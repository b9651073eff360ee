"""Which calls of a profile are the operators that we show, and where each of them ran.

A call is inside of others: `aten::linear` calls `aten::addmm`, and around both are the modules and Python functions
that called them. As in execution traces, of a composite operator its parts are shown, otherwise the outermost call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Pools
from opscope.ir.measurements import RUN_MARK
from opscope.ir.pools import Frame, Stack
from opscope.readers.torch.composite import AUTOGRAD, COMPOSITE

from .profile import LAUNCH, OPERATOR, PYTHON, REGION, Profile

_FRAME = re.compile(r"(.+)\((\d+)\): (.*)", re.DOTALL)
_MODULE = "nn.Module: "
_STEP = re.compile(r"ProfilerStep#(\d+)")
_OPTIMIZER = re.compile(r"Optimizer\.(\w+)#(\w+)")
_AUTOGRAD_NODE = re.compile(r"\w+Backward\d*$")
_DEEPEST = 1000  # scopes and frames further inside are left out


class Place(NamedTuple):
    """Where a call is: the ids of its module and its stack, and the phase."""

    scope: int = 0
    stack: int = 0
    phase: str = "forward"


@dataclass(frozen=True)
class Operators:
    """The calls that are shown as operators, in the order of their beginning, with their places."""

    calls: list[int]
    places: list[Place]
    forward: list[int]  # for one of the backward pass: the position of the operator that it differentiates, or -1
    within: npt.NDArray[np.int32]  # by call: the position of the shown operator that it is or runs in; -1: none
    scope_of: npt.NDArray[np.int32]  # by call that is a module's or a region: its scope; of others 0


def operators(profile: Profile, pools: Pools) -> Operators:
    return _Operators(profile, pools).found()


class _Operators:
    def __init__(self, profile: Profile, pools: Pools) -> None:
        self.profile, self.pools = profile, pools
        self.names: list[str] = profile.names
        calls = profile.calls
        self.started = np.zeros(len(calls), dtype=bool)
        started_by = profile.work.call
        self.started[started_by[started_by >= 0]] = True
        self.is_composite = _composites(profile)
        self.holds_mark = _around_marks(profile)
        self.place: dict[int, Place] = {}  # of calls that are around others
        self.entered: dict[tuple[int, str], int] = {}  # how often a module was called in the scope around it
        self.forward_of: dict[int, Place] = {}  # sequence number -> where the forward operator ran
        self.sequences: dict[int, int] = {}  # sequence number -> the forward operator
        self.sequence: dict[int, int] = {}  # a call of the autograd engine -> the number of what it differentiates
        self.several: set[int] = set()  # numbers that more than one thread gave out

    def found(self) -> Operators:
        calls = self.profile.calls
        within = np.full(len(calls), -1, dtype=np.int32)
        shown: list[int] = []
        places: list[Place] = []
        sequence_of: list[int] = []
        kinds, parents, sequences = calls.kind.tolist(), calls.parent.tolist(), calls.sequence.tolist()
        threads = calls.thread.tolist()
        thread_of: dict[int, int] = {}
        for start, stop in self._threads():
            for call in range(start, stop):
                parent = parents[call]
                around = within[parent] if parent >= 0 and parent not in self.place else -1
                if around >= 0:
                    within[call] = around
                    continue
                place = self.place[parent] if parent >= 0 else Place()
                back = self.sequence.get(parent, -1)
                kind = kinds[call]
                if kind == PYTHON:
                    self.place[call] = self._python(place, self.profile.text(calls.name, call))
                elif kind == REGION:
                    self.place[call] = self._region(place, self.profile.text(calls.name, call))
                elif kind == OPERATOR and not self._is_shown(call):
                    self.place[call], back = self._around(call, place, back)
                elif kind == LAUNCH and not self.started[call]:
                    self.place[call] = place
                else:
                    name = self.profile.text(calls.name, call)
                    if kind == OPERATOR and "::" not in name and not name.startswith(RUN_MARK):
                        # A whole compiled graph that is replayed: what it does beside that is an operator of its own.
                        self.place[call], back = self._around(call, place, back)
                        place = self.place[call]
                    within[call] = len(shown)
                    shown.append(call)
                    places.append(place)
                    sequence_of.append(back if place.phase == "backward" else -1)
                    number = sequences[call]
                    if kind == OPERATOR and number >= 0 and place.phase == "forward":
                        if thread_of.setdefault(number, threads[call]) != threads[call]:
                            self.several.add(number)
                        self.forward_of[number] = place  # the last that has the number made the autograd node
                        self.sequences[number] = len(shown) - 1
                if back >= 0:
                    self.sequence[call] = back
        order = np.argsort(calls.start[shown], kind="stable")
        position = np.empty(len(shown) + 1, dtype=np.int32)
        position[order] = np.arange(len(shown))
        position[-1] = -1
        forward = [-1 if n in self.several else self.sequences.get(n, -1) for n in sequence_of]
        return Operators(
            calls=[shown[i] for i in order.tolist()],
            places=[places[i] for i in order.tolist()],
            forward=[int(position[forward[i]]) for i in order.tolist()],
            within=position[within],
            scope_of=self._scopes(),
        )

    def _scopes(self) -> npt.NDArray[np.int32]:
        """The scope that each call opened."""
        calls = self.profile.calls
        found = np.zeros(len(calls), dtype=np.int32)
        placed = np.fromiter(self.place, dtype=np.int64, count=len(self.place))
        found[placed] = [place.scope for place in self.place.values()]
        around = np.where(calls.parent >= 0, found[calls.parent], 0)
        opened = (found != around) & np.isin(calls.kind, (PYTHON, REGION))
        found[~opened] = 0
        return found

    def _threads(self) -> list[tuple[int, int]]:
        """The calls of each thread; those that ran the backward pass last, because they look at the forward pass."""
        threads = self.profile.calls.thread
        edges = np.flatnonzero(np.diff(threads)) + 1
        spans = list(zip([0, *edges.tolist()], [*edges.tolist(), len(threads)], strict=True)) if len(threads) else []
        engine = np.array([name.startswith(AUTOGRAD) for name in self.names], dtype=bool)
        calls = self.profile.calls

        def is_backward(span: tuple[int, int]) -> bool:
            names, parents = calls.name[span[0] : span[1]], calls.parent[span[0] : span[1]]
            return bool(engine[names[parents < 0]].any())

        return sorted(spans, key=is_backward)

    def _is_shown(self, call: int) -> bool:
        """An operator, or anything else that started work on a device by itself."""
        if self.holds_mark[call]:
            return False
        if self.started[call]:
            return True
        name = self.profile.text(self.profile.calls.name, call)
        if name.startswith(AUTOGRAD) or _AUTOGRAD_NODE.fullmatch(name):
            return False
        if "::" in name and ": " not in name and "::autograd::" not in name:
            return not self.is_composite[call]
        return name.startswith(("triton_", RUN_MARK))

    # -- places ---------------------------------------------------------------------------------

    def _python(self, place: Place, name: str) -> Place:
        if name.startswith(_MODULE):
            return place._replace(scope=self._scope(place.scope, name[len(_MODULE) :], _class(name[len(_MODULE) :])))
        frame = _FRAME.fullmatch(name)
        if frame is None:
            return place
        file, line, function = frame.groups()
        stack = self.pools.stacks.add(Stack(place.stack, self.pools.frames.add(Frame(file, _line(line), function))))
        return place._replace(stack=stack)

    def _region(self, place: Place, name: str) -> Place:
        if step := _STEP.fullmatch(name):
            return place._replace(scope=self.pools.scope(place.scope, f"step {step[1]}"))
        if optimizer := _OPTIMIZER.match(name):
            return place._replace(scope=self._scope(place.scope, optimizer[2], optimizer[2]), phase="optimizer")
        return place._replace(scope=self._scope(place.scope, name[:200], ""))

    def _around(self, call: int, place: Place, back: int) -> tuple[Place, int]:
        """A composite operator, or what the autograd engine and the compiler do around operators."""
        calls = self.profile.calls
        name = self.profile.text(calls.name, call)
        if name.startswith(AUTOGRAD) or (_AUTOGRAD_NODE.fullmatch(name) and place.phase != "backward"):
            number = int(calls.sequence[call])
            forward = None if number in self.several else self.forward_of.get(number)
            if forward is None:
                node = name.removeprefix(AUTOGRAD).rpartition("::")[2]
                return Place(self.pools.scope(place.scope, node[:200], "autograd"), place.stack, "backward"), number
            return Place(forward.scope, forward.stack, "backward"), number
        if "::" in name or place.phase == "backward":
            return place, back
        return place._replace(scope=self._scope(place.scope, name[:200], "")), back

    def _scope(self, parent: int, name: str, cls: str) -> int:
        key = (parent, name)
        call = self.entered[key] = self.entered.get(key, -1) + 1
        return self.pools.scope(parent, name, cls, call)


def _class(name: str) -> str:
    """`Linear_3` is the fourth Linear of the process."""
    cls, _, number = name.rpartition("_")
    return cls if cls and number.isdecimal() else name


def _line(digits: str) -> int:
    return int(digits) if len(digits) < 10 else 0


def _around_marks(profile: Profile) -> npt.NDArray[np.bool_]:
    """Calls inside of which a recorder's operators ran: these are what is shown, with all that they called."""
    calls = profile.calls
    is_mark = np.array([name.startswith(RUN_MARK) for name in profile.names], dtype=bool)
    found = np.zeros(len(calls), dtype=bool)
    for call in np.flatnonzero(is_mark[calls.name]).tolist():
        parent = int(calls.parent[call])
        while parent >= 0 and not found[parent]:
            found[parent] = True
            parent = int(calls.parent[parent])
    return found


def _composites(profile: Profile) -> npt.NDArray[np.bool_]:
    """Operators that only call others: autograd saw one of them, or they are known to."""
    calls = profile.calls
    names = profile.names
    is_op = np.array(
        ["::" in name and not name.startswith(AUTOGRAD) and ": " not in name for name in names], dtype=bool
    )
    known = np.array([name in COMPOSITE for name in names], dtype=bool)
    inner = np.flatnonzero((calls.kind == OPERATOR) & is_op[calls.name] & (calls.parent >= 0))
    inner = inner[calls.kind[calls.parent[inner]] == OPERATOR]
    parent = calls.parent[inner]
    has_operator = np.zeros(len(calls), dtype=bool)
    has_operator[parent] = True
    seen = np.full(len(calls), -1, dtype=np.int64)
    np.maximum.at(seen, parent, calls.sequence[inner])
    return has_operator & (known[calls.name] | ((calls.sequence >= 0) & (seen >= calls.sequence)))
