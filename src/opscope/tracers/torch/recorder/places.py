"""Where in the Python code an operator was called.

Taking a whole stack for every operator would cost more than all the rest. So a walk goes only up to the frame
of the module call that the operator is in, whose own stack is known, and a stack that was seen before (the
same code at the same instructions) is one look into a dictionary.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from opscope.ir import Frame
from opscope.tracers.frames import OWN
from opscope.tracers.torch.private import is_compiled_call

# What a stack says about the operators called there.
OPTIMIZER, CHECKPOINT, BACKWARD, GENERATOR, INIT, COMPILED, STARTS = 1, 2, 4, 8, 16, 32, 64

_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR

_COMPILES = ("_higher_order_ops/", "nn/attention/")  # parts of torch that compile by themselves, unasked

Row = tuple[int, tuple[Frame, ...]]  # the stack outside, and the frames inside it, outermost first


class Places:
    """Stacks, numbered as they are met; 0 is the empty one."""

    def __init__(self, torch: Any) -> None:
        self._root = str(Path(torch.__file__).parent) + os.sep
        self._ids: dict[tuple[int, ...], int] = {}
        self._codes: dict[int, CodeType] = {}  # kept, so that no other code gets the same id
        self.rows: list[Row] = [(0, ())]
        self.flags: list[int] = [0]

    def at(self, frame: FrameType | None, stop: FrameType | None, outside: int) -> int:
        """The stack from `frame` outwards, up to and without `stop`, inside the stack `outside`."""
        key = [outside]
        walk = frame
        while walk is not None and walk is not stop:
            key.append(id(walk.f_code))
            key.append(walk.f_lasti)
            walk = walk.f_back
        place = self._ids.get(tuple(key))
        return place if place is not None else self._new(tuple(key), frame, stop, outside)

    def inside(self, frame: FrameType | None, stop: FrameType, outside: int) -> int:
        """As `at`, but -1 where `stop` is not among the frames that called this one."""
        key = [outside]
        walk = frame
        while walk is not stop:
            if walk is None:
                return -1
            key.append(id(walk.f_code))
            key.append(walk.f_lasti)
            walk = walk.f_back
        place = self._ids.get(tuple(key))
        return place if place is not None else self._new(tuple(key), frame, stop, outside)

    def _new(self, key: tuple[int, ...], frame: FrameType | None, stop: FrameType | None, outside: int) -> int:
        frames: list[Frame] = []
        flags = self.flags[outside]
        user: CodeType | None = None  # the outermost of the frames so far that is not torch's
        while frame is not None and frame is not stop:
            code = frame.f_code
            self._codes[id(code)] = code
            own = self._flags(code)
            if own & COMPILED and frame.f_back is not None and self._inside(frame.f_back.f_code).startswith(_COMPILES):
                own = 0
            # What an optimizer calls is the optimizer's, but not the closure that it is given.
            if not (own & OPTIMIZER and user is not None and user.co_name not in ("step", "zero_grad")):
                flags |= own
            if not code.co_filename.startswith((self._root, OWN)):
                user = code
            if not self._is_hidden(code):
                frames.append(Frame(code.co_filename, frame.f_lineno or 0, code.co_name))
            frame = frame.f_back
        place = self._ids[key] = len(self.rows)
        self.rows.append((outside, tuple(reversed(frames))))
        self.flags.append(flags)
        return place

    def _flags(self, code: CodeType) -> int:
        inside = self._inside(code)
        if not inside:
            if code.co_name == "__init__":
                return INIT
            return GENERATOR if code.co_flags & _GENERATOR_FLAGS else 0
        if is_compiled_call(inside, code):
            return COMPILED
        if inside.startswith(("optim/", "amp/grad_scaler")) or inside == "nn/utils/clip_grad.py":
            return OPTIMIZER
        if inside == "nn/init.py" or (inside.startswith("nn/") and code.co_name in ("__init__", "reset_parameters")):
            return INIT
        if inside == "utils/checkpoint.py" and code.co_name in ("recompute_fn", "unpack_hook", "backward"):
            return CHECKPOINT
        if inside in ("autograd/__init__.py", "autograd/graph.py", "_tensor.py"):
            if code.co_name == "_make_grads":
                return BACKWARD | STARTS
            return BACKWARD if code.co_name in ("backward", "grad", "_engine_run_backward") else 0
        return 0

    def _is_hidden(self, code: CodeType) -> bool:
        """opscope's own frames, and torch's way from a call to what it calls."""
        return code.co_filename.startswith((OWN, "<frozen ")) or self._inside(code) in _MACHINERY

    def _inside(self, code: CodeType) -> str:
        """The file inside torch that code is from, or nothing."""
        file = code.co_filename
        return file[len(self._root) :].replace(os.sep, "/") if file.startswith(self._root) else ""

    def frames(self, place: int) -> list[Frame]:
        """All frames of a stack, outermost first."""
        found: list[tuple[Frame, ...]] = []
        while place:
            place, frames = self.rows[place]
            found.append(frames)
        return [frame for frames in reversed(found) for frame in frames]


_MACHINERY = frozenset(
    {
        "nn/modules/module.py",
        "utils/_contextlib.py",
        "utils/_python_dispatch.py",
        "_ops.py",
        "_compile.py",
        "_dynamo/eval_frame.py",
        "autograd/function.py",
        "_jit_internal.py",
    }
)
