"""Checkpoints that are pickles: torch.save in both of its formats, paddle.save, megengine.save, jittor.save.

Nothing is unpickled: `inert` follows the opcodes, and tensors are found by what would have made them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from opscope.errors import BadInput, of_file
from opscope.ir import Capture
from opscope.ir.dtypes import bits_of, find
from opscope.ir.pools import clean
from opscope.readers.pages import Pages, Span, Whole, mapped
from opscope.readers.source import Options, Source
from opscope.wire.archive import Archive, open_zip

from .inert import Follower, Held, Made, Name
from .tree import Piece, Tensor, capture_of

NAME = "checkpoint"
_LARGEST = 512 << 20  # of the pickle in an archive
_DEEPEST = 100
_MOST_STORAGES = 2_000_000
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
# The first number of the format before torch 1.6, and what else only checkpoints name.
_LEGACY = re.compile(rb"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\.")
_NAMED = re.compile(
    rb"numpy\.(?:core|_core)\.multiarray[\n\x94]|c?torch\._utils\n|\x0ctorch\._utils\x94|collections\nOrderedDict\n|"
    rb"megengine\.|\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94|StructuredToParameterName@@"
)
_DATA = re.compile(r"(?:^|/)data\.pkl$")
_CODE = re.compile(r"(?:^|/)code/")
_PREFIXES = ("_parameters", "_buffers", "_modules")
_CPP = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32", "QUInt4x2": "quint4x2",
}  # fmt: skip


class _Stored(NamedTuple):
    """What is known of a storage: its dtype and its name."""

    dtype: str
    key: str


Pieces = Callable[[str, int, int], "Callable[[], Iterator[Piece]] | None"]  # storage, first byte, bytes


def match(source: Source) -> bool:
    head = source.head
    if head.startswith(b"PK\x03\x04"):
        names = _names(source)
        return any(map(_DATA.search, names)) and not any(map(_CODE.search, names))
    return _PICKLE.match(head) is not None and (_LEGACY.match(head) or _NAMED.search(head)) is not None


def read(source: Source, options: Options) -> Capture:
    try:
        if source.head.startswith(b"PK"):
            return _zipped(source, options)
        with mapped(source) as (data, size):
            if _LEGACY.match(source.head):
                return _legacy(source, data, size, options)
            return _plain(source, data, size, options)
    except BadInput as error:
        raise of_file(error, source.name, "not a readable checkpoint") from None


def _names(source: Source) -> list[str]:
    try:
        with source.open() as file:
            return open_zip(file).namelist()
    except Exception:  # zipfile meets damage with many kinds; whoever opens it for reading says so
        return []


# -- kinds of files -----------------------------------------------------------------------------------


def _zipped(source: Source, options: Options) -> Capture:
    with source.open() as file:
        archive = Archive(file, source.size)
        name = next(name for name in archive.names if _DATA.search(name))
        if archive.size(name) > _LARGEST:
            raise BadInput(f"member {name} claims {archive.size(name):,} bytes; {_LARGEST:,} are the most")
        data = archive.read(name)
        value = Follower(Whole(data), 0, len(data)).value
        prefix = name.removesuffix("data.pkl")
        is_big = f"{prefix}byteorder" in archive.names and archive.read(f"{prefix}byteorder").strip() == b"big"

        def pieces(key: str, at: int, size: int) -> Callable[[], Iterator[Piece]] | None:
            member = f"{prefix}data/{key}"
            if member not in archive.names or archive.size(member) < at + size:
                return None
            return lambda: _part(archive.pieces(member), at, at + size)

        return _capture(_Found(pieces, is_big).walk(value), "torch.save", options)


def _legacy(source: Source, data: Pages | Whole, size: int, options: Options) -> Capture:
    """Magic number, version, system, the object, the names of its storages; then each of these."""
    at, values = 0, list[Any]()
    for _ in range(5):
        found = Follower(data, at, size)
        values.append(found.value)
        at = found.end
    system, value, keys = values[2:5]
    is_big = isinstance(system, dict) and cast("dict[Any, Any]", system).get("little_endian") is False
    found = _Found(_no_pieces, is_big)
    found.walk(value)
    places: dict[str, Span] = {}
    listed = cast("list[Any]", keys)[:_MOST_STORAGES] if isinstance(keys, list) else []
    for key in listed:
        stored = found.storages.get(str(key))
        width = (bits_of(stored.dtype) or 0) // 8 if stored is not None else 0
        if at + 8 > size or not width:
            break
        count = int.from_bytes(data[at : at + 8], "big" if is_big else "little")
        places[str(key)] = Span(at + 8, min(count * width, size - at - 8))
        at += 8 + count * width

    def pieces(key: str, first: int, length: int) -> Callable[[], Iterator[Piece]] | None:
        place = places.get(key)
        if place is None or first + length > place.size:
            return None
        return partial(_slices, data, place.at + first, length)

    return _capture(_Found(pieces, is_big).walk(value), "torch.save, before torch 1.6", options)


def _plain(source: Source, data: Pages | Whole, size: int, options: Options) -> Capture:
    found = _Found(_no_pieces, False, data)
    found.walk(Follower(data, 0, size).value)
    return _capture(found, "a pickle of arrays", options)


def _capture(found: _Found, version: str, options: Options) -> Capture:
    if not found.tensors:
        what = f" (it holds {', '.join(list(found.names)[:5])})" if found.names else ""
        raise BadInput(f"a pickle without a tensor that opscope knows{what[:300]}; nothing in it was run")
    own = [name for name in found.names if not name.startswith(("collections.", "torch.", "numpy.", "builtins."))]
    warnings = [f"classes that the file names, none of which was imported: {', '.join(own[:5])}"[:500]] if own else []
    return capture_of(
        found.tensors, format=NAME, version=version, metadata=clean("\n".join(found.plain))[:100_000],
        warnings=warnings, classes=found.classes, options=options,
    )  # fmt: skip


def _no_pieces(key: str, at: int, size: int) -> None:
    """Of storages that are not found yet, or that there are none of."""


def _part(pieces: Iterator[bytes], first: int, last: int) -> Iterator[Piece]:
    at = 0
    for piece in pieces:
        if at + len(piece) > first:
            yield piece[max(first - at, 0) : last - at]
        at += len(piece)
        if at >= last:
            return


def _slices(data: Pages | Whole, at: int, size: int) -> Iterator[Piece]:
    step = 1 << 22
    for first in range(at, at + size, step):
        yield data[first : min(first + step, at + size)]


# -- tensors in what a pickle makes --------------------------------------------------------------------


class _Found:
    """All tensors below a value, with the keys that lead to them."""

    def __init__(self, pieces: Pieces, is_big_endian: bool, data: Pages | Whole | None = None) -> None:
        self._pieces, self._is_big, self._data = pieces, is_big_endian, data
        self._seen: set[int] = set()
        self.tensors: list[Tensor] = []
        self.storages: dict[str, _Stored] = {}
        self.names: dict[str, None] = {}  # of what the pickle would call
        self.classes: dict[str, str] = {}  # of modules that were pickled whole
        self.plain: list[str] = []  # what else it says, as text

    def walk(self, value: Any) -> _Found:
        self._walk(value, (), "", 0)
        return self

    def _walk(self, value: Any, within: tuple[str, ...], name: str, depth: int) -> None:
        if depth > _DEEPEST:
            return
        if isinstance(value, str | int | float | bool):
            if len(self.plain) < 1000:
                self.plain.append(f"{'/'.join((*within, name))}: {str(value)[:200]}")
            return
        if id(value) in self._seen and not isinstance(value, Made):
            return
        self._seen.add(id(value))
        if isinstance(value, Made):
            self._made(value, within, name, depth)
        elif isinstance(value, dict):
            self._entries(cast("dict[Any, Any]", value), within, name, depth)
        elif isinstance(value, list | tuple):
            for i, item in enumerate(cast("list[Any]", value)):
                self._walk(item, (*within, name) if name else within, str(i), depth + 1)

    def _entries(self, entries: Mapping[Any, Any], within: tuple[str, ...], name: str, depth: int) -> None:
        around = (*within, name) if name else within
        for key, item in entries.items():
            self._walk(item, around, str(key), depth + 1)

    def _made(self, value: Made, within: tuple[str, ...], name: str, depth: int) -> None:
        self.names[value.name[:200]] = None
        tensor = self._tensor(value, name, within)
        if tensor is not None:
            self.tensors.append(tensor)
            return
        state = value.state
        if isinstance(state, dict) and any(key in state for key in _PREFIXES):
            self._module(value, within, name, depth)
            return
        self._entries(value.items, within, name, depth)
        around = (*within, name) if name else within
        for i, item in enumerate(value.listed):
            self._walk(item, around, str(i), depth + 1)
        more: list[Any] = [*value.args, state]
        for item in more:
            if isinstance(item, dict | list | tuple | Made):
                self._walk(item, within, name, depth + 1)

    def _module(self, value: Made, within: tuple[str, ...], name: str, depth: int) -> None:
        """A module that was pickled whole: its attributes are where PyTorch keeps them."""
        self.classes[".".join((*within, name) if name else within)] = value.name.rpartition(".")[2]
        around = (*within, name) if name else within
        for prefix in _PREFIXES:
            held = cast("dict[Any, Any]", value.state).get(prefix)
            for key, item in _entries_of(held).items():
                self._walk(item, around, str(key), depth + 1)

    # -- one tensor -------------------------------------------------------------------------------

    def _tensor(self, value: Made, name: str, within: tuple[str, ...]) -> Tensor | None:
        last = value.name.rpartition(".")[2]
        if last == "_rebuild_parameter" or last == "_rebuild_parameter_with_state":
            inner = value.args[0] if value.args else None
            return self._tensor(inner, name, within) if isinstance(inner, Made) else None
        if last == "_rebuild_from_type_v2" and len(value.args) > 2:
            function, _, args = value.args[:3]
            if isinstance(function, Name) and isinstance(args, tuple):
                return self._tensor(Made(function.text, cast("tuple[Any, ...]", args)), name, within)
        if value.name.startswith("torch._utils._rebuild_") and len(value.args) > 2:
            return self._of_storage(value.args, name, within)
        if last == "_reconstruct" and value.name.startswith("numpy."):
            return self._array(value.state, name, within)
        return None

    def _of_storage(self, args: tuple[Any, ...], name: str, within: tuple[str, ...]) -> Tensor | None:
        held, offset, shape = args[:3]
        stored = self._storage(held)
        sizes = _sizes(shape)
        if stored is None or sizes is None:
            return Tensor(name or "tensor", "", sizes, None, within) if sizes is not None else None
        count = math.prod(sizes)
        bits = bits_of(stored.dtype)
        size = -(-count * bits // 8) if bits is not None else None
        strides = _sizes(args[3]) if len(args) > 3 else None
        pieces = None
        if size is not None and bits is not None and type(offset) is int and offset >= 0 and _is_dense(sizes, strides):
            pieces = self._pieces(stored.key, offset * bits // 8, size)
        return Tensor(
            name or "tensor", stored.dtype, sizes, size, within, storage=stored.key, pieces=pieces,
            is_big_endian=self._is_big,
        )  # fmt: skip

    def _storage(self, held: Any) -> _Stored | None:
        """`("storage", torch.FloatStorage, "0", "cpu", 4)`, as it is or inside of a typed one."""
        if isinstance(held, Made) and held.args:
            return self._storage(held.args[0])
        ident = held.ident if isinstance(held, Held) else None
        if not isinstance(ident, tuple):
            return None
        parts = cast("tuple[Any, ...]", ident)
        if len(parts) < 5 or parts[0] != "storage":
            return None
        kind = parts[1].text.rpartition(".")[2].removesuffix("Storage") if isinstance(parts[1], Name) else ""
        found = find(kind.lower())
        dtype = _CPP.get(kind) or (found.name if found is not None else kind.lower()[:30])
        if kind == "Untyped":
            dtype = "uint8"
        key = str(parts[2])[:200]
        return self.storages.setdefault(key, _Stored(dtype, key))

    def _array(self, state: Any, name: str, within: tuple[str, ...]) -> Tensor | None:
        """`(1, shape, dtype, is_fortran, bytes)`."""
        if not isinstance(state, tuple) or len(cast("tuple[Any, ...]", state)) < 5:
            return None
        _, shape, kind, _, content = cast("tuple[Any, ...]", state)[:5]
        sizes = _sizes(shape)
        dtype, is_big = _numpy_dtype(kind)
        if sizes is None:
            return None
        bits = bits_of(dtype)
        size = -(-math.prod(sizes) * bits // 8) if bits is not None else None
        pieces: Callable[[], Iterator[Piece]] | None = None
        at = None
        if isinstance(content, Span) and content.size == size and self._data is not None:
            pieces, at = partial(_slices, self._data, content.at, content.size), content.at
        elif isinstance(content, bytes) and len(content) == size:
            pieces = partial(iter, [content])
        return Tensor(
            name or "array", dtype, sizes, size, within, at=at, pieces=pieces, is_big_endian=is_big
        )  # fmt: skip


def _entries_of(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Made):
        return value.items
    return cast("dict[Any, Any]", value) if isinstance(value, dict) else {}


def _sizes(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, Made) and value.args:  # torch.Size
        value = value.args[0]
    if not isinstance(value, tuple | list):
        return None
    sizes = tuple(cast("list[Any]", value))
    return sizes if all(type(size) is int and 0 <= size < 1 << 62 for size in sizes) else None


def _numpy_dtype(kind: Any) -> tuple[str, bool]:
    """`dtype("f4")` with a state that begins (3, "<"), as a dtype and whether its bytes are turned round."""
    if not isinstance(kind, Made) or not kind.args or not isinstance(kind.args[0], str):
        return "", False
    code = kind.args[0].lstrip("<>|=")
    order = cast("tuple[Any, ...]", kind.state)[1:2] if isinstance(kind.state, tuple) else ()
    if code == "b1":
        return "bool", False
    words = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
    if code[:1] not in words or not code[1:].isdecimal() or len(code) > 4:
        return "object" if code == "O8" else code[:20], False
    return f"{words[code[0]]}{int(code[1:]) * 8}", order == (">",) or kind.args[0].startswith(">")


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether it is one piece of its storage, in whatever order of axes."""
    if strides is None or len(strides) != len(shape):
        return strides is None
    step = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, shape, strict=True) if size != 1):
        if stride != step:
            return math.prod(shape) == 0
        step *= size
    return True
