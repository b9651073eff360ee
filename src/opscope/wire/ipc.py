"""Untrusted Arrow IPC, read by numpy alone.

A library in native code trusts the offsets, counts and lengths that a file claims, and ends the process where they lie.
Here each of them is checked against the bytes that are there before it is followed. Numbers are views of these bytes.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from opscope.errors import BadInput

Ints = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

_MAGIC = b"ARROW1\0\0"
_WIDEST = 128  # alignment
_U16, _U32, _I16, _I32, _I64 = (struct.Struct(f"<{code}") for code in "HIhiq")
_HEAD = struct.Struct("<Ii")  # of a message: the mark, and the size of what describes it
_MARK = 0xFFFFFFFF
_PAIR = struct.Struct("<qq")
_SCHEMA, _BATCH = 1, 3  # kinds of message
_INT, _FLOAT, _TEXT, _BOOL, _LIST = 2, 3, 5, 6, 12  # kinds of type
_INTS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_FLOATS = {0: "float16", 1: "float32", 2: "float64"}
_MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Texts:
    """A column of text: valid UTF-8, cut at the ends of characters."""

    raw: memoryview
    start: Ints

    def rows(self) -> list[str]:
        ends = self.start.tolist()
        whole = bytes(self.raw)
        if whole.isascii():
            text = whole.decode("ascii")
            return [text[a:b] for a, b in pairwise(ends)]
        return [whole[a:b].decode("utf-8") for a, b in pairwise(ends)]


@dataclass(frozen=True)
class Lists:
    """A column of lists of numbers."""

    start: Ints
    numbers: npt.NDArray[Any]

    def rows(self) -> list[list[Any]]:
        flat, ends = self.numbers.tolist(), self.start.tolist()
        return [flat[a:b] for a, b in pairwise(ends)]


@dataclass(frozen=True)
class Chunk:
    """One column of one batch. `known` is None where no row is null."""

    values: npt.NDArray[Any] | Texts | Lists
    known: Mask | None

    def rows(self) -> list[Any]:
        values = self.values
        rows: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values.rows()
        if self.known is None:
            return rows
        return [row if known else None for row, known in zip(rows, self.known.tolist(), strict=True)]


class Column:
    """One column: what kind of rows it has (a dtype of numpy, `text`, or `list`), and the rows."""

    def __init__(self, kind: str, chunks: Sequence[Chunk]) -> None:
        self.kind = kind
        self._chunks = chunks

    @property
    def has_nulls(self) -> bool:
        return any(chunk.known is not None for chunk in self._chunks)

    def numbers(self) -> npt.NDArray[Any]:
        """The rows of a column of numbers: the bytes of the file, not copied where it has one batch."""
        found = [chunk.values for chunk in self._chunks if isinstance(chunk.values, np.ndarray)]
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros(0, dtype=self.kind)

    def rows(self) -> list[Any]:
        """The rows as Python objects, None where they are null."""
        return list(chain.from_iterable(chunk.rows() for chunk in self._chunks))


class Table:
    """The columns of an Arrow IPC file or stream, by name. What is wrong with it is a BadInput without its name."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.length = 0
        self._fields: tuple[_Field, ...] = ()
        self._has_schema = False
        self._chunks: list[list[Chunk]] = []
        at = 0
        if data.startswith(_MAGIC):  # a file: a stream behind as many zeros as align it, with a footer
            at = len(_MAGIC)
            while at < _WIDEST and data[at : at + 8] == bytes(8):
                at += 8
        while at + _HEAD.size <= len(data):
            mark, size = _HEAD.unpack_from(data, at)
            if mark != _MARK or size == 0:  # the end of the stream; the footer of a file says nothing new
                break
            at = self._message(at + _HEAD.size, size)
        if not self._has_schema:
            _damaged("it has no schema")
        self.names: list[str] = [field.name for field in self._fields]

    def column(self, name: str) -> Column | None:
        if name not in self.names:
            return None
        place = self.names.index(name)
        return Column(self._fields[place].kind, self._chunks[place])

    def _message(self, at: int, size: int) -> int:
        """Reads one message; where the next one begins."""
        if size < 0 or at + size > len(self._data):
            _damaged(f"at byte {at:,}: a message of {size:,} bytes")
        meta = _Flat(self._data[at : at + size])
        _, kind, header, length = meta.fields(meta.root(), "hBTq")
        body = at + size
        if length < 0 or body + length > len(self._data):
            _damaged(f"at byte {at:,}: {length:,} bytes are announced, {len(self._data) - body:,} are left")
        if kind == _SCHEMA and not self._has_schema:
            self._fields, self._has_schema = _schema(meta.data), True
            self._chunks = [[] for _ in self._fields]
        elif kind == _BATCH and self._has_schema:
            self._batch(meta, header, body, length)
        else:
            _damaged(f"at byte {at:,}: a message of the kind {kind}, which opscope does not write there")
        return body + length

    def _batch(self, meta: _Flat, at: int, body: int, size: int) -> None:
        rows, nodes, buffers, compression = meta.fields(at, "qVVT")
        if compression:
            _damaged("it is compressed inside; write it without: the zip file around it is compressed already")
        parts = _Parts(memoryview(self._data)[body : body + size], meta.pairs(nodes), meta.pairs(buffers))
        for field, chunks in zip(self._fields, self._chunks, strict=True):
            chunks.append(parts.chunk(field, rows))
        parts.finish()
        self.length += rows


class _Field(NamedTuple):
    name: str
    kind: str  # a dtype of numpy, "text", "list"
    inner: _Field | None = None


@lru_cache(maxsize=64)  # the same tables of many stages
def _schema(data: bytes) -> tuple[_Field, ...]:
    meta = _Flat(data)
    endianness, fields = meta.fields(meta.fields(meta.root(), "hBT")[2], "hV")
    if endianness:
        _damaged("its numbers are big-endian")
    places = meta.tables(fields)
    if len(places) > _MOST_COLUMNS:
        _damaged(f"it has {len(places):,} columns")
    return tuple(_field(meta, place) for place in places)


def _field(meta: _Flat, at: int, inside: bool = False) -> _Field:
    name_at, _, kind, type_at, dictionary, children = meta.fields(at, "SBBTTV")
    name = meta.text(name_at)
    if dictionary:
        _damaged(f"column {name[:80]!r} is dictionary-encoded, which opscope does not write")
    if kind == _INT:
        bits, signed = meta.fields(type_at, "iB")
        dtype = f"{'' if signed else 'u'}int{bits}"
        if dtype in _INTS:
            return _Field(name, dtype)
    elif kind == _FLOAT:
        (precision,) = meta.fields(type_at, "h")
        if precision in _FLOATS:
            return _Field(name, _FLOATS[precision])
    elif kind == _BOOL:
        return _Field(name, "bool")
    elif kind == _TEXT:
        return _Field(name, "text")
    elif kind == _LIST and not inside:
        below = meta.tables(children)
        if len(below) == 1:
            inner = _field(meta, below[0], inside=True)
            if inner.kind != "text":
                return _Field(name, "list", inner)
    _damaged(f"column {name[:80]!r} has a type that opscope does not write (Arrow's number {kind})")


class _Parts:
    """The buffers of one batch. They are in order, one after the other: none is counted twice."""

    def __init__(self, body: memoryview, nodes: Sequence[tuple[int, int]], buffers: Sequence[tuple[int, int]]) -> None:
        self._body = body
        self._nodes = iter(nodes)
        self._buffers = iter(buffers)
        self._end = 0

    def chunk(self, field: _Field, rows: int) -> Chunk:
        length, nulls = next(self._nodes, (-1, 0))
        if length != rows or rows < 0 or not 0 <= nulls <= rows:
            _damaged(f"column {field.name[:80]!r} has {length:,} rows ({nulls:,} null) of {rows:,}")
        bits = self._buffer()
        known = self._bits(bits, rows, field) if nulls else None
        if field.kind == "bool":
            return Chunk(self._bits(self._buffer(), rows, field), known)
        if field.kind == "text":
            start = self._starts(rows, field)
            return Chunk(_texts(self._buffer(), start, field), known)
        if field.inner is not None:
            start = self._starts(rows, field)
            length = next(self._nodes, (0, 0))[0]
            self._nodes = chain([(length, 0)], self._nodes)  # `chunk` takes it again
            found = self.chunk(field.inner, length)
            inner = found.values
            if found.known is not None or not isinstance(inner, np.ndarray):
                _damaged(f"column {field.name[:80]!r}: a number in a list is null")
            _within(start, len(inner), field)
            return Chunk(Lists(start, inner), known)
        return Chunk(self._numbers(self._buffer(), np.dtype(field.kind), rows, field), known)

    def finish(self) -> None:
        if next(self._nodes, None) or next(self._buffers, None):
            _damaged("it has more buffers than columns")

    def _buffer(self) -> memoryview:
        at, size = next(self._buffers, (-1, 0))
        if at < self._end or size < 0 or at + size > len(self._body):
            _damaged(
                f"a buffer of {size:,} bytes at byte {at:,} of {len(self._body):,}, behind one up to {self._end:,}"
            )
        self._end = at + size
        return self._body[at : at + size]

    def _bits(self, buffer: memoryview, rows: int, field: _Field) -> Mask:
        if rows > 8 * len(buffer):
            _short(field, rows, buffer)
        return np.unpackbits(np.frombuffer(buffer, np.uint8), count=rows, bitorder="little").view(np.bool_)

    def _numbers(self, buffer: memoryview, dtype: np.dtype[Any], rows: int, field: _Field) -> npt.NDArray[Any]:
        if rows * dtype.itemsize > len(buffer):
            _short(field, rows, buffer)
        if sys.byteorder == "little":  # with an order spelled out, Python reads no numbers one by one
            found = np.frombuffer(buffer, dtype, rows)
        else:
            found = np.frombuffer(buffer, dtype.newbyteorder("<"), rows).astype(dtype)
        return found if found.flags.aligned else found.copy()

    def _starts(self, rows: int, field: _Field) -> Ints:
        """Where each row begins, and the last one ends."""
        buffer = self._buffer()
        if not rows:  # then there need not be a first one either
            return np.zeros(1, dtype=np.int32)
        start = self._numbers(buffer, np.dtype(np.int32), rows + 1, field)
        if start[0] < 0 or (start[1:] < start[:-1]).any():
            _damaged(f"column {field.name[:80]!r}: its rows do not begin where the ones before end")
        return start


def _texts(buffer: memoryview, start: Ints, field: _Field) -> Texts:
    _within(start, len(buffer), field)
    raw = buffer[: int(start[-1])]
    try:
        whole = str(raw, "utf-8")
    except UnicodeDecodeError as error:
        _damaged(f"column {field.name[:80]!r}: byte {error.start:,} of its text is not UTF-8")
    if len(whole) != len(raw):  # more than ASCII: no row may begin in the middle of a character
        cuts = start[start < len(raw)]
        if ((np.frombuffer(raw, np.uint8)[cuts] & 0xC0) == 0x80).any():
            _damaged(f"column {field.name[:80]!r}: a row begins in the middle of a character")
    return Texts(raw, start)


def _within(start: Ints, size: int, field: _Field) -> None:
    if int(start[-1]) > size:
        _damaged(f"column {field.name[:80]!r}: its rows end at {int(start[-1]):,}, of {size:,}")


def _short(field: _Field, rows: int, buffer: memoryview) -> NoReturn:
    _damaged(f"column {field.name[:80]!r}: {rows:,} rows in {len(buffer):,} bytes")


def _damaged(why: str) -> NoReturn:
    raise BadInput(why)


_READ = {"B": struct.Struct("<B"), "h": _I16, "i": _I32, "q": _I64}


class _Flat:
    """The FlatBuffer that describes a message."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def root(self) -> int:
        return self._follow(0)

    def fields(self, at: int, kinds: str) -> list[int]:
        """The first fields of the table at this place: a number; or where a table (T), vector (V) or text (S) is,
        0 where there is none."""
        table = at - self._at(_I32, at)
        size = self._at(_U16, table)
        if size % 2 or table + size > len(self.data):
            self._damaged(at)
        found: list[int] = []
        for i, kind in enumerate(kinds):
            slot = 4 + 2 * i
            place = self._at(_U16, table + slot) if slot + 2 <= size else 0
            if not place:
                found.append(0)
            elif kind in _READ:
                found.append(self._at(_READ[kind], at + place))
            else:
                found.append(self._follow(at + place))
        return found

    def tables(self, at: int) -> list[int]:
        """Where the tables are that a vector names."""
        first, count = self._vector(at, 4)
        return [self._follow(first + 4 * i) for i in range(count)]

    def pairs(self, at: int) -> list[tuple[int, int]]:
        first, count = self._vector(at, _PAIR.size)
        return list(_PAIR.iter_unpack(self.data[first : first + _PAIR.size * count]))

    def text(self, at: int) -> str:
        first, count = self._vector(at, 1)
        return self.data[first : first + count].decode("utf-8", "replace")

    def _vector(self, at: int, width: int) -> tuple[int, int]:
        """(first element, number of elements)."""
        if not at:
            return 0, 0
        count = self._at(_U32, at)
        if at + 4 + count * width > len(self.data):
            self._damaged(at)
        return at + 4, count

    def _follow(self, at: int) -> int:
        target = at + self._at(_U32, at)
        if target == at or target + 4 > len(self.data):
            self._damaged(at)
        return target

    def _at(self, what: struct.Struct, at: int) -> int:
        if not 0 <= at <= len(self.data) - what.size:
            self._damaged(at)
        return what.unpack_from(self.data, at)[0]

    def _damaged(self, at: int) -> NoReturn:
        _damaged(f"at byte {at:,} of a message: an offset that leads out of it")
