"""What is inside of fused operators where only names are given (`fusion="Reshape Matmul Add"`).

The stage before still has those operators. Walking back from the outputs of both graphs at once, each fused operator
is the set of operators before that makes the same value, has these names, and reads what the fused one reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy

from .flow import Flow, Operator, Tensor, fused_names

BY_STRUCTURE = "fused, by structure"
_MOST_STEPS = 20_000
_MOST_OPERATORS = 500


def open_fused(before: Flow, after: Flow) -> int:
    """Give the fused operators of `after` what is inside of them; how many could not be found."""
    if not any(fused_names(operator) and operator.fused is None for operator in after.operators):
        return 0
    return _Walk(before, after).run()


class _Walk:
    def __init__(self, before: Flow, after: Flow) -> None:
        self.before, self.after = before, after
        self.types = {t.key: (t.dtype, t.shape) for t in _tensors(before)}
        self.after_types = {t.key: (t.dtype, t.shape) for t in _tensors(after)}
        self.maker = {t.key: i for i, operator in enumerate(before.operators) for t in operator.outputs}
        self.readers: dict[str, set[int]] = {}
        for i, operator in enumerate(before.operators):
            for key in operator.inputs:
                self.readers.setdefault(key, set()).add(i)
        self.returned = set(before.outputs)
        # A tensor of `after` -> the same tensor in `before`.
        self.known = dict(zip(after.outputs, before.outputs, strict=False))
        self.known.update((new.key, old.key) for old, new in zip(before.inputs, after.inputs, strict=False))

    def run(self) -> int:
        lost = 0
        for operator in reversed(self.after.operators):
            names = fused_names(operator)
            inside = self._inside(operator, names or [operator.op])
            if inside is None:
                lost += bool(names and operator.fused is None)
                continue
            self._learn_inputs(operator, inside)
            if names and operator.fused is None:
                operator.fused = self._flow(operator, inside, names)
                operator.fused_label = BY_STRUCTURE
        return lost

    def _inside(self, operator: Operator, names: list[str]) -> list[int] | None:
        made = [self.known[t.key] for t in operator.outputs if t.key in self.known]
        start = {self.maker[key] for key in made if key in self.maker}
        needed = Counter(names)
        needed.subtract(self.before.operators[i].op for i in start)
        if not start or min(needed.values()) < 0 or len(names) > _MOST_OPERATORS:
            return None
        wanted = Counter[object](
            self.after_types[key] for key in dict.fromkeys(operator.inputs) if key in self.after_types
        )
        steps = [_MOST_STEPS]
        return self._search(start, +needed, set(made), wanted, steps)

    def _search(
        self, chosen: set[int], needed: Counter[str], made: set[str], wanted: Counter[object], steps: list[int]
    ) -> list[int] | None:
        steps[0] -= 1
        if steps[0] < 0:
            return None
        if not needed:
            read = Counter[object](self.types[key] for key in self._boundary(chosen) if key in self.types)
            return sorted(chosen) if read == wanted else None
        for candidate in self._candidates(chosen, needed, made):
            less = needed - Counter([self.before.operators[candidate].op])
            found = self._search({*chosen, candidate}, less, made, wanted, steps)
            if found is not None:
                return found
        return None

    def _candidates(self, chosen: set[int], needed: Counter[str], made: set[str]) -> Iterator[int]:
        """Operators that only the chosen ones read, the latest first."""
        near = {self.maker[key] for i in chosen for key in self.before.operators[i].inputs if key in self.maker}
        for i in sorted(near - chosen, reverse=True):
            operator = self.before.operators[i]
            if needed[operator.op] > 0 and all(
                key in made or (key not in self.returned and self.readers.get(key, set()) <= chosen)
                for key in (t.key for t in operator.outputs)
            ):
                yield i

    def _boundary(self, chosen: set[int]) -> list[str]:
        """What the chosen ones read and do not make, in order."""
        inner = {t.key for i in chosen for t in self.before.operators[i].outputs}
        read = [key for i in sorted(chosen) for key in self.before.operators[i].inputs]
        return [key for key in dict.fromkeys(read) if key not in inner]

    def _learn_inputs(self, operator: Operator, inside: list[int]) -> None:
        left = self._boundary(set(inside))
        for key in dict.fromkeys(operator.inputs):
            if self.known.get(key) in left:
                left.remove(self.known[key])
        for key in dict.fromkeys(operator.inputs):
            fits = [old for old in left if self.types.get(old) == self.after_types.get(key)]
            if key not in self.known and fits:
                self.known[key] = fits[0]
                left.remove(fits[0])

    def _flow(self, operator: Operator, inside: list[int], names: list[str]) -> Flow:
        # In the order in which the fused operator names them.
        waiting = list(inside)
        ordered: list[Operator] = []
        for name in names:
            i = next(i for i in waiting if self.before.operators[i].op == name)
            waiting.remove(i)
            ordered.append(copy(self.before.operators[i]))
        tensors = {t.key: t for t in _tensors(self.before)}
        inputs = [tensors.get(self.known.get(key, ""), Tensor(key)) for key in operator.inputs]
        outputs = [self.known[t.key] for t in operator.outputs if t.key in self.known]
        return Flow([copy(t) for t in inputs], [], ordered, outputs, self.before.dialect)


def _tensors(flow: Flow) -> Iterator[Tensor]:
    yield from flow.inputs
    yield from flow.constants
    for operator in flow.operators:
        yield from operator.outputs
