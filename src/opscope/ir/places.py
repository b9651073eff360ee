"""Which of the lines that led to an operator is the user's own: the same rule for every output and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .pools import Frame, Pools
from .spellings import FRAMEWORK_FILE


@lru_cache(maxsize=4096)
def is_framework(file: str) -> bool:
    return FRAMEWORK_FILE.search(file) is not None


def users_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost of the user's frames; where all are a framework's, the innermost of those. Frames come outermost
    first, as Python prints them."""
    return next((frame for frame in reversed(frames) if not is_framework(frame.file)), frames[-1] if frames else None)


def users_frames(pools: Pools) -> list[Frame | None]:
    """The same for every stack of the pools, without walking up from each."""
    frames = pools.frames.rows()
    own = [not is_framework(frame.file) for frame in frames]
    nearest = [0]  # the stack that ends in the user's frame
    found: list[Frame | None] = [None]
    for number, stack in enumerate(pools.stacks.rows()[1:], 1):  # parents come first
        nearest.append(number if own[stack.frame] else nearest[stack.parent])
        found.append(frames[pools.stacks[nearest[-1] or number].frame])
    return found
