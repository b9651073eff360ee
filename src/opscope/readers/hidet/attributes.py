"""Attribute values, which Hidet writes as text: `[0, 2, 1]`, `8.0f`, `True`, `"simt"`."""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any, cast

_LONGEST = 20_000
_NUMBER_WITH_LETTERS = re.compile(r"\d(?![eE][+-]?\d)[A-Za-z_]")


def parsed(text: str, quoted: bool = False) -> Any:
    """The value that a text means; the text itself where it is no plain data (`8.0f`, `[batch, 128]`).

    `quoted` says that strings are in quotes; elsewhere `float32` is one as written.
    """
    text = text.strip()
    if len(text) > _LONGEST or (not quoted and text[:1] in "\"'"):
        return text
    if quoted and len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    if _NUMBER_WITH_LETTERS.search(text):  # `8.0f`: Python would warn, and then refuse
        return _symbolic(text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return _symbolic(text)
    return _plain(value) if _is_plain(value) else text


def _symbolic(text: str) -> Any:
    """`[batch, 12, 64]` as a list with the symbol in it."""
    inside = text[1:-1]
    if text[:1] in ("[", "(") and text[-1:] in ("]", ")") and not set(inside) & set("[](){}\"'="):
        return [parsed(item) for item in inside.split(",") if item.strip()]
    return text


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, cast("list[Any]", value)))
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in cast("dict[Any, Any]", value).items())
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | str) or (isinstance(value, int) and abs(value) < 1 << 63)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def split(text: str) -> list[str]:
    """What is between commas that are in no bracket and no quotes."""
    parts: list[str] = []
    depth = start = 0
    in_quotes = False
    for i, c in enumerate(text):
        if c == '"':
            in_quotes = not in_quotes
        elif in_quotes:
            continue
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth <= 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def dimension(text: Any) -> int | str | None:
    """A size: Hidet 0.6 writes `"128"` and `"batch"`, 0.2 writes 128."""
    if isinstance(text, bool) or text is None:
        return None
    if isinstance(text, int):
        return text if 0 <= text < 1 << 53 else None
    if not isinstance(text, str):
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text) if len(text) < 16 else None
    return text or None
