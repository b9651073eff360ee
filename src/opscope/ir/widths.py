"""How wide text is in a terminal: Chinese, Japanese and Korean signs take two cells, signs that combine take none."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import category, east_asian_width


def width(text: str) -> int:
    """
    >>> width("conv1"), width("编码器"), width("e\\u0301")
    (5, 6, 1)
    """
    return len(text) if text.isascii() else _width(text)


@lru_cache(4096)
def _width(text: str) -> int:
    return sum(map(_cells, text))


def _cells(sign: str) -> int:
    if category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(sign) in ("W", "F") else 1


def left(text: str, cells: int) -> str:
    """Filled up with spaces to so many cells."""
    return text.ljust(cells) if text.isascii() else text + " " * (cells - width(text))


def right(text: str, cells: int) -> str:
    return text.rjust(cells) if text.isascii() else " " * (cells - width(text)) + text


def cut(text: str, most: int) -> str:
    """No wider than that; what is cut off ends in an ellipsis.

    >>> cut("编码器", 5), cut("编码器", 6)
    ('编码…', '编码器')
    """
    if (len(text) if text.isascii() else _width(text)) <= most:
        return text
    taken = 0
    for place, sign in enumerate(text):
        taken += _cells(sign)
        if taken > most - 1:
            return text[:place] + "…"
    return text
