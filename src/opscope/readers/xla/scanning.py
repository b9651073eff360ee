"""Finding one's way in HLO and MLIR text: where brackets end, and what lies between marks outside of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What changes how deep a place is, or may part a text; quoted text and arrows are passed over whole.
_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|->|[()\[\]{}<>,]| : | at ', re.DOTALL)
_OPENING, _CLOSING = "([{", ")]}"


def outside(text: str, angles: bool = True) -> Iterator[tuple[int, str]]:
    """The marks that are in no brackets, each with its place. `angles`: < and > are brackets, too."""
    opening, closing = (_OPENING + "<", _CLOSING + ">") if angles else (_OPENING, _CLOSING)
    depth = 0
    for found in _MARK.finditer(text):
        mark = found[0]
        if mark in opening:
            depth += 1
        elif mark in closing:
            depth -= 1
        elif depth == 0:
            yield found.start(), mark


def type_start(text: str) -> int:
    """Where the last ` : ` outside of brackets is; -1: there is none."""
    return max((at for at, mark in outside(text) if mark == " : "), default=-1)


def split_top(text: str, angles: bool = True) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    parts: list[str] = []
    start = 0
    for at, mark in outside(text, angles):
        if mark == ",":
            parts.append(text[start:at])
            start = at + 1
    if text[start:].strip():
        parts.append(text[start:])
    return parts


def end_of_brackets(text: str, at: int) -> int:
    """Behind the bracket that closes the one here."""
    depth = 0
    for found in _MARK.finditer(text, at):
        if found[0] in _OPENING:
            depth += 1
        elif found[0] in _CLOSING:
            depth -= 1
            if depth == 0:
                return found.end()
    raise ValueError("a bracket is not closed")


_ESCAPED = re.compile(r"\\(?:([0-9A-F]{2})|(.))", re.DOTALL)  # of MLIR: a byte in hexadecimal, or a mark
_ESCAPED_IN_C = re.compile(r"\\(?:([0-7]{3})|(.))", re.DOTALL)  # of HLO: a byte in octal, or a mark


def unescaped(text: str, in_c: bool = False) -> str:
    """What stands between quotes, as it was before it was written there: names of files may hold any letters."""
    if "\\" not in text:
        return text
    base, pattern = (8, _ESCAPED_IN_C) if in_c else (16, _ESCAPED)
    parts: list[bytes] = []
    at = 0
    for found in pattern.finditer(text):
        parts.append(text[at : found.start()].encode("utf-8", "surrogatepass"))
        parts.append(bytes([int(found[1], base) & 0xFF]) if found[1] else found[2].encode("utf-8", "surrogatepass"))
        at = found.end()
    parts.append(text[at:].encode("utf-8", "surrogatepass"))
    return b"".join(parts).decode("utf-8", "replace")


def last_group(text: str) -> int:
    """Where the bracket opens that the text ends with; -1: it ends with none."""
    end = len(text.rstrip())
    at = 0
    while 0 <= (at := text.find("(", at)) < end:
        try:
            closed = end_of_brackets(text, at)
        except ValueError:
            return -1
        if closed == end:
            return at
        at = closed
    return -1
