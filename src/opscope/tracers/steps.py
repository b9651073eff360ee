"""Training steps, told apart by the optimizers that step in them."""

from __future__ import annotations

from collections.abc import Iterable


def step_ends(steps: Iterable[tuple[int, int]]) -> list[int]:
    """When each training step ends; empty if there is only one. `steps`: which optimizer stepped, and when.

    A step is over when an optimizer is about to step for the second time. What comes after the last end belongs to a
    step that was not finished.
    """
    ends: list[int] = []
    seen: set[int] = set()
    last = 0
    for optimizer, time in steps:
        if optimizer in seen:
            ends.append(last)
            seen.clear()
        seen.add(optimizer)
        last = time
    return [*ends, last] if ends else []
