"""From an operator's name to its kind and its formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opscope.ir.pools import Type

from .cost import UNKNOWN, Argument, Cost, registered


def canonical(framework: str, op: str) -> str:
    """The one name of this kind of operator, such as `conv` or `add`; its own name where it has none."""
    return op


def cost_of(
    framework: str, op: str, inputs: Sequence[Argument], outputs: Sequence[Type], attrs: Mapping[str, Any]
) -> Cost:
    """What an operator costs. One that is not known, or whose shapes are not, is `unknown`: never a silent zero."""
    function = registered.get((framework, op)) or registered.get(("", op))
    return (function(inputs, outputs, attrs) if function else None) or Cost(how=UNKNOWN)
