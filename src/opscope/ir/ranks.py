"""The ranks of a distributed program: which one was recorded, in which groups it was, and sets of ranks as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .capture import Capture, Table, column
from .columns import frozen
from .facts import RANK, RANK_GROUPS


@dataclass(frozen=True)
class Rank:
    """The rank that a stage was recorded as, and its groups: dimension and ranks of each."""

    rank: int
    world: int
    groups: tuple[tuple[str, str], ...] = ()


def note_rank(capture: Capture, stage: int, rank: int, world: int, groups: Sequence[tuple[str, str]]) -> None:
    """Say which rank of how many a stage was recorded as."""
    numbers = {"rank": column(np.array([rank])), "world": column(np.array([world]))}
    capture.add(Table(stage, "row", frozen([0]), numbers, RANK.name))
    if groups:
        texts = {name: column([group[place] for group in groups]) for place, name in enumerate(("dimension", "ranks"))}
        capture.add(Table(stage, "row", frozen(range(len(groups))), texts, RANK_GROUPS.name))


def rank_of(capture: Capture, stage: int) -> Rank | None:
    """Which rank a stage was recorded as; None if it was not one of several, or a file does not say it well."""
    table = next(iter(capture.facts(RANK.name, stage)), None)
    if table is None or not len(table.index):
        return None
    rank, world = (int(np.asarray(table.columns[name].values)[0]) for name in ("rank", "world"))
    if not 0 <= rank < world:
        return None
    groups = [
        (str(name), str(ranks))
        for found in capture.facts(RANK_GROUPS.name, stage)
        for name, ranks in zip(found.columns["dimension"].values, found.columns["ranks"].values, strict=True)
    ]
    return Rank(rank, world, tuple(groups))


def is_one_rank(capture: Capture) -> bool:
    """Whether a capture is the recording of one rank among several."""
    return len(capture.stages) == 1 and rank_of(capture, 0) is not None


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
