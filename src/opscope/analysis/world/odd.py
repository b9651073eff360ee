"""Ranks that compute something else than those in their place should: one rank against the others along a dimension."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from .mesh import Mesh


def odd_ranks(
    classes: Mapping[int, Sequence[int]], mesh: Mesh, pipelines: Collection[str] = ()
) -> dict[int, tuple[int, str]]:
    """Ranks that stand out: to each a rank that computes what it should, and the dimension. `classes` are ranks that
    compute the same, by one of them; `pipelines` the dimensions along which ranks hand on work.

    Along a dimension in which most ranks compute the same, one that does not is odd, unless the ranks in its place do
    so everywhere: the first stage of a pipeline differs from the others by design. Where each place computes something
    of its own, none is odd.
    """
    class_of = {rank: first for first, ranks in classes.items() for rank in ranks}
    found: dict[int, tuple[int, str]] = {}
    for i, dimension in enumerate(mesh.dimensions):
        lines = [line for line in {tuple(mesh.line(rank, i)): None for rank in class_of} if _is_there(line, class_of)]
        if dimension.size < 2 or not lines or (len(lines) == 1 and dimension.name in pipelines):
            continue
        usual = [_usual([class_of[rank] for rank in line], lines, class_of) for line in lines]
        for line, most in zip(lines, usual, strict=True):
            if most is None:
                continue
            like = next(rank for rank in line if class_of[rank] == most)
            for place, rank in enumerate(line):
                if class_of[rank] != most and not _is_everywhere(place, lines, usual, class_of):
                    found.setdefault(rank, (like, dimension.name))
    return found


def _is_there(line: Sequence[int], class_of: Mapping[int, int]) -> bool:
    return all(rank in class_of for rank in line)


def _usual(row: list[int], lines: list[tuple[int, ...]], class_of: Mapping[int, int]) -> int | None:
    """What most ranks of a line compute; of two that differ, what is more frequent elsewhere, or comes first."""
    (most, count), *others = Counter(row).most_common()
    if not others or count > len(row) / 2:
        return most
    if len(row) > 2:
        return None
    everywhere = Counter(class_of[rank] for line in lines for rank in line)
    even = sum(len({class_of[rank] for rank in line}) == 1 for line in lines)
    if len(lines) > 1 and even <= len(lines) / 2:
        return None
    return max(row, key=lambda one: (everywhere[one], -row.index(one)))


def _is_everywhere(
    place: int, lines: list[tuple[int, ...]], usual: list[int | None], class_of: Mapping[int, int]
) -> bool:
    """Whether the ranks in this place are unlike the others on most lines."""
    unlike = sum(most is None or class_of[line[place]] != most for line, most in zip(lines, usual, strict=True))
    return len(lines) > 1 and unlike > len(lines) / 2
