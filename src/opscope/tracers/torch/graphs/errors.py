"""A way of capturing that does not work on a model: what failed, why, where in the user's code, what to try."""

from __future__ import annotations

import re
import traceback
from types import FrameType
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir.pools import Frame

from .frames import is_users, python_frames

_INSTEAD = {
    "fx": "how='export' or how='dynamo' read Python itself; how='record' works on any model",
    "jit-trace": "how='export' takes more kinds of arguments; how='record' works on any model",
    "jit-script": "how='jit-trace' only needs the model to run; how='record' works on any model",
    "export": "how='dynamo' splits the graph where it must; how='record' works on any model",
    "export-strict": "how='export' follows Python more freely; how='record' works on any model",
    "dynamo": "how='record' works on any model",
    "joint": "how='autograd' shows the backward functions; how='record' with a training step works on any model",
    "autograd": "something that requires a gradient, outside torch.no_grad()",
}
_LONGEST = 240


class CannotCapture(OpscopeError):
    """One way of capturing does not work here. The parts of the message are kept apart for tables."""

    def __init__(self, how: str, reason: str, file: str = "", line: int = 0, *, instead: str | None = None) -> None:
        self.how = how
        self.reason = reason
        self.file = file
        self.line = line
        self.instead = _INSTEAD.get(how, "") if instead is None else instead
        where = f" at {file}:{line}" if file else ""
        hint = f" (try instead: {self.instead})" if self.instead else ""
        super().__init__(f"how={how!r} cannot capture this{where}: {reason}{hint}")


def cannot(how: str, error: BaseException, caller: FrameType | None = None) -> CannotCapture:
    """The error in our words: its first clear line, and the innermost line of the user's own code."""
    frame = users_line(error, caller)
    if "uninitialized parameter" in str(error):  # of a lazy module that a function calls
        return no_sizes_yet(how, "a lazy module")
    return CannotCapture(how, reason_of(error), frame.file if frame else "", frame.line if frame else 0)


def no_sizes_yet(how: str, what: str) -> CannotCapture:
    """A model with lazy modules that was never called."""
    instead = "call the model once on its arguments, then trace it; how='record' works on it as it is"
    return CannotCapture(how, f"{what} has no weights before the model's first call", instead=instead)


def reason_of(error: BaseException) -> str:
    """One line out of what torch says, which is often a page."""
    text = re.sub(r" at 0x[0-9a-f]+", "", one_line(str(error)))
    # A KeyError only has the key.
    return text if " " in text else f"{type(error).__name__}: {text}".removesuffix(": ")


def one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not set(line) <= set("=-~^ ")]
    if not lines:
        return ""
    first = lines[0].rstrip(":")
    explained = next((line for line in lines[1:4] if line.startswith("Explanation:")), "")
    if explained:
        first = f"{first}: {explained.removeprefix('Explanation:').strip()}"
    first = re.sub(r"\s+", " ", _said(text) or first)
    return first if len(first) <= _LONGEST else f"{first[: _LONGEST - 1]}…"


def _said(text: str) -> str:
    """What the model itself raised, deep inside of what Dynamo says about it."""
    found = re.search(r"got \w+\((['\"])(.+?)\1\)", text, re.DOTALL)
    return f"the model fails: {found[2]}" if found else ""


def users_line(error: BaseException, caller: FrameType | None) -> Frame | None:
    """Where in the user's code it failed. What torch wrote into the text is nearer than Python's traceback."""
    for frames in (_reported(error), python_frames(str(error)), _raised(error)):
        found = [frame for frame in frames if is_users(frame.file) and not _is_call(frame, caller)]
        if found:
            return found[-1]
    return None


def _reported(error: BaseException) -> list[Frame]:
    stack: Any = getattr(error, "real_stack", None)
    return [Frame(entry.filename, entry.lineno or 0, entry.name) for entry in stack or ()]


def _raised(error: BaseException) -> list[Frame]:
    return [Frame(e.filename, e.lineno or 0, e.name) for e in traceback.extract_tb(error.__traceback__)]


def _is_call(frame: Frame, caller: FrameType | None) -> bool:
    """The line that called opscope says nothing about what is wrong in the model."""
    return caller is not None and (frame.file, frame.function) == (caller.f_code.co_filename, caller.f_code.co_name)
