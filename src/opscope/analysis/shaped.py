"""Operators that ask for the shape of an input and not for its numbers."""

from __future__ import annotations

import re

_ALL = re.compile(r"(?:^|\.)(?:(?:ones|zeros|full|empty|rand\w*)_like|new_\w+)")
_BEHIND_FIRST = re.compile(r"(?:^|\.)nll_loss(?:2d|_nd)?_backward")  # the first is the gradient


def reads_shape_alone(op: str, place: int = 0) -> bool:
    """
    >>> reads_shape_alone("aten.ones_like"), reads_shape_alone("aten.nll_loss_backward", 0)
    (True, False)
    """
    return _ALL.search(op) is not None or (place > 0 and _BEHIND_FIRST.search(op) is not None)
