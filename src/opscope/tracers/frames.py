"""Python frames: which are opscope's own, and their variables, read without keeping what they hold alive."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from .arguments import attributes_of, entries_of, is_a, tensors_in

frame_at = sys._getframe  # pyright: ignore[reportPrivateUsage]  # how many calls up; 0: here. Python has no public one
_current_frames = sys._current_frames  # pyright: ignore[reportPrivateUsage]
OWN = str(Path(__file__).parents[1]) + os.sep  # files below it are opscope's
_MOST_FRAMES = 12  # up the stack, in search of a name
_MOST_ITEMS = 256  # of a container among the user's variables that is looked into
_IS_FUNCTION = 0x1  # CO_OPTIMIZED: the locals are not a dictionary of their own


def frames_by_thread() -> dict[int, FrameType]:
    """The frame that each thread is in, by its ident.

    Without garbage collection meanwhile: Python 3.11 holds the lock over its threads here, and waits for it for ever
    if a collection that begins here takes a `threading.local` with it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _current_frames()
    finally:
        if was_enabled:
            gc.enable()


def users_frame() -> FrameType:
    """The innermost frame that is not opscope's own: where the user's names are."""
    frame = frame_at(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return frame


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the local variables.

    Before Python 3.13 `f_locals` of a function makes a dictionary that stays with the frame, so tensors that
    the user deletes later would live on in it. It is emptied again: the variables themselves are elsewhere.
    """
    held = frame.f_locals
    is_function = frame.f_code.co_flags & _IS_FUNCTION
    copied = dict(held) if is_function else _plain(held)  # a class body may have a mapping of its own kind
    if sys.version_info < (3, 13) and is_function:
        held.clear()
    return copied


def variables_of(frame: FrameType) -> dict[str, Any]:
    """Globals and locals."""
    return {**_plain(frame.f_globals), **locals_of(frame)}


def _plain(held: Any) -> dict[str, Any]:
    """The variables in a namespace, whatever class of dictionary it is."""
    if not is_a(held, dict):
        return {}
    return {name: value for name, value in entries_of(held) if type(name) is str}


def held_in(frame: FrameType, kinds: type[Any] | tuple[type[Any], ...]) -> Iterator[tuple[str, Any]]:
    """What the user's variables hold of these types, with the names that he gave."""
    for name, value in variables_of(frame).items():
        if is_a(value, kinds) and not name.startswith("_"):
            yield name, value


def tensors_held_in(frame: FrameType, kind: type[Any], depth: int) -> Iterator[tuple[str, Any]]:
    """The tensors that the user's own variables hold: a batch that was made before the recording."""
    for name, value in variables_of(frame).items():
        if not name.startswith("_"):
            yield from tensors_in(kind, value, name, depth=depth, most=_MOST_ITEMS)


def name_in_frame(frame: FrameType | None, value: Any) -> str | None:
    """The variable of this frame that holds the value: a local, a global, or an attribute of `self`."""
    if frame is None:
        return None
    own = locals_of(frame)
    holders = [own, _plain(frame.f_globals)]
    owner = own.get("self")
    if owner is not None and owner is not value:
        attributes = attributes_of(owner)
        holders += [attributes, _plain(attributes.get("_modules"))]  # where torch keeps a module's parts
    for holder in holders:
        for name, held in holder.items():
            if held is value and name.isidentifier() and not name.startswith("__"):
                return name
    return None


def name_in_stack(frame: FrameType | None, value: Any) -> str | None:
    """The local variable that holds a value, in the nearest frame that has one."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        for name, held in locals_of(frame).items():
            if held is value and name.isidentifier() and name != "self" and not name.startswith("_"):
                return name
        frame = frame.f_back
    return None
