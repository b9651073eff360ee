"""Which tensors a recording with values="full" keeps whole: those of the operators of the part that was asked for."""

from __future__ import annotations

from opscope.tracers.contract import Part

from .calls import Calls


class Keeping:
    """Says for an operator whether it belongs to the part: by its name and the modules it runs in. A gradient operator
    runs where its forward operator ran."""

    def __init__(self, calls: Calls, part: Part | None) -> None:
        self._calls, self._part = calls, part
        self._call_of: dict[int, int] = {}  # the sequence number of a forward operator -> its call
        self._known: dict[tuple[str, int], bool] = {}

    def __call__(self, op: str, call: int, sequence: int, of_node: int) -> bool:
        if self._part is None:
            return True
        if call >= 0:
            self._call_of[sequence] = call
        else:
            call = self._call_of.get(of_node, -1)
        key = op, call
        if key not in self._known:
            self._known[key] = self._part(op, self._modules(call))
        return self._known[key]

    def _modules(self, call: int) -> tuple[tuple[str, str], ...]:
        steps: list[tuple[str, str]] = []
        while call >= 0:
            row = self._calls.rows[call]
            steps[:0] = [(step.name, step.cls) for step in row.steps]
            call = row.parent
        return tuple(steps)
