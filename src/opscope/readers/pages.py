"""A large file as memory that is filled where it is read.

A graph is a small part of a file of weights. The file is not mapped: one that is cut off while it is read would end the
process.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Generator
from typing import Any, BinaryIO, NamedTuple

from opscope.errors import BadInput

from .source import Source

_PAGE = 1 << 16


class Span(NamedTuple):
    """Bytes of the file that were not read."""

    at: int
    size: int


class Pages:
    """`view` has the bytes where `need` was asked for them, and zeros elsewhere."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._there = bytearray(size // _PAGE + 1)
        self.view: Any = mmap.mmap(-1, max(size, 1))  # memory of our own, none of it taken yet

    def need(self, at: int, size: int) -> None:
        first, last = at // _PAGE, (at + size - 1) // _PAGE
        if first == last and self._there[first]:
            return
        for page in range(max(first, 0), min(last, len(self._there) - 1) + 1):
            if not self._there[page]:
                self._fill(page)

    def _fill(self, page: int) -> None:
        start = page * _PAGE
        size = min(_PAGE, self._size - start)
        self._file.seek(start)
        data = self._file.read(size)
        if len(data) < size:
            raise BadInput("it became shorter while it was read: read it again when it is complete")
        self.view[start : start + size] = data
        self._there[page] = 1

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        if start < stop:
            self.need(start, stop - start)
        return self.view[start:stop]


class Whole:
    """The same of bytes that are in memory."""

    def __init__(self, data: bytes) -> None:
        self.view: Any = data

    def need(self, at: int, size: int) -> None:
        """All of it is there."""

    def __getitem__(self, part: slice) -> bytes:
        return self.view[part]


@contextlib.contextmanager
def mapped(source: Source) -> Generator[tuple[Pages | Whole, int], None, None]:
    """The bytes of a file, and how many: only what is looked at is read."""
    if source.data is not None:
        yield Whole(source.data), len(source.data)
        return
    with source.open() as file:
        yield Pages(file, source.size), source.size
