"""The small texts of Model Explorer's JSON: numbers, attributes, frames, types."""

from __future__ import annotations

import json
import re
from typing import Any

from opscope.ir import Frame
from opscope.ir.pools import Dim

_LONGEST_NUMBER = 300


def number(digits: str) -> int | float:
    """Reading very long numbers takes quadratic time, and no attribute means them."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


def by_number(text: str) -> tuple[int, int, str]:
    return (0, int(text), "") if text.isascii() and text.isdigit() and len(text) < 10 else (1, 0, text)


def place(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def from_text(text: str) -> Any:
    if text[:1] not in tuple('"-0123456789[{tfnNI'):
        return text
    try:
        return json.loads(text, parse_int=number)
    except (ValueError, RecursionError):
        return text


def frame(text: str) -> Frame:
    """`file.py:12 function`, as our text dump writes a frame."""
    found = re.fullmatch(r"(.*?):(\d{1,9})(?: (.*))?", text, re.DOTALL)
    return Frame(found[1], int(found[2]), found[3] or "") if found else Frame(text, 0, "")


_DTYPE = r"[A-Za-z_][\w.:]*"
_BRACKETS = re.compile(rf"(?:({_DTYPE}|\?)\s*)?[\[(](.*)[\])]\s*(?:({_DTYPE}))?")
_MLIR = re.compile(rf"tensor<((?:(?:\d+|\?)x)*)({_DTYPE})>")
_CROSSES = re.compile(r"\d+(?:[x×]\d+)*")


def parse_type(text: str) -> tuple[str, list[Dim] | None] | None:
    """`float32[1,3]`, `(1, 3)`, `tensor<1x3xf32>`, `1x3`: dtype ("": not said) and shape; None: neither.

    >>> parse_type("float32[1,batch,?]")
    ('float32', [1, 'batch', None])
    """
    text = text.strip()
    if not text or len(text) > 1000:
        return None
    if found := _MLIR.fullmatch(text):
        return found[2], [_dim(part) for part in found[1].split("x")[:-1]]
    if _CROSSES.fullmatch(text):
        return "", [_dim(part) for part in re.split("[x×]", text)]
    if found := _BRACKETS.fullmatch(text):
        dtype = (found[1] or found[3] or "").replace("?", "")
        inner = found[2].strip()
        if inner == "…":
            return dtype, None
        if re.search(r"[\[\](){}<>\"]", inner):
            return None
        return dtype, [_dim(part) for part in inner.rstrip(",").split(",")] if inner else []
    return None


def _dim(text: str) -> Dim:
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    return None if text in ("?", "-1", "None", "") else text
