"""Sets of ranks as text: `0-7`, `0-56:8` (every eighth), `0-3,8-11`."""

from __future__ import annotations

from collections.abc import Iterable


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks in their order, runs of equal distance as one piece.

    >>> ranks_text([0, 1, 2, 3, 8, 16, 24, 5])
    '0-3,8-24:8,5'
    """
    given = list(ranks)
    pieces: list[str] = []
    begin = 0
    while begin < len(given):
        end = begin + 1
        step = given[end] - given[begin] if end < len(given) else 0
        while end < len(given) and step > 0 and given[end] - given[end - 1] == step:
            end += 1
        if end - begin < (2 if step == 1 else 3):
            end = begin + 1
        if end == begin + 1:
            pieces.append(str(given[begin]))
        else:
            pieces.append(f"{given[begin]}-{given[end - 1]}" + (f":{step}" if step > 1 else ""))
        begin = end
    return ",".join(pieces)


def ranks_of(text: str) -> list[int]:
    """The ranks that `ranks_text` wrote; ValueError if it is something else.

    >>> ranks_of("0-3,8-24:8,5")
    [0, 1, 2, 3, 8, 16, 24, 5]
    """
    found: list[int] = []
    for piece in filter(None, text.split(",")):
        span, _, step = piece.partition(":")
        first, dash, last = span.partition("-")
        if dash and (int(last) < int(first) or int(last) - int(first) > 1 << 24):
            raise ValueError(f"{piece!r} are no ranks")
        found.extend(range(int(first), int(last) + 1, int(step or 1)) if dash else [int(first)])
    return found
