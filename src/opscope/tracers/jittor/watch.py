"""Watches which module or optimizer is at work while operators are made.

Jittor's tracer guesses this from the first local variable of every Python frame. The guess takes
`train(model)` for a call of the model, misses classes with a mixin, merges calls, and writes names into the
user's modules. Here a profile function sees the real calls. Nodes are numbered as they are made, so "the
counter stood at 120 when `fc1` began and at 131 when it ended" says exactly which nodes are of `fc1`.
A profile function adds no frame to the stack and makes no operator, so what runs stays what it was.
"""

from __future__ import annotations

import os
import sys
import weakref
from bisect import bisect_right
from types import CodeType, FrameType
from typing import Any, NamedTuple, cast

from opscope.tracers.frames import name_in_frame

from .names import submodules

# Methods of a tensor object that make it another node: an in-place write, seen from outside.
REBINDS = frozenset({"update", "assign", "_update", "check_cascade_setitem", "start_grad"})


class Call(NamedTuple):
    """One call of a module or an optimizer."""

    parent: int  # the call it happened in, or -1
    steps: tuple[tuple[str, str], ...]  # (name, class) from the parent's module down to this one
    kind: str  # module, optimizer or init
    start: int  # the counter when it began
    depth: int  # the depth of its frame, counted from the bottom of the thread
    file: str  # where it was called
    line: int
    function: str


class Rebound(NamedTuple):
    """A tensor object that was one node and is now another."""

    before: int
    after: int
    method: str


class _Open(NamedTuple):
    frame: FrameType
    call: int
    object: Any


class _Name(NamedTuple):
    object: weakref.ref[Any]
    name: str
    sure: bool  # not only its class, for want of a variable that holds it


class _Way(NamedTuple):
    # Weak: a module that the user drops while we record must not live on here, with its tensors.
    module: weakref.ref[Any]
    steps: tuple[tuple[str, str], ...]


class Watcher:
    """The profile function, and what it saw."""

    def __init__(self, jt: Any, roots: list[tuple[str, Any]]) -> None:
        self._jt = jt
        self._module: type[Any] = jt.Module
        self._optimizer: type[Any] = jt.optim.Optimizer
        self._var: type[Any] = jt.Var
        self._names: dict[int, _Name] = {}
        self._trees: dict[int, tuple[weakref.ref[Any], dict[int, _Way]]] = {}
        self._open: list[_Open] = []
        self._before: Any = None
        self._process = os.getpid()
        self._old: tuple[Any, int] | None = None
        self._marks: list[int] = []  # counter …
        self._active: list[int] = []  # … and the call at work from there on
        self.calls: list[Call] = []
        self.rebound: list[Rebound] = []
        self.steps: list[tuple[int, int]] = []  # id of the optimizer, counter when its step() returned
        self.lost = False
        for name, root in roots:
            self.name(root, name)

    # -- on and off -----------------------------------------------------------------------------

    def can_install(self) -> bool:
        """False where a profiler written in C is on, which cannot be called from here."""
        before: Any = sys.getprofile()
        return before is None or callable(before)

    def install(self) -> None:
        self._before = sys.getprofile()
        self._mark(-1)
        sys.setprofile(self)

    def remove(self) -> None:
        if sys.getprofile() is self:
            sys.setprofile(self._before)
        else:
            self.lost = True  # another profiler took over: later calls were not seen
        self._open.clear()

    # -- asking ---------------------------------------------------------------------------------

    def counter(self) -> int:
        """The number that the newest node has: that of a tensor made now, unseen by the tracer."""
        flags = self._jt.flags
        level: int = flags.trace_py_var
        flags.trace_py_var = 0
        try:
            return self._jt.Var(0).id
        finally:
            flags.trace_py_var = level

    def call_at(self, node: int) -> int:
        """The innermost call during which this node was made, or -1."""
        place = bisect_right(self._marks, node) - 1
        return self._active[place] if place >= 0 else -1

    def name(self, value: Any, name: str, sure: bool = True) -> None:
        self._names[id(value)] = _Name(weakref.ref(value), name, sure)

    def roots(self) -> list[tuple[str, Any]]:
        """The modules and optimizers that were given or seen outside any other, as long as they live."""
        return [(entry.name, value) for entry in self._names.values() if (value := entry.object()) is not None]

    # -- the profile function -------------------------------------------------------------------

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if self._before is not None:
            self._before(frame, event, arg)
        try:
            self._see(frame, event, arg)
        except Exception:
            # It would go on into the user's own code. Better to see nothing from here on, and to say so.
            sys.setprofile(self._before)

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            if frame.f_code.co_argcount:
                self._enter(frame, frame.f_code)
        elif event == "return":
            if self._open and self._open[-1].frame is frame:
                self._leave(frame.f_code)
        elif event == "c_call":
            if arg.__name__ in REBINDS and isinstance(arg.__self__, self._var):
                self._old = (arg.__self__, arg.__self__.id)
        elif event == "c_return" and self._old is not None and arg.__name__ in REBINDS:
            tensor, before = self._old
            self._old = None
            if arg.__self__ is tensor and tensor.id != before:
                self.rebound.append(Rebound(before, tensor.id, arg.__name__))
        elif event == "c_exception":
            self._old = None

    def _enter(self, frame: FrameType, code: CodeType) -> None:
        owner = frame.f_locals.get(code.co_varnames[0])
        cls = cast("type[Any]", type(owner))  # not isinstance, which asks the objects of others for their __class__
        if issubclass(cls, self._module):
            kind = "module"
        elif issubclass(cls, self._optimizer):
            kind = "optimizer"
        else:
            return
        if not _is_method(owner, code) or (self._open and self._open[-1].object is owner):
            return
        if os.getpid() != self._process:
            sys.setprofile(None)  # a data loader's worker, forked from us
            return
        parent = self._open[-1].call if self._open else -1
        if code.co_name == "__init__":
            kind, steps = "init", ((f"{cls.__name__}_init", cls.__name__),)
        else:
            steps = self._steps(owner, frame.f_back)
        caller = frame.f_back or frame
        place = caller.f_code.co_filename, caller.f_lineno, caller.f_code.co_name
        now = self._mark(len(self.calls))
        self.calls.append(Call(parent, steps, kind, now, depth_of(frame), *place))
        self._open.append(_Open(frame, len(self.calls) - 1, owner))

    def _leave(self, code: CodeType) -> None:
        closed = self._open.pop()
        now = self._mark(self._open[-1].call if self._open else -1)
        call = self.calls[closed.call]
        if call.kind == "optimizer" and code.co_name == "step":
            self.steps.append((id(closed.object), now))
        if call.parent < 0 and call.kind == "init":
            self.name(closed.object, type(closed.object).__name__, sure=False)

    def _steps(self, owner: Any, caller: FrameType | None) -> tuple[tuple[str, str], ...]:
        for opened in reversed(self._open):
            way = self._way(opened.object, owner) if isinstance(opened.object, self._module) else None
            if way:
                # Only below its direct caller are the containers on the way (a ModuleList) scopes as well.
                return way if opened is self._open[-1] else way[-1:]
        given = self._names.get(id(owner))
        if given is None or given.object() is not owner or not given.sure:
            found = name_in_frame(caller, owner)
            given = _Name(weakref.ref(owner), found or type(owner).__name__, found is not None)
            if not self._open:
                self._names[id(owner)] = given
        return ((given.name, type(owner).__name__),)

    def _way(self, root: Any, module: Any) -> tuple[tuple[str, str], ...] | None:
        tree = self._trees.get(id(root))
        way = tree[1].get(id(module)) if tree and tree[0]() is root else None
        if way is None or way.module() is not module:
            # Not seen yet, or the module was put in place since.
            ways = {key: _way_to(steps) for key, steps in submodules(root).items() if steps}
            self._trees[id(root)] = (weakref.ref(root), ways)
            way = ways.get(id(module))
        return way.steps if way else None

    def _mark(self, call: int) -> int:
        now = self.counter()
        self._marks.append(now)
        self._active.append(call)
        return now


def _way_to(steps: tuple[tuple[str, Any], ...]) -> _Way:
    return _Way(weakref.ref(steps[-1][1]), tuple((name, type(module).__name__) for name, module in steps))


def _is_method(owner: Any, code: CodeType) -> bool:
    """Whether the code is a method of the object, rather than a function that was given the object."""
    for cls in type(owner).__mro__:
        found = cls.__dict__.get(code.co_name)
        if found is not None and (getattr(found, "__code__", None) is code or code.co_varnames[0] == "self"):
            return True
    return False


def depth_of(frame: FrameType | None) -> int:
    depth = -1
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth
