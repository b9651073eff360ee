"""Messages of protocol buffers one level deep, as fields by their numbers: a field that holds a message stays bytes.

XLA's dumps hold the same instructions a hundred times over, once for every pass: as bytes they are known again without
being read (`proto.Decoder`). So this is apart from `opscope.readers.protobuf`, which reads whole messages by a schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

Value: TypeAlias = "int | bytes"  # a varint or fixed number as its bits; text, bytes, a message, or packed numbers

_SIGN, _WRAP = 1 << 63, 1 << 64


class Malformed(ValueError):
    """The bytes are not a message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message in the order in which they are written."""
    at, end = 0, len(data)
    while at < end:
        key = data[at]
        at += 1
        if key >= 0x80:
            key, at = _varint(data, at - 1)
        kind = key & 7
        if kind == 2:
            size = data[at] if at < end else 0
            at += 1
            if size >= 0x80:
                size, at = _varint(data, at - 1)
            if at + size > end:
                raise Malformed(f"a field of {size:,} bytes where {max(end - at, 0):,} are left")
            yield key >> 3, data[at : at + size]
            at += size
        elif kind == 0:
            number = data[at] if at < end else 0x80
            if number >= 0x80:
                number, at = _varint(data, at)
            else:
                at += 1
            yield key >> 3, number
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > end:
                raise Malformed("a number is cut off")
            yield key >> 3, int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise Malformed(f"wire type {kind} at byte {at:,}")


def message(data: bytes) -> dict[int, list[Value]]:
    """The fields of a message by number, repeats in order."""
    found: dict[int, list[Value]] = {}
    for number, value in fields(data):
        if number in found:
            found[number].append(value)
        else:
            found[number] = [value]
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (_WRAP - 1), place + 1
        shift += 7
    raise Malformed(f"a number at byte {at:,} does not end")


def signed(number: int) -> int:
    """An int64 from its bits."""
    return number - _WRAP if number >= _SIGN else number


def integers(values: list[Value]) -> list[int]:
    """A repeated int64, packed or not."""
    found: list[int] = []
    for value in values:
        if isinstance(value, int):
            found.append(signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            found.append(signed(number))
    return found


def integer(values: list[Value] | None, default: int = 0) -> int:
    """A field that is there once: the last one counts."""
    last = values[-1] if values else default
    if not isinstance(last, int):
        raise Malformed("bytes where a number belongs")
    return signed(last)


def raw(values: list[Value] | None) -> bytes:
    last = values[-1] if values else b""
    if isinstance(last, int):
        raise Malformed("a number where bytes belong")
    return last


def text(values: list[Value] | None) -> str:
    return raw(values).decode("utf-8", "replace")


def texts(values: list[Value] | None) -> list[str]:
    return [text([value]) for value in values or ()]


def messages(values: list[Value] | None) -> list[bytes]:
    return [raw([value]) for value in values or ()]
