"""The fake tensors that this process runs on as a rank of a world."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

from opscope.tracers.torch.private import find

_modes: list[Any] = []
_real: list[bool] = []


def fake_mode() -> Any:
    """Their mode; None: this process runs on real tensors."""
    return _modes[-1] if _modes else None


def are_real() -> bool:
    """Whether tensors are real for now although this process runs on fake ones."""
    return bool(_real)


@contextlib.contextmanager
def on_real() -> Generator[None, None, None]:
    """What runs inside runs on real tensors: it needs their numbers."""
    unset = find("torch._subclasses.fake_tensor", "unset_fake_temporarily")
    if not _modes or unset is None:
        yield
        return
    _real.append(True)
    try:
        with unset():
            yield
    finally:
        _real.pop()


@contextlib.contextmanager
def running_on(mode: Any) -> Generator[None, None, None]:
    _modes.append(mode)
    try:
        yield
    finally:
        _modes.pop()
