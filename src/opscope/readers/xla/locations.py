"""Locations of MLIR: where an operation comes from, as JAX writes it.

#loc4 = loc("train.py":4:19 to :27)
#loc9 = loc("loss"(#loc4))                          a function, around a line in it
#loc14 = loc(callsite(#loc9 at #loc10))             a call, and the line that calls
#loc19 = loc("jit(loss)/jvp(l0)/dot_general"(#loc14))   the operation's own name
"""

from __future__ import annotations

import re
from typing import NamedTuple

from opscope.ir import Frame

from .hlo import Place
from .scanning import outside, split_top, unescaped

_DEFINED = re.compile(r"(#[\w$.\-]+) = loc\((.*)\)\s*\Z")
_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\((.*)\))?\Z', re.DOTALL)
_DEEPEST = 200


class _Found(NamedTuple):
    name: str = ""
    frames: tuple[Frame, ...] = ()  # the outermost first
    column: int = 0


class Locations:
    """Locations are defined behind the operations that name them, so they are looked up at the end."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}
        self._known: dict[str, _Found] = {}

    def define(self, line: str) -> None:
        if found := _DEFINED.match(line):
            self._written[found[1]] = found[2]

    def at(self, text: str) -> tuple[str, Place]:
        """The operation's name (`jit(f)/…/add`, or empty), and its place in the source."""
        found = self._found(text, 0)
        return found.name, Place(found.frames, found.column)

    def _found(self, text: str, depth: int) -> _Found:
        text = text.strip()
        if not text or text == "unknown" or depth > _DEEPEST:
            return _Found()
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._read(text, depth)
        return known

    def _read(self, text: str, depth: int) -> _Found:
        if text.startswith("#"):
            return self._found(self._written.get(text, ""), depth + 1)
        if text.startswith("loc(") and text.endswith(")"):
            return self._found(text[4:-1], depth + 1)
        if found := _LINE.match(text):
            return _Found("", (Frame(unescaped(found[1]), int(found[2]), ""),), int(found[3]))
        if text.startswith("callsite("):
            callee, caller = _two(text[len("callsite(") : -1])
            inner, outer = self._found(callee, depth + 1), self._found(caller, depth + 1)
            return _Found(inner.name or outer.name, (*outer.frames, *inner.frames), inner.column)
        if text.startswith("fused"):
            parts = text[text.find("[") + 1 : text.rfind("]")]
            found = [self._found(part, depth + 1) for part in split_top(parts, angles=False)]
            return next((one for one in found if one.name or one.frames), _Found())
        if found := _NAMED.match(text):
            return self._named(unescaped(found[1]), found[2] or "", depth)
        return _Found()

    def _named(self, name: str, child: str, depth: int) -> _Found:
        inner = self._found(child, depth + 1)
        is_line = len(inner.frames) == 1 and not inner.frames[0].function and not inner.name
        if is_line and "/" not in name and "(" not in name:
            file, line, _ = inner.frames[0]
            return _Found("", (Frame(file, line, name),), inner.column)
        return inner._replace(name=name)


def _two(text: str) -> tuple[str, str]:
    """`A at B`, where both may have brackets."""
    at = next((at for at, mark in outside(text, angles=False) if mark == " at "), len(text))
    return text[:at], text[at + 4 :]
