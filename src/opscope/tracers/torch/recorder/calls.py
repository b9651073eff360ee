"""Which module is being called: a tree of calls, from hooks that torch runs around every module.

A module that is called twice makes two calls. A call knows the steps from the module that called it
(`layers`, `0`) and the stack it was called from; scopes are made of that when the recording is over.
"""

from __future__ import annotations

import threading
import weakref
from types import CodeType, FrameType
from typing import Any, NamedTuple

from opscope.tracers.frames import frame_at
from opscope.tracers.torch import private

from .names import Modules, Step
from .places import Places

IN_A_THREAD = "the module was called in a thread that was started before the recording and is not recorded"
DISABLED = "the module was called while dispatch modes were disabled"


class Call(NamedTuple):
    parent: int  # the call inside which this one was made, or -1
    steps: tuple[Step, ...]  # from the parent's module, or from the top, to this module
    place: int  # the stack of the call
    is_recomputed: bool  # called while gradients were computed: checkpointing runs it once more


class Active(NamedTuple):
    """A call that has begun and not ended."""

    call: int
    module: int  # id()
    frame: FrameType  # inside of which everything the module does happens
    place: int  # the stack of the call


class Calls:
    def __init__(
        self,
        torch: Any,
        modules: Modules,
        places: Places,
        base: FrameType | None,
        *,
        lean: bool = False,
        compiled: bool = False,
    ) -> None:
        self._compiled = compiled  # what torch.compile made of a module is called in its place
        self._modules = modules
        self._places = places
        self._lean = lean
        self._base = base  # the first frame that is not the user's recorded code
        self._current_node = private.current_node(torch)
        self.rows: list[Call] = []
        self.active: dict[int, list[Active]] = {}  # by thread
        self._last: dict[int, tuple[weakref.ref[Any], int]] = {}  # id of a module -> its last call
        self._home = threading.get_ident()
        self._modes = private.modes_here(torch)
        self.lock = threading.RLock()  # several threads may write to what is recorded
        self.unseen: dict[int, str] = {}  # calls that are not recorded, and why
        self.inside: CodeType | None = None  # what runs one operator of the recording: below it, there is no mode
        self._torch = torch
        self._handles = private.watch_modules(torch, self._enter, self._leave)

    def pause(self) -> None:
        """Until `resume`, calls are not seen."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def resume(self) -> None:
        if not self._handles:
            self._handles = private.watch_modules(self._torch, self._enter, self._leave)

    def remove(self) -> None:
        self.pause()
        self.active.clear()

    def _enter(self, module: Any, args: Any) -> None:
        module = private.uncompiled(module) if self._compiled else module
        frame, thread = frame_at(1), threading.get_ident()
        if not self._modes() and not (thread == self._home and self._is_inside(frame)):
            self._enter_unseen(module, frame, thread)
            return
        with self.lock:
            stack = self.active.get(thread)
            if stack is None:
                stack = self.active[thread] = []
            while stack:
                parent, above, stop, outside = stack[-1]
                # The module that calls is nearly always the one that began last: then the way up to it is its place.
                place = self._places.inside(frame, stop, outside)
                if place >= 0:
                    break
                stack.pop()  # an exception left it without telling us: its frame is not below us any more
            else:
                parent, above = -1, 0
                place = self._places.at(frame, self._base, 0)
            if self._lean:
                place = 0
            is_recomputed = self.rows[parent].is_recomputed if parent >= 0 else self._current_node() is not None
            steps = self._modules.steps(module, above if parent >= 0 else None, frame)
            call, key = len(self.rows), id(module)
            self.rows.append(Call(parent, steps, place, is_recomputed))
            stack.append(Active(call, key, frame, place))
            self._last[key] = weakref.ref(module), call

    def _enter_unseen(self, module: Any, frame: FrameType, thread: int) -> None:
        """A module that the recording knows is called where no dispatch mode is asked: it is not recorded."""
        with self.lock:
            stack = self.active.get(thread, [])
            top = stack[-1] if stack else None
            if not self._modules.knows(module):
                return
            if top is not None and top.call in self.unseen:
                call = top.call  # one gap is enough
            else:
                call = len(self.rows)
                self.unseen[call] = DISABLED if thread == self._home else IN_A_THREAD
                steps = self._modules.steps(module, top.module if top is not None else None, frame)
                self.rows.append(Call(top.call if top is not None else -1, steps, 0, False))
            self.active.setdefault(thread, []).append(Active(call, id(module), frame, 0))

    def _is_inside(self, frame: FrameType) -> bool:
        """Whether an operator of the recording is running, such as one that is written in Python."""
        walk: FrameType | None = frame
        while walk is not None and walk.f_code is not self.inside:
            walk = walk.f_back
        return walk is not None

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        module = private.uncompiled(module) if self._compiled else module
        thread = threading.get_ident()
        stack = self.active.get(thread)
        while stack:
            if stack.pop().module == id(module):
                break
        if not stack and thread != self._home:
            self.active.pop(thread, None)

    def last_call(self, module: Any) -> int:
        """The last call of a module that may be over: what a generator does, it does after its call."""
        reference, call = self._last.get(id(module), (None, -1))
        return call if reference is not None and reference() is module else -1
