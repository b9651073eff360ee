"""Where in the Python code an operator was called. A stack that was seen before is one look into a dictionary."""

from __future__ import annotations

import os
from types import CodeType, FrameType

from opscope.ir import Frame
from opscope.tracers.frames import OWN

from . import private

# What a stack says about the operators called there.
INIT, OPTIMIZER, RECOMPUTE = 1, 2, 4

_HIDDEN = ("nn/layer/layers.py", "utils/decorator_utils.py", "base/wrapped_decorator.py", "base/framework.py")


class Places:
    """Stacks, numbered as they are met; 0 is the empty one."""

    def __init__(self, stop: FrameType | None = None) -> None:
        self._root = private.root()
        self._stop = stop
        self._ids: dict[tuple[int, ...], int] = {}
        self._codes: dict[int, CodeType] = {}  # kept, so that no other code gets the same id
        self.rows: list[tuple[Frame, ...]] = [()]
        self.flags: list[int] = [0]

    def at(self, frame: FrameType | None) -> int:
        key: list[int] = []
        walk = frame
        while walk is not None and walk is not self._stop:
            key.append(id(walk.f_code))
            key.append(walk.f_lasti)
            walk = walk.f_back
        return self._ids.get(tuple(key)) or self._new(tuple(key), frame)

    def _new(self, key: tuple[int, ...], frame: FrameType | None) -> int:
        frames: list[Frame] = []
        flags = 0
        while frame is not None and frame is not self._stop:
            code = frame.f_code
            self._codes[id(code)] = code
            file = code.co_filename
            if file.startswith(self._root):
                inside = file[len(self._root) :].replace(os.sep, "/")
                flags |= _flags(inside, code.co_name)
                # Paddle's own way from a call to what it calls says nothing.
                if inside not in _HIDDEN:
                    frames.append(Frame(file, frame.f_lineno or 0, code.co_name))
            elif not file.startswith((OWN, "<frozen ")):
                frames.append(Frame(file, frame.f_lineno or 0, code.co_name))
            frame = frame.f_back
        place = self._ids[key] = len(self.rows)
        self.rows.append(tuple(reversed(frames)))
        self.flags.append(flags)
        return place


def _flags(inside: str, function: str) -> int:
    if inside.startswith("nn/initializer/") or function == "create_parameter":
        return INIT
    if inside.startswith("optimizer/") and function not in ("__init__", "backward"):
        return OPTIMIZER
    if "/recompute/" in inside and function in ("backward", "unpack", "inner_unpack", "unpack_hook"):
        return RECOMPUTE
    return 0
