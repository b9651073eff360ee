"""FlatBuffers that may come from anywhere: every offset is checked before it is followed.

`schema.txt` says what the tables hold, and a table becomes a dict with the defaults filled in. No table of the
schema holds itself, so the depth is limited; each table, string and vector is decoded once and its bytes are
counted, and a file may not hold more of them than it has bytes: tables that overlap, or that are named a million
times, cost no more than an honest file of the same size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from opscope.errors import BadInput
from opscope.readers.pages import Pages, Span, Whole

_SCALARS = {
    "bool": "?", "byte": "b", "ubyte": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "long": "q",
    "ulong": "Q", "float": "f", "double": "d", "ubyte4": "4s",
}  # fmt: skip
_U16, _U32, _I32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")
_OFFSET = 4


class Field(NamedTuple):
    slot: int
    name: str
    width: int  # of what is in the table itself
    read: Callable[[Buffer, int], Any]
    default: Any
    is_union: bool = False  # the slot before this one says which table it is


class Table(NamedTuple):
    name: str
    fields: tuple[Field, ...]
    slots: int


class Buffer:
    """One FlatBuffer within a file, from `start` up to `end`."""

    def __init__(self, data: Pages | Whole, start: int, end: int) -> None:
        self.data = data.view
        self._need = data.need
        self.start = start
        self.end = end
        self._left = end - start
        self._seen: dict[tuple[int, str], Any] = {}
        self._vtables: dict[tuple[int, int], tuple[int, ...]] = {}

    def root(self, table: str) -> dict[str, Any]:
        """The table that the buffer begins with the offset of."""
        return _reader(table)(self, self.start)

    # -- what is at a place -----------------------------------------------------------------------

    def follow(self, at: int) -> int:
        """Where the offset at this place leads. Offsets go forward: that is how FlatBuffers have no cycles."""
        self.check(at, _OFFSET)
        offset = _U32.unpack_from(self.data, at)[0]
        target = at + offset
        if not offset or target + _OFFSET > self.end:
            self.damaged(f"at byte {at:,}: an offset of {offset:,} leads out of its {self.end - self.start:,} bytes")
        return target

    def vector(self, at: int, width: int, *, is_read: bool = True) -> tuple[int, int]:
        """(first element, number of elements) of the vector that the offset at this place leads to."""
        at = self.follow(at)
        self._need(at, _OFFSET)
        count = _U32.unpack_from(self.data, at)[0]
        if count * width > self.end - at - _OFFSET:
            self.damaged(
                f"at byte {at:,}: {count:,} elements are announced, {self.end - at - _OFFSET:,} bytes are left"
            )
        if is_read and count:
            self._need(at + _OFFSET, count * width)
        return at + _OFFSET, count

    def once(self, at: int, kind: str, size: int, make: Callable[[], Any]) -> Any:
        """What was decoded at this place before, or `make()`, for which `size` bytes are counted."""
        key = (at, kind)
        if key not in self._seen:
            self._left -= size
            if self._left < 0:
                self.damaged("its tables overlap: they hold more than the file has bytes")
            self._seen[key] = make()
        return self._seen[key]

    def offsets(self, at: int, slots: int) -> tuple[int, ...]:
        """The size of the table at this place, and where its fields are in it (0: not there)."""
        self.check(at, _OFFSET)
        vtable = at - _I32.unpack_from(self.data, at)[0]
        key = (vtable, slots)
        if key not in self._vtables:
            if not self.start <= vtable <= self.end - 4:
                self.damaged(f"at byte {at:,}: its table of fields would be at byte {vtable:,}")
            self._need(vtable, 2)
            size = _U16.unpack_from(self.data, vtable)[0]
            if size < 4 or size % 2 or vtable + size > self.end:
                self.damaged(f"at byte {vtable:,}: a table of fields of {size:,} bytes")
            self._need(vtable, size)
            there = min(slots, (size - 4) // 2)
            self._vtables[key] = struct.unpack_from(f"<{there + 1}H", self.data, vtable + 2)
        found = self._vtables[key]
        if found[0] < _OFFSET or at + found[0] > self.end:
            self.damaged(f"at byte {at:,}: a table of {found[0]:,} bytes")
        self._need(at, found[0])
        return found

    def check(self, at: int, size: int) -> None:
        if at < self.start or at + size > self.end:
            self.damaged(f"byte {at:,} is out of its {self.end - self.start:,} bytes")
        self._need(at, size)

    def damaged(self, why: str) -> NoReturn:
        raise BadInput(f"{why}. It may be cut off or damaged: dump or copy it again")

    # -- what a table says ------------------------------------------------------------------------

    def table(self, at: int, spec: Table) -> dict[str, Any]:
        offsets = self.offsets(at, spec.slots)

        def make() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for field in spec.fields:
                place = offsets[field.slot + 1] if field.slot + 1 < len(offsets) else 0
                if not place:
                    found[field.name] = field.default
                    continue
                if place + field.width > offsets[0]:
                    self.damaged(f"at byte {at:,}: {spec.name}.{field.name} lies outside of its table")
                value = field.read(self, at + place)
                if field.is_union:
                    kind = offsets[field.slot]
                    value = value(self.data[at + kind] if 0 < kind < offsets[0] else 0)
                found[field.name] = value
            return found

        return self.once(at, spec.name, offsets[0], make)


# -- the schema -----------------------------------------------------------------------------------------


@cache
def _definitions() -> dict[str, tuple[str, list[str]]]:
    """name -> (table, struct, enum, flags or union; its words)."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in Path(__file__).with_name("schema.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, name, *words = line.split()
            found[name.partition(":")[0]] = kind, [name.partition(":")[2], *words]
    return found


@cache
def enum(name: str) -> dict[int, str]:
    """The names of an enumeration by number."""
    names: dict[int, str] = {}
    number = -1
    for word in _definitions()[name][1][1:]:
        text, _, given = word.partition("=")
        number = int(given) if given else number + 1
        names[number] = text
    return names


def table(name: str) -> Table:
    """What a table of this name holds."""
    return _table(name)


@cache
def _table(name: str) -> Table:
    fields: list[Field] = []
    slot = 0
    for word in _definitions()[name][1][1:]:
        label, _, rest = word.partition(":")
        kind, _, default = rest.partition("=")
        is_union = _kind(kind.strip("[]")) == "union"
        slot += is_union
        fields.append(Field(slot, label, _width(kind), _reader(kind), _default(kind, default), is_union))
        if is_union and kind.startswith("["):  # which tables they are is a vector of its own
            fields[-1] = Field(slot - 1, f"{label}_type", _OFFSET, _numbers("ubyte"), [])
            fields.append(Field(slot, label, _OFFSET, _places, []))
        slot += 1
    return Table(name, tuple(fields), slot)


def _kind(name: str) -> str:
    """table, struct, enum, flags, union; or "" for a scalar."""
    return _definitions()[name][0] if name in _definitions() else ""


def _width(kind: str) -> int:
    if kind in _SCALARS:
        return struct.calcsize(_SCALARS[kind])
    if _kind(kind) in ("enum", "flags"):
        return _width(_definitions()[kind][1][0])
    if _kind(kind) == "struct":
        return _layout(kind)[0].size
    return _OFFSET


def _default(kind: str, text: str) -> Any:
    if kind.startswith("["):
        return []
    if kind == "string":
        return ""
    if kind == "bool":
        return text == "true"
    if kind in ("float", "double"):
        return _as_float(float(text or 0), kind)
    if kind in _SCALARS:
        return int(text or 0)
    if _kind(kind) == "enum" and not text.isdigit():
        return text or enum(kind)[0]
    if _kind(kind) in ("enum", "flags"):
        number = int(text or 0)
        return enum(kind).get(number, number) if _kind(kind) == "enum" else number
    return None


def _as_float(value: float, kind: str) -> float:
    """A float32 in as few digits as it takes: 1e-05, and not 9.999999747378752e-06."""
    if kind == "double" or value != value or value in (float("inf"), float("-inf")):
        return value
    single = struct.Struct("<f")
    for digits in range(6, 9):
        short = float(f"{value:.{digits}g}")
        try:
            if single.pack(short) == single.pack(value):
                return short
        except OverflowError:  # rounded up beyond the largest one
            continue
    return value


# A reader is given the buffer and where the field is.


@cache
def _reader(kind: str) -> Callable[[Buffer, int], Any]:
    if kind.startswith("["):
        return _vector_reader(kind[1:-1])
    if kind in ("float", "double"):
        number = struct.Struct("<" + _SCALARS[kind])
        return lambda buffer, at: _as_float(number.unpack_from(buffer.data, at)[0], kind)
    if kind in _SCALARS:
        scalar = struct.Struct("<" + _SCALARS[kind])
        return lambda buffer, at: scalar.unpack_from(buffer.data, at)[0]
    if kind == "string":
        return _string
    if kind == "bytes":
        return _span
    what = _kind(kind)
    if what in ("enum", "flags"):
        base = struct.Struct("<" + _SCALARS[_definitions()[kind][1][0]])
        names = enum(kind) if what == "enum" else {}
        return lambda buffer, at: names.get(number := base.unpack_from(buffer.data, at)[0], number)
    if what == "struct":
        layout, names_of, enums = _layout(kind)
        return lambda buffer, at: _struct(layout.unpack_from(buffer.data, at), names_of, enums)
    if what == "union":
        return lambda buffer, at: partial(member, buffer, kind, buffer.follow(at))
    spec = _table(kind)
    return lambda buffer, at: buffer.table(buffer.follow(at), spec)


def member(buffer: Buffer, union: str, at: int, number: int) -> dict[str, Any] | None:
    """The table at this place as that member of a union; one that the schema does not know is named by its number."""
    for word in _definitions()[union][1][1:]:
        name, _, given = word.partition("=")
        if int(given) == number:
            return {"_type": name, **buffer.table(at, _table(name))}
    return {"_type": f"{union} {number}"} if number else None


def _vector_reader(kind: str) -> Callable[[Buffer, int], Any]:
    if kind == "ubyte":
        return _span
    if kind in _SCALARS:
        return _numbers(kind)
    if kind == "string":
        return lambda buffer, at: [_string(buffer, place) for place in _places(buffer, at)]
    if kind.endswith("*"):
        return _structs(kind[:-1])
    if _kind(kind) == "union":
        return _places
    spec = _table(kind)
    return lambda buffer, at: [buffer.table(buffer.follow(place), spec) for place in _places(buffer, at)]


def _numbers(kind: str) -> Callable[[Buffer, int], list[int]]:
    letter = _SCALARS[kind]
    width = struct.calcsize(letter)

    def read(buffer: Buffer, at: int) -> list[int]:
        first, count = buffer.vector(at, width)
        return buffer.once(
            first, kind, count * width, lambda: list(struct.unpack_from(f"<{count}{letter}", buffer.data, first))
        )

    return read


def _places(buffer: Buffer, at: int) -> list[int]:
    """The places of a vector of offsets."""
    first, count = buffer.vector(at, _OFFSET)
    places = range(first, first + count * _OFFSET, _OFFSET)
    return buffer.once(first, "offsets", count * _OFFSET, lambda: list(places))


def _structs(kind: str) -> Callable[[Buffer, int], list[dict[str, Any]]]:
    def read(buffer: Buffer, at: int) -> list[dict[str, Any]]:
        layout, names, enums = _layout(kind)
        first, count = buffer.vector(at, layout.size)
        places = range(first, first + count * layout.size, layout.size)
        return buffer.once(
            first,
            kind,
            count * layout.size,
            lambda: [_struct(layout.unpack_from(buffer.data, place), names, enums) for place in places],
        )

    return read


def _string(buffer: Buffer, at: int) -> str:
    first, size = buffer.vector(at, 1)
    return buffer.once(
        first, "string", size, lambda: bytes(buffer.data[first : first + size]).decode("utf-8", "backslashreplace")
    )


def _span(buffer: Buffer, at: int) -> Span:
    return Span(*buffer.vector(at, 1, is_read=False))


Layout = tuple[struct.Struct, list[str], list[dict[int, str]]]


@cache
def _layout(name: str) -> Layout:
    """How a struct lies in memory: every field at a multiple of its own size."""
    text, size, widest = "<", 0, 1
    names: list[str] = []
    enums: list[dict[int, str]] = []
    for word in _definitions()[name][1][1:]:
        label, _, kind = word.partition(":")
        letter = _SCALARS[_definitions()[kind][1][0] if kind in _definitions() else kind]
        width = struct.calcsize(letter)
        step = 1 if letter == "4s" else width
        text += "x" * (-size % step) + letter
        size += -size % step + width
        widest = max(widest, step)
        names.append(label)
        enums.append(enum(kind) if kind in _definitions() else {})
    return struct.Struct(text + "x" * (-size % widest)), names, enums


def _struct(values: tuple[Any, ...], names: list[str], enums: list[dict[int, str]]) -> dict[str, Any]:
    return {
        name: value.hex() if isinstance(value, bytes) else known.get(value, value)
        for name, known, value in zip(names, enums, values, strict=True)
    }
