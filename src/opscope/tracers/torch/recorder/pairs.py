"""Which operator a gradient function belongs to.

Autograd numbers its gradient functions. An operator that needs a gradient gets its function, and so its number,
right before it runs; the recorder notes the number that was given last. Usually that says it all. But:

- operators that need no gradient show the number of the last one that did: the first one with a number is it;
- an in-place operator that needs its old value first clones it, so that its own number is one less than what it shows;
- an in-place write to a view gets one more function afterwards (`CopySlices`), whose number no operator shows;
- every thread counts by itself, and gradients on a GPU are computed in a thread of their own.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence


class Sequences:
    """Operators by the number they showed."""

    def __init__(self, names: Sequence[str], shown: Sequence[int], threads: Mapping[int, int], first: int) -> None:
        self._names = names
        self._by_thread: dict[int, dict[int, list[int]]] = {0: {}}
        for operator, number in enumerate(shown):
            thread = threads.get(operator, 0)
            # What was numbered before the recording belongs to operators that were not seen.
            if number >= (first if thread == 0 else 0):
                self._by_thread.setdefault(thread, {}).setdefault(number, []).append(operator)
        self._numbers = {thread: sorted(shown) for thread, shown in self._by_thread.items()}

    def find(self, number: int, function: str) -> list[int]:
        """The operator of a gradient function, such as number 12, `MulBackward0`; several where threads that each count
        by themselves ran alike ones."""
        found = [self._find(thread, number, function) for thread in self._by_thread]
        known = [operator for operator in found if operator is not None]
        if len(known) > 1:
            # The same number in two threads: whose name is in the function's?
            return [operator for operator in known if _is_of(self._names[operator], function)] or known[:1]
        return known

    def _find(self, thread: int, number: int, function: str) -> int | None:
        shown = self._by_thread[thread]
        if number in shown:
            return shown[number][0]
        if function == "CopySlices":
            place = bisect_left(self._numbers[thread], number)
            before = shown[self._numbers[thread][place - 1]] if place else []
            return next((operator for operator in reversed(before) if self._is_in_place(operator)), None)
        return next((operator for operator in shown.get(number + 1, ()) if self._is_in_place(operator)), None)

    def _is_in_place(self, operator: int) -> bool:
        return _bare(self._names[operator]).endswith("_")


def _is_of(op: str, function: str) -> bool:
    """Whether `MulBackward0` may be the gradient of `aten.mul.Tensor`."""
    return function.lower().startswith(re.sub("[^a-z0-9]", "", _bare(op).lower()))


def _bare(op: str) -> str:
    """`add_` of `aten.add_.Tensor`; a higher-order operator has only the one name."""
    return op.split(".")[1] if "." in op else op
