"""Protocol buffers as text (.pbtxt), into the same messages as their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from opscope.errors import BadInput
from opscope.readers.protobuf import Message, Schema

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[\w.+\-]+)|(?P<sign>[{}<>:\[\],;])"""
)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_PLAIN = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_DEEPEST = 100
# What fields of these kinds hold; all others are messages.
_HELD: dict[str, tuple[type, ...]] = {
    "": (), "string": (str,), "bytes": (bytes,), "span": (bytes,), "int": (int,), "uint": (int,), "float": (int, float),
    "double": (int, float), "fixed32": (int,), "fixed64": (int,),
}  # fmt: skip
_TYPES = [
    "INVALID",
    "FLOAT",
    "DOUBLE",
    "INT32",
    "UINT8",
    "INT16",
    "INT8",
    "STRING",
    "COMPLEX64",
    "INT64",
    "BOOL",
    "QINT8",
    "QUINT8",
    "QINT32",
    "BFLOAT16",
    "QINT16",
    "QUINT16",
    "UINT16",
    "COMPLEX128",
    "HALF",
    "RESOURCE",
    "VARIANT",
    "UINT32",
    "UINT64",
    "FLOAT8_E5M2",
    "FLOAT8_E4M3FN",
]
_NUMBERS = {f"DT_{name}": number for number, name in enumerate(_TYPES)} | {"true": 1, "false": 0, "True": 1}


def parse(text: str, schema: Schema, name: str) -> Message:
    return _Parser(text, schema).message(name, "", 0)


class _Parser:
    def __init__(self, text: str, schema: Schema) -> None:
        self._tokens = self._all(text)
        self._next: tuple[str, str] = next(self._tokens)
        # name -> (kind, is a list), by message
        self._fields = {
            message: {field.name: (field.kind, field.is_list) for field in fields.values()}
            for message, fields in schema.messages.items()
        }

    def _all(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise BadInput(f"at character {at:,}: {text[at : at + 20]!r} is no part of a text protocol buffer")
            if found.lastgroup is not None:
                yield found.lastgroup, found[0]
            at = found.end()
        while True:
            yield "end", ""

    def _take(self) -> tuple[str, str]:
        taken, self._next = self._next, next(self._tokens)
        return taken

    def message(self, name: str, closing: str, depth: int) -> Message:
        if depth > _DEEPEST:
            raise BadInput(f"messages in messages, more than {_DEEPEST}")
        found: Message = {}
        fields = self._fields.get(name, {})
        while self._next[1] != closing or self._next[0] == "text":
            kind, key = self._take()
            if kind != "word":
                raise BadInput(f"{key[:20]!r} where the name of a field should be: it may be cut off or damaged")
            field, is_list = fields.get(key, ("", False))
            if self._next[1] == ":":
                self._take()
            for value in self._values(field, depth):
                if not isinstance(value, _HELD.get(field, dict)):
                    continue  # of a field that is not known, or not what its schema says
                if is_list:
                    found.setdefault(key, []).append(value)
                else:
                    found[key] = value
            if self._next[1] in (",", ";"):
                self._take()
        self._take()
        return found

    def _values(self, field: str, depth: int) -> Iterator[Any]:
        if self._next == ("sign", "["):
            self._take()
            while self._next[1] != "]":
                if self._next[0] == "end":
                    raise BadInput("a list without an end: it may be cut off")
                yield self._value(field, depth)
                if self._next[1] == ",":
                    self._take()
            self._take()
        else:
            yield self._value(field, depth)

    def _value(self, field: str, depth: int) -> Any:
        kind, text = self._take()
        if kind == "sign" and text in "{<":
            return self.message(field, "}" if text == "{" else ">", depth + 1)
        if kind == "text":
            data = _unescaped(text)
            while self._next[0] == "text":
                data += _unescaped(self._take()[1])
            return data.decode("utf-8", "backslashreplace") if field == "string" else data
        if kind != "word":
            raise BadInput(f"{text[:20]!r} where a value should be: it may be cut off or damaged")
        if text in _NUMBERS:
            return _NUMBERS[text]
        try:
            return float(text.rstrip("f")) if field in ("float", "double") else int(text[:40], 0)
        except ValueError:
            return 0  # the name of a number that is not known


def _unescaped(text: str) -> bytes:
    def plain(found: re.Match[bytes]) -> bytes:
        code = found[1]
        if code[:1] == b"x" and len(code) > 1:
            return bytes([int(code[1:], 16)])
        if code[:1] in b"01234567":
            return bytes([int(code, 8) & 255])
        return _PLAIN.get(code, code)

    return _ESCAPE.sub(plain, text[1:-1].encode("utf-8", "backslashreplace"))
