"""The events of a Chrome trace, one after the other: a trace of gigabytes is never in memory as a whole.

A trace is an object with the list "traceEvents" among other fields, or that list alone. Python's decoder reads each
value from a window of the text that moves along; only a value that does not fit makes the window grow.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from opscope.errors import BadInput

_WINDOW = 1 << 22  # bytes that are read at once
_LARGEST = 1 << 26  # characters of one value
_decode = json.JSONDecoder().raw_decode
# They always match; the checker of types does not know.
_blank: Callable[[str, int], Any] = re.compile(r"\s*").match
_between: Callable[[str, int], Any] = re.compile(r"[\s,]*").match
EVENTS = "traceEvents"


class Trace:
    """The fields of a trace beside its events; complete when all events were taken."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.fields: dict[str, Any] = {}
        self.complete = True  # a trace whose end is missing is read as far as it goes
        self._name = name
        self._file = file
        self._text = ""
        self._at = 0
        self._ended = False
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def events(self) -> Iterator[dict[str, Any]]:
        first = self._next()
        if first == "[":
            self._at += 1
            yield from self._list()
            return
        if first != "{":
            raise BadInput(f"{self._name}: not a trace: it begins with {first!r}, not with an object or a list")
        self._at += 1
        while (char := self._next(",")) != "}":
            if not char:
                self.complete = False
                return
            key = self._value()
            if self._next() != ":":
                raise BadInput(f"{self._name}: not a trace: no ':' after the key {str(key)[:40]!r}")
            self._at += 1
            if key == EVENTS and self._next() == "[":
                self._at += 1
                yield from self._list()
                if not self.complete:
                    return
            else:
                self.fields[str(key)] = self._value()

    def _list(self) -> Iterator[dict[str, Any]]:
        while True:
            text, at = self._text, self._at
            try:
                while True:  # the events in the window
                    at = _between(text, at).end()
                    event, at = _decode(text, at)
                    if type(event) is dict:
                        self._at = at
                        yield event
            except (ValueError, IndexError):
                pass
            char = self._next(",")
            if char == "]":
                self._at += 1
                return
            if not char:
                self.complete = False
                return
            try:
                event = self._value()
            except _CutOff:
                self.complete = False
                return
            if isinstance(event, dict):
                yield event

    def _next(self, skipped: str = "") -> str:
        """The next character that is no blank; "" at the end."""
        skip = _between if skipped else _blank
        while True:
            self._at = skip(self._text, self._at).end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> Any:
        """The next value."""
        self._next()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    at = f"character {error.pos:,} of the last {len(self._text):,}"
                    raise _CutOff(f"{self._name}: cut off, or not JSON: {error.msg} at {at}") from None
                continue
            except ValueError as error:  # a number of thousands of digits
                raise BadInput(f"{self._name}: not a trace: {error}") from None
            if end == len(self._text) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def _more(self) -> bool:
        """Move the window along; False at the end of the file."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        if len(rest) > _LARGEST:
            raise BadInput(f"{self._name}: not a trace: a value of more than {_LARGEST:,} characters, or broken JSON")
        data = self._file.read(max(_WINDOW, len(rest)))  # a value that does not fit doubles the window
        self._ended = not data
        self._text, self._at = rest + self._utf8.decode(data, final=self._ended), 0
        return not self._ended


class _CutOff(BadInput):
    """The file ends inside of a value."""
