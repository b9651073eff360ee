"""Which of the lines that led to an operator is the user's own: the same rule for every output and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .pools import Frame
from .spellings import FRAMEWORK_FILE


@lru_cache(maxsize=4096)
def is_framework(file: str) -> bool:
    return FRAMEWORK_FILE.search(file) is not None


def users_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost of the user's frames; where all are a framework's, the innermost of those. Frames come outermost
    first, as Python prints them."""
    return next((frame for frame in reversed(frames) if not is_framework(frame.file)), frames[-1] if frames else None)
