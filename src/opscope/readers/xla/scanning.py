"""Finding one's way in HLO and MLIR text: where brackets end, and what lies between commas outside of them."""

from __future__ import annotations


def type_start(text: str) -> int:
    """Where the last ` : ` outside of brackets is; -1: there is none."""
    depth, quoted, found, at = 0, False, -1, 0
    while at < len(text):
        mark = text[at]
        if quoted:
            if mark == "\\":
                at += 1
            elif mark == '"':
                quoted = False
        elif mark == '"':
            quoted = True
        elif mark in "([{<":
            depth += 1
        elif mark in ")]}" or (mark == ">" and text[at - 1 : at] != "-"):
            depth -= 1
        elif mark == ":" and depth == 0 and text[at - 1 : at + 2] == " : ":
            found = at - 1
        at += 1
    return found


def split_top(text: str, angles: bool = True) -> list[str]:
    """The parts between commas outside of brackets and quotes. `angles`: < and > are brackets, too."""
    opening, closing = ("([{<", ")]}>") if angles else ("([{", ")]}")
    parts: list[str] = []
    depth, quoted, start, at = 0, False, 0, 0
    while at < len(text):
        mark = text[at]
        if quoted:
            if mark == "\\":
                at += 1
            elif mark == '"':
                quoted = False
        elif mark == '"':
            quoted = True
        elif mark in opening:
            depth += 1
        elif mark in closing and text[at - 1 : at + 1] != "->":
            depth -= 1
        elif mark == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    if text[start:].strip():
        parts.append(text[start:])
    return parts


def end_of_brackets(text: str, at: int) -> int:
    """Behind the bracket that closes the one here."""
    depth, quoted = 0, False
    while at < len(text):
        mark = text[at]
        if quoted:
            if mark == "\\":
                at += 1
            elif mark == '"':
                quoted = False
        elif mark == '"':
            quoted = True
        elif mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    raise ValueError("a bracket is not closed")


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
