"""What a formula is given and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from opscope.ir.enumerations import ESTIMATED, EXACT, HOW, UNKNOWN, ZERO
from opscope.ir.pools import Type

__all__ = [
    "ESTIMATED",
    "EXACT",
    "HOW",
    "NOT_TOLD",
    "UNKNOWN",
    "ZERO",
    "Argument",
    "Cost",
    "Formula",
    "formula",
    "registered",
]

NOT_TOLD = -1  # of `Cost.causal`: nothing says which mask there is; of `Cost.wire`: how many ranks there are


class Argument(NamedTuple):
    """One tensor that an operator reads: the path of the argument, and its type (None for no tensor)."""

    name: str
    type: Type | None


class Cost(NamedTuple):
    """What one operator costs.

    `macs` are multiply-accumulates of matrix products, convolutions, attention and RNNs; `other` all other floating
    point operations. `read` and `written` are bytes, None where the general rule holds: every input once, every
    output once. `how` says whether that is exact, zero by rule (it moves data or makes a view), estimated, or
    unknown; the figures of an unknown operator mean nothing.

    `causal` are the MACs of attention that computes only what a causal mask shows: None where that is all of them
    (there is no mask, or another one), NOT_TOLD where the capture does not say what the mask is.

    `wire` are the bytes that this rank sends to others, NOT_TOLD where the capture does not say to how many.
    """

    macs: int = 0
    other: int = 0
    read: int | None = None
    written: int | None = None
    how: str = EXACT
    causal: int | None = None
    wire: int = 0


Formula = Callable[[Sequence[Argument], Sequence[Type], Mapping[str, Any]], "Cost | None"]
registered: dict[tuple[str, str], Formula] = {}


def formula(op: str, framework: str = "") -> Callable[[Formula], Formula]:
    """Register the cost of an operator of your own.

    >>> @opscope.formula("mylib.fused_mlp", framework="torch")          # doctest: +SKIP
    ... def fused_mlp(inputs, outputs, attrs):
    ...     rows, width = inputs[0].type.shape
    ...     return opscope.ops.Cost(macs=rows * width * attrs["hidden"] * 2)
    """

    def register(function: Formula) -> Formula:
        registered[framework, op] = function
        return function

    return register
