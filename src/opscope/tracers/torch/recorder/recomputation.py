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
_FARTHEST_SCATTERED = 500  # the same where operators are left out between them
_MOST_LEFT_OUT = 500
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
        wanted = [names[i] for i in stretch]
        start = _start(place_in_first.get(known, 0), wanted, first, names)
        if start is not None:
            found.update(zip(stretch, first[start : start + len(stretch)], strict=False))
        else:
            found.update(zip(stretch, _scattered(place_in_first.get(known, 0), wanted, first, names), strict=False))
    return found


def _scattered(known: int, wanted: Sequence[str], first: Sequence[int], names: Sequence[str]) -> list[int]:
    """The operators with the wanted names, in this order and as close together as they are anywhere: selective
    checkpointing keeps the results of some, and leaves those out."""
    best: list[int] = []
    for start in range(min(known, len(first) - 1), max(-1, known - _FARTHEST_SCATTERED), -1):
        if names[first[start]] != wanted[0]:
            continue
        found: list[int] = []
        for place in range(start, min(start + _MOST_LEFT_OUT + len(wanted), len(first))):
            if names[first[place]] == wanted[len(found)]:
                found.append(place)
                if len(found) == len(wanted):
                    break
        if len(found) == len(wanted) and (not best or found[-1] - found[0] < best[-1] - best[0]):
            best = found
    return [first[place] for place in best]


def _start(known: int, wanted: Sequence[str], first: Sequence[int], names: Sequence[str]) -> int | None:
    """The place at or before `known` from which `first` runs through the wanted names."""
    # The stretch may end before `known`, where only what comes before it was needed.
    for start in range(min(known + 1, len(first) - 1), max(-1, known - _FARTHEST), -1):
        if len(first) - start >= len(wanted) and all(
            names[first[start + offset]] == name for offset, name in enumerate(wanted)
        ):
            return start
    return None
