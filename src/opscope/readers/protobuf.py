"""Protocol buffers that may come from anywhere, without their library and without reading what nobody asks for.

A schema is text: on each line a message and its fields, as `name=number:kind`; what is not listed is skipped.

    NodeProto input=1:string* output=2:string* name=3:string attribute=5:AttributeProto*

Kinds are `int`, `uint`, `float`, `double`, `fixed32`, `fixed64`, `string`, `bytes`, another message, or `span`: bytes
that are not read, of which the result says where they lie. `*` is a list. A message becomes a dict of the fields that
are there. Every length is checked against what is around it, depth and number of messages are limited.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from opscope.errors import BadInput

from .pages import Pages, Span, Whole

Message = dict[str, Any]

_DEEPEST = 100  # as protobuf's own readers
_MOST = 20_000_000  # messages; each takes some hundred bytes of memory
_AT_ONCE = 1 << 16  # a message of this size is read before it is looked at
_HEADER = 20  # a key and a length are not longer
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NUMBERS = {
    "float": (_FIXED32, "f"), "double": (_FIXED64, "d"), "fixed32": (_FIXED32, "I"), "fixed64": (_FIXED64, "Q"),
}  # fmt: skip
_WIDTH = {_FIXED32: 4, _FIXED64: 8}


class _Field(NamedTuple):
    name: str
    wire: int
    kind: str
    is_list: bool
    unpack: Callable[..., tuple[Any, ...]] | None  # of numbers of a fixed width


class Schema:
    """The messages that a text declares."""

    def __init__(self, text: str) -> None:
        self.messages: dict[str, dict[int, _Field]] = {}
        for line in text.replace("\n ", " ").splitlines():
            if line and not line.startswith("#"):
                name, *fields = line.split()
                self.messages[name] = dict(map(_field, fields))


def _field(text: str) -> tuple[int, _Field]:
    name, _, rest = text.partition("=")
    number, _, kind = rest.partition(":")
    is_list, kind = kind.endswith("*"), kind.removesuffix("*")
    if kind in _NUMBERS:
        wire, letter = _NUMBERS[kind]
        return int(number), _Field(name, wire, kind, is_list, struct.Struct(f"<{letter}").unpack_from)
    return int(number), _Field(name, _VARINT if kind in ("int", "uint") else _BYTES, kind, is_list, None)


class Reader:
    """Reads messages of one schema from one file."""

    def __init__(self, data: Pages | Whole, schema: Schema) -> None:
        self._data, self._view, self._need = data, data.view, data.need
        self._schema = schema.messages
        self._left = _MOST

    def message(self, name: str, at: int, end: int) -> Message:
        """The message at this place. BadInput says at which byte it is not one."""
        return self._message(name, at, end, 0, False)

    def _message(self, name: str, at: int, end: int, depth: int, is_there: bool) -> Message:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            _damaged(at, f"messages in messages, more than {_DEEPEST if self._left >= 0 else _MOST:,}")
        if not is_there and end - at <= _AT_ONCE:
            is_there = True
            if at < end:
                self._need(at, end - at)
        fields, view, found = self._schema[name], self._view, Message()
        while at < end:
            if not is_there:
                self._need(at, min(_HEADER, end - at))
            start, key = at, view[at]
            at += 1
            if key > 127:
                key, at = _varint(view, start, end)
            wire, field = key & 7, fields.get(key >> 3)
            if wire == _BYTES:
                if at >= end:
                    _damaged(at, "it ends in the middle of a field")
                size = view[at]
                at += 1
                if size > 127:
                    size, at = _varint(view, at - 1, end)
                if size > end - at:
                    _damaged(start, f"{size:,} bytes are announced, {end - at:,} are left")
                if field is not None:
                    self._bytes(found, field, at, size, depth, is_there)
                at += size
            elif wire == _VARINT:
                value, at = _varint(view, at, end)
                if field is not None and field.wire == _VARINT:
                    if field.kind == "int" and value >> 63:
                        value -= 1 << 64
                    _put(found, field, value)
            elif wire in _WIDTH:
                width = _WIDTH[wire]
                if width > end - at:
                    _damaged(at, "it ends in the middle of a number")
                if field is not None and field.wire == wire and field.unpack is not None:
                    _put(found, field, field.unpack(view, at)[0])
                at += width
            else:
                _damaged(start, f"a field of kind {wire}, which nobody writes")
        return found

    def _bytes(self, found: Message, field: _Field, at: int, size: int, depth: int, is_there: bool) -> None:
        kind = field.kind
        if field.wire != _BYTES:
            if field.is_list:  # numbers in one piece
                found.setdefault(field.name, []).extend(self._packed(field, at, size, is_there))
            return
        if kind == "span":
            value: Any = Span(at, size)
        elif kind in ("string", "bytes"):
            if not is_there and size:
                self._need(at, size)
            value = self._view[at : at + size]
            if kind == "string":
                value = value.decode("utf-8", "backslashreplace")
        else:
            value = self._message(kind, at, at + size, depth + 1, is_there)
        _put(found, field, value)

    def _packed(self, field: _Field, at: int, size: int, is_there: bool) -> list[Any]:
        if not is_there and size:
            self._need(at, size)
        if field.wire != _VARINT:
            width, (_, letter) = _WIDTH[field.wire], _NUMBERS[field.kind]
            return list(struct.unpack_from(f"<{size // width}{letter}", self._view, at))
        return packed(self._view, at, at + size, signed=field.kind == "int")

    def read(self, span: Span) -> bytes:
        """The bytes that were passed over."""
        return self._data[span.at : span.at + span.size]


def packed(view: Any, at: int = 0, end: int | None = None, *, signed: bool) -> list[int]:
    """Whole numbers, one behind the other."""
    end = len(view) if end is None else end
    values: list[int] = []
    while at < end:
        value, at = _varint(view, at, end)
        values.append(value - (1 << 64) if signed and value >> 63 else value)
    return values


def _varint(view: Any, at: int, end: int) -> tuple[int, int]:
    """The number at this place, and where it ends."""
    value = shift = 0
    while at < end and shift < 70:
        byte = view[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    _damaged(at, "it ends in the middle of a number" if shift < 70 else "a number of more than 64 bits")


def _damaged(at: int, why: str) -> NoReturn:
    raise BadInput(f"at byte {at:,}: {why}. It may be cut off or damaged: export or copy it again")


def _put(found: Message, field: _Field, value: Any) -> None:
    if not field.is_list:
        found[field.name] = value
    elif field.name in found:
        found[field.name].append(value)
    else:
        found[field.name] = [value]


def begins_like(head: bytes, size: int, schema: Schema, name: str) -> dict[int, int] | None:
    """What fields the beginning of a file has, if it can be that message: number -> how many bytes of it, or its value.
    None: it is another one, or no protocol buffer at all."""
    fields, found, at = schema.messages[name], dict[int, int](), 0
    try:
        while at < len(head) - _HEADER or (at < len(head) and len(head) == size):
            key, at = _varint(head, at, len(head))
            number, wire = key >> 3, key & 7
            if number not in fields or fields[number].wire != wire:
                return None
            if wire in _WIDTH:
                found[number], at = _WIDTH[wire], at + _WIDTH[wire]
                continue
            value, at = _varint(head, at, len(head))
            found[number] = value
            if wire == _BYTES:
                if value > size - at:
                    return None
                at += value
    except BadInput:
        return None
    return found
