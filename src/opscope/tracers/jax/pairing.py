"""Which gradients belong to which call of a primitive.

JAX gives an equation of the backward pass the traceback of its forward equation, but not the same object, and a line
in a loop has as many calls as the loop has turns. The backward pass runs the calls of one place in reverse: where there
are as many on both sides, the first belongs to the last. Where there are not, some have no gradient, and which is not
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .private import calling_frames


def call_numbers(equations: Sequence[Any]) -> dict[int, int]:
    """By the identity of an equation's traceback: a number that forward and backward of one call share."""
    forward: dict[Any, list[int]] = {}
    backward: dict[Any, list[int]] = {}
    seen: set[int] = set()
    for equation in equations:
        traceback = equation.source_info.traceback
        if traceback is None or id(traceback) in seen:
            continue
        seen.add(id(traceback))
        stack = str(equation.source_info.name_stack)
        side = backward if "transpose(" in stack else forward
        side.setdefault(calling_frames(traceback), []).append(id(traceback))
    numbers: dict[int, int] = {}
    for place, calls in forward.items():
        for call in calls:
            numbers[call] = len(numbers) + 1
        gradients = backward.pop(place, [])
        if len(gradients) == len(calls):
            numbers |= {gradient: numbers[call] for gradient, call in zip(reversed(gradients), calls, strict=True)}
        else:
            numbers |= {gradient: -gradient for gradient in gradients}
    for gradients in backward.values():
        numbers |= {gradient: -gradient for gradient in gradients}
    return numbers
