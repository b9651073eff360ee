"""Two sequences that are the same but for what one of them lacks: which item of the one is which of the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_FAR = 400  # items that are looked through for the next common run
_RUN = 3  # so many equal items in a row are no accident
_MOST_COMPARED = 1 << 18  # pairs of items between two common runs


def aligned(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """For each item of `left` its position in `right`, or -1; positions only grow. Takes linear time.

    >>> aligned(["a", "x", "b", "c"], ["a", "b", "y", "c"])
    [0, -1, 1, 3]
    """
    found = [-1] * len(left)
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            found[i] = j
            i, j = i + 1, j + 1
            continue
        i2, j2 = _next(left, right, i, j)
        for a, b in _common(left, right, i, i2, j, j2):
            found[a] = b
        i, j = i2, j2
    return found


def _next(left: Sequence[str], right: Sequence[str], i: int, j: int) -> tuple[int, int]:
    """The nearest place at which both go on in the same way; where there is none, both ends."""
    for far in range(1, _FAR):
        for a in range(far + 1):
            if _agree(left, right, i + a, j + far - a):
                return i + a, j + far - a
    where: dict[str, int] = {}
    for position in range(len(right) - 1, j - 1, -1):
        where[right[position]] = position
    for a in range(i, len(left)):  # nothing near: the next item of `left` that comes at all
        position = where.get(left[a], -1)
        if position >= 0 and _agree(left, right, a, position):
            return a, position
    return len(left), len(right)


def _agree(left: Sequence[str], right: Sequence[str], i: int, j: int) -> bool:
    if i + _RUN > len(left) or j + _RUN > len(right):
        return False
    return all(left[i + k] == right[j + k] for k in range(_RUN))


def _common(left: Sequence[str], right: Sequence[str], i: int, i2: int, j: int, j2: int) -> list[tuple[int, int]]:
    """The longest common subsequence of two pieces; of long ones, only what is at equal places."""
    rows, columns = i2 - i, j2 - j
    if rows * columns > _MOST_COMPARED:
        return [(i + k, j + k) for k in range(min(rows, columns)) if left[i + k] == right[j + k]]
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for a in range(rows - 1, -1, -1):
        for b in range(columns - 1, -1, -1):
            same = left[i + a] == right[j + b]
            best[a][b] = best[a + 1][b + 1] + 1 if same else max(best[a + 1][b], best[a][b + 1])
    pairs: list[tuple[int, int]] = []
    a = b = 0
    while a < rows and b < columns:
        if left[i + a] == right[j + b]:
            pairs.append((i + a, j + b))
            a, b = a + 1, b + 1
        elif best[a + 1][b] >= best[a][b + 1]:
            a += 1
        else:
            b += 1
    return pairs


def shared_out(items: int, places: int, fits: Callable[[int, int], float]) -> list[int]:
    """The place of each item where items lie in the order of the places, and every place has one at least.

    Of all ways the one whose `fits(item, place)` add up to most. Fewer items than places: the last places have none.
    """
    if not items or not places:
        return [-1] * items
    places = min(items, places)
    least = float("-inf")
    best = [[least] * places for _ in range(items)]
    came = [[0] * places for _ in range(items)]
    for i in range(items):
        for p in range(max(0, places - (items - i)), min(i + 1, places)):
            stay = best[i - 1][p] if i else least
            step = (best[i - 1][p - 1] if i and p else least) if i else (0.0 if p == 0 else least)
            came[i][p] = p if stay > step else p - 1
            best[i][p] = max(stay, step) + fits(i, p)
    found = [0] * items
    place = places - 1
    for i in range(items - 1, -1, -1):
        found[i] = place
        place = came[i][place]
    return found
