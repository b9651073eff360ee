"""Which operator a gradient function belongs to.

Autograd numbers its gradient functions. An operator that needs a gradient gets its function, and so its number,
right before it runs; the recorder notes the number that was given last. Usually that says it all. But:

- operators that need no gradient show the number of the last one that did: the first one with a number is it, unless
  something ran for it before it did (a conjugate is resolved, a hook packs a saved tensor): then its name tells;
- under torch.func an operator gets a function at every level, and shows the number of the last;
- vmap runs other operators in its place: the one that has its name in part, or the first that computes;
- an in-place operator that needs its old value first clones it, so that its own number is less than what it shows, and
  so is the number of one that reads a view which autograd makes anew at that moment;
- an in-place write to a view gets one more function afterwards (`CopySlices`), whose number no operator shows;
- every thread counts by itself, and gradients on a GPU are computed in a thread of their own.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence


class Sequences:
    """Operators by the number they showed."""

    def __init__(
        self,
        names: Sequence[str],
        shown: Sequence[int],
        inside: Sequence[int],
        threads: Mapping[int, int],
        first: int,
    ) -> None:
        self._names = names
        self._inside = inside  # the number of the function that each operator ran in
        self._by_thread: dict[int, dict[int, list[int]]] = {0: {}}
        for operator, number in enumerate(shown):
            thread = threads.get(operator, 0)
            # What was numbered before the recording belongs to operators that were not seen.
            if number >= (first if thread == 0 else 0):
                self._by_thread.setdefault(thread, {}).setdefault(number, []).append(operator)
        self._numbers = {thread: sorted(shown) for thread, shown in self._by_thread.items()}
        self._first = first

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
        # What a function runs itself may show its number, too.
        operators = [o for o in shown.get(number, ()) if self._inside[o] != number]
        if _bare_function(function) in _OF_VIEWS:
            # Of a view of the user's, or one that autograd made by itself, which belongs to none.
            return next((o for o in operators if self._inside[o] < 0 and _has_name(self._names[o], function)), None)
        named = next((o for o in operators if _has_name(self._names[o], function)), None)
        if named is None and number >= self._first and function[-1:].isdigit():  # not one of the user's own
            named = next((o for o in self._soon_after(thread, number) if _has_name(self._names[o], function)), None)
        if named is not None:
            return named
        if operators:
            return self._likely(operators, function)
        if function == "CopySlices":
            place = bisect_left(self._numbers[thread], number)
            before = shown[self._numbers[thread][place - 1]] if place else []
            return next((operator for operator in reversed(before) if self._is_in_place(operator)), None)
        return None

    def _soon_after(self, thread: int, number: int) -> Iterator[int]:
        """The first operators that showed a greater number."""
        numbers, shown = self._numbers[thread], self._by_thread[thread]
        begin = bisect_right(numbers, number)
        for later in numbers[begin : begin + _SOON]:
            if later > number + _SOON:
                return
            yield from (o for o in shown[later][:_SOON] if self._inside[o] != number)

    def _likely(self, operators: list[int], function: str) -> int:
        """Of operators none of which has the function's name: the one that has a part of it, or the first that is more
        than a view."""
        wanted = _bare_function(function)
        letters = {o: _letters(self._names[o]) for o in operators}
        alike = [(len(name), -o) for o, name in letters.items() if len(name) > 1 and name in wanted]
        if alike:
            return -max(alike)[1]
        return next((o for o in operators if letters[o] not in _PLUMBING), operators[0])

    def _is_in_place(self, operator: int) -> bool:
        return _bare(self._names[operator]).endswith("_")


def _is_of(op: str, function: str) -> bool:
    """Whether `MulBackward0` may be the gradient of `aten.mul.Tensor`."""
    return function.lower().startswith(_letters(op))


def _has_name(op: str, function: str) -> bool:
    """Whether `MulBackward0` is named after `aten.mul.Tensor`."""
    return _letters(op) == _bare_function(function)


def _letters(op: str) -> str:
    """`nativelayernorm` of `aten.native_layer_norm`."""
    return re.sub("[^a-z0-9]", "", _bare(op).lower())


def _bare_function(function: str) -> str:
    """`mul` of `MulBackward0`."""
    return re.sub(r"backwards?\d*$", "", function.lower())


_SOON = 8  # numbers and operators after a function's own among which its operator may be

# Functions that autograd makes by itself for a view whose base was written in place.
_OF_VIEWS = frozenset({"asstrided"})

# What prepares arguments for the operator that a function is named after.
_PLUMBING = frozenset(
    "view unsqueeze squeeze permute transpose t expand clone tocopy detach alias reshape movedim contiguous slice select"
    .split()
)


def _bare(op: str) -> str:
    """`add_` of `aten.add_.Tensor`; a higher-order operator has only the one name."""
    return op.split(".")[1] if "." in op else op
