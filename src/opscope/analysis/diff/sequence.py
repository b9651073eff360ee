"""The longest common part of two sequences that differ in few places (Myers' greedy algorithm)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

MOST_DIFFERENCES = 1200  # the work grows with its square; graphs that differ more are aligned by structure alone


def align(a: Sequence[int], b: Sequence[int], most: int = MOST_DIFFERENCES) -> list[tuple[int, int]]:
    """Pairs of places with equal entries, rising in both; empty where more than `most` entries differ.

    >>> align([1, 2, 3, 4], [1, 3, 9, 4])
    [(0, 0), (2, 1), (3, 3)]
    """
    start = 0
    while start < len(a) and start < len(b) and a[start] == b[start]:
        start += 1
    end_a, end_b = len(a), len(b)
    while end_a > start and end_b > start and a[end_a - 1] == b[end_b - 1]:
        end_a -= 1
        end_b -= 1
    head = [(i, i) for i in range(start)]
    tail = list(zip(range(end_a, len(a)), range(end_b, len(b)), strict=True))
    return head + _middle(a, b, start, end_a, end_b, most) + tail


def _middle(a: Sequence[int], b: Sequence[int], start: int, end_a: int, end_b: int, most: int) -> list[tuple[int, int]]:
    n, m = end_a - start, end_b - start
    if not n or not m or abs(n - m) > most:
        return []
    most = min(most, n + m)
    furthest = array("i", [0]) * (2 * most + 3)  # by diagonal: how far along `a`
    centre = most + 1
    history: list[array[int]] = []
    for d in range(most + 1):
        history.append(furthest[centre - d - 1 : centre + d + 2])
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and furthest[centre + k - 1] < furthest[centre + k + 1])
            x = furthest[centre + k + 1] if down else furthest[centre + k - 1] + 1
            y = x - k
            while x < n and y < m and a[start + x] == b[start + y]:
                x += 1
                y += 1
            furthest[centre + k] = x
            if x >= n and y >= m:
                return _walk_back(history, n, m, start)
    return []


def _walk_back(history: list[array[int]], x: int, y: int, start: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for d in range(len(history) - 1, -1, -1):
        before = history[d]  # diagonals -d-1 … d+1, as they were before step d
        k = x - y
        down = k == -d or (k != d and before[k - 1 + d + 1] < before[k + 1 + d + 1])
        previous = k + 1 if down else k - 1
        was_x = before[previous + d + 1] if d else 0
        was_y = was_x - previous if d else 0
        stop = was_x + (0 if down or not d else 1)  # the step itself; after it comes the run of equal entries
        while x > stop:
            x -= 1
            y -= 1
            pairs.append((start + x, start + y))
        x, y = was_x, was_y
    return pairs[::-1]
