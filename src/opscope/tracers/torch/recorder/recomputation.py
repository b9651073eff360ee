"""Joins operators that checkpointing runs a second time to the ones that ran first.

While one gradient function waits for its saved tensors, a stretch of the forward pass runs again. The function
belongs to an operator inside that stretch, so we know about where the original is; the sequence of operators
tells exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

# Autograd adds these or leaves them out, depending on whether it saves tensors at that moment.
PASSED_OVER = frozenset({"aten.detach", "aten.alias", "aten.detach_"})
_FARTHEST = 20_000  # operators before the known one that are tried as the beginning


def align(
    again: Sequence[int],
    names: Sequence[str],
    node_sequence: Sequence[int],
    forward: Mapping[int, int],
    phases: Sequence[str],
) -> dict[int, int]:
    """Recomputed operator -> original. `forward` says which operator the waiting gradient function belongs to."""
    found: dict[int, int] = {}
    first = [i for i, phase in enumerate(phases) if phase == "forward" and names[i] not in PASSED_OVER]
    place_in_first = {operator: place for place, operator in enumerate(first)}
    for _, run in groupby(again, key=lambda i: node_sequence[i]):
        stretch = [i for i in run if names[i] not in PASSED_OVER]
        known = forward.get(stretch[0]) if stretch else None
        if known is None:
            continue
        if known not in place_in_first:  # one that is passed over: the next one will do
            known = next((i for i in first if i > known), first[-1] if first else -1)
        start = _start(place_in_first.get(known, 0), [names[i] for i in stretch], first, names)
        if start is not None:
            found.update(zip(stretch, first[start : start + len(stretch)], strict=False))
    return found


def _start(known: int, wanted: Sequence[str], first: Sequence[int], names: Sequence[str]) -> int | None:
    """The place at or before `known` from which `first` runs through the wanted names."""
    # The stretch may end before `known`, where only what comes before it was needed.
    for start in range(min(known + 1, len(first) - 1), max(-1, known - _FARTHEST), -1):
        if len(first) - start >= len(wanted) and all(
            names[first[start + offset]] == name for offset, name in enumerate(wanted)
        ):
            return start
    return None
