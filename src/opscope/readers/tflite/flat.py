"""FlatBuffers of TensorFlow Lite, which may come from anywhere: every offset is checked before it is followed.

What a file holds in tables, texts and numbers may come to so many times its size: tables that overlap cost no more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from opscope.errors import BadInput
from opscope.readers.pages import Pages, Span, Whole

_TIMES = 4
_ALWAYS = 1 << 20


class Buffer:
    def __init__(self, data: Pages | Whole, size: int) -> None:
        self._view, self._need, self.size = data.view, data.need, size
        self._left = _ALWAYS + _TIMES * size

    def root(self) -> Table:
        return Table(self, self.follow(0))

    def number(self, code: str, at: int) -> Any:
        width = struct.calcsize(code)
        if at < 0 or at + width > self.size:
            self.damaged(at, "is out of the file")
        self._need(at, width)
        return struct.unpack_from(f"<{code}", self._view, at)[0]

    def follow(self, at: int) -> int:
        """Where the offset at this place leads: always forward, so that there are no cycles."""
        offset = self.number("I", at)
        if not offset or at + offset + 4 > self.size:
            self.damaged(at, f"has an offset of {offset:,}, which leads out of the file")
        return at + offset

    def numbers(self, code: str, at: int, count: int) -> list[Any]:
        width = struct.calcsize(code)
        if count * width > self.size - at:
            self.damaged(at, f"announces {count:,} elements, {max(self.size - at, 0):,} bytes are left")
        self.count(count * width + 8)
        if not count:
            return []
        self._need(at, count * width)
        return list(struct.unpack_from(f"<{count}{code}", self._view, at))

    def count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise BadInput("its tables overlap: they hold more than the file has bytes. Convert or copy it again")

    def damaged(self, at: int, why: str) -> NoReturn:
        raise BadInput(f"byte {at:,} {why}. It may be cut off or damaged: convert or copy it again")


class Table:
    """A table at a place; `slot` is the number of a field."""

    def __init__(self, buffer: Buffer, at: int) -> None:
        self._buffer, self._at = buffer, at
        vtable = at - buffer.number("i", at)
        size = buffer.number("H", vtable)
        if size < 4 or size % 2:
            buffer.damaged(vtable, f"begins a table of fields of {size:,} bytes")
        buffer.count(16)
        self._slots = buffer.numbers("H", vtable + 4, (size - 4) // 2)

    def place(self, slot: int) -> int:
        """Where a field is; 0 where it is not there."""
        offset = self._slots[slot] if slot < len(self._slots) else 0
        return self._at + offset if offset else 0

    def get(self, slot: int, code: str, default: Any = 0) -> Any:
        """A field of one of these types: a number, `s` a text, `i*` numbers."""
        at = self.place(slot)
        if code == "s":
            return self.text(slot)
        if code.endswith("*"):
            return self.numbers(slot, code[0])
        return self._buffer.number(code, at) if at else default

    def numbers(self, slot: int, code: str) -> list[Any]:
        first, count = self._vector(slot)
        return self._buffer.numbers(code, first, count) if first else []

    def text(self, slot: int) -> str:
        return bytes(self.numbers(slot, "B")).decode("utf-8", "backslashreplace")

    def table(self, slot: int) -> Table | None:
        at = self.place(slot)
        return Table(self._buffer, self._buffer.follow(at)) if at else None

    def tables(self, slot: int) -> Iterator[Table]:
        first, count = self._vector(slot)
        for i in range(count):
            yield Table(self._buffer, self._buffer.follow(first + 4 * i))

    def span(self, slot: int) -> Span | None:
        """Bytes that are not read."""
        first, count = self._vector(slot)
        if count > self._buffer.size - first:
            self._buffer.damaged(first, f"announces {count:,} bytes, {self._buffer.size - first:,} are left")
        return Span(first, count) if first else None

    def _vector(self, slot: int) -> tuple[int, int]:
        at = self.place(slot)
        if not at:
            return 0, 0
        first = self._buffer.follow(at)
        return first + 4, self._buffer.number("I", first)
