"""The variables of a frame, read without keeping what they hold alive."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_IS_FUNCTION = 0x1  # CO_OPTIMIZED: the locals are not a dictionary of their own


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the local variables.

    Before Python 3.13 `f_locals` of a function makes a dictionary that stays with the frame, so tensors that
    the user deletes later would live on in it. It is emptied again: the variables themselves are elsewhere.
    """
    held = frame.f_locals
    copied = dict(held)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & _IS_FUNCTION:
        held.clear()
    return copied


def variables_of(frame: FrameType) -> dict[str, Any]:
    """Globals and locals."""
    return {**frame.f_globals, **locals_of(frame)}
