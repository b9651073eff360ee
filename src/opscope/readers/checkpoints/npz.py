"""numpy's archives (.npz) and arrays (.npy): the headers of their arrays."""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from opscope.errors import BadInput, of_file
from opscope.ir import Capture
from opscope.ir.dtypes import bits_of, find
from opscope.readers.source import Options, Source
from opscope.wire.archive import Archive, open_zip

from .safetensors import slices
from .tree import LARGEST_DIM, Piece, Tensor, capture_of

NAME = "numpy"
_MAGIC = b"\x93NUMPY"
_LONGEST = 1 << 16
_WORDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}


def match(source: Source) -> bool:
    if source.head.startswith(_MAGIC):
        return True
    if not source.head.startswith(b"PK\x03\x04"):
        return False
    try:
        with source.open() as file:
            names = open_zip(file).namelist()
    except Exception:  # zipfile meets damage with many kinds
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def read(source: Source, options: Options) -> Capture:
    try:
        if source.head.startswith(_MAGIC):
            begin, tensor = _header(source.head, "array")
            size = tensor.size or 0
            if begin + size > source.size:
                raise BadInput("it is cut off: copy it again")
            tensors = [tensor._replace(at=begin, pieces=slices(source, begin, size))]
            return capture_of(tensors, format=NAME, options=options)
        with source.open() as file:
            archive = Archive(file, source.size)
            tensors = [_member(archive, name) for name in archive.names]
            return capture_of(tensors, format=NAME, options=options)
    except BadInput as error:
        raise of_file(error, source.name, "not readable numpy arrays") from None


def _member(archive: Archive, name: str) -> Tensor:
    head = next(archive.pieces(name, _LONGEST), b"")
    begin, tensor = _header(head, name.removesuffix(".npy"))
    return tensor._replace(pieces=partial(_after, archive, name, begin))


def _after(archive: Archive, name: str, begin: int) -> Iterator[Piece]:
    for piece in archive.pieces(name):
        if begin < len(piece):
            yield piece[begin:]
        begin = max(begin - len(piece), 0)


def _header(head: bytes, name: str) -> tuple[int, Tensor]:
    """Where the numbers begin, and what they are."""
    try:
        if not head.startswith(_MAGIC):
            raise ValueError("no array")
        code, at = ("<H", 10) if head[6] == 1 else ("<I", 12)
        size = struct.unpack_from(code, head, 8)[0]
        if at + size > len(head):
            raise ValueError(f"a header of {size:,} bytes")
        told: Any = ast.literal_eval(head[at : at + size].decode("latin-1").strip())
        if not isinstance(told, dict):
            raise ValueError("a header of another kind")
        entries = cast("dict[str, Any]", told)
        kind, shape = entries["descr"], entries["shape"]
        if not isinstance(shape, tuple) or not all(
            type(n) is int and 0 <= n < LARGEST_DIM for n in cast("tuple[Any, ...]", shape)
        ):
            raise ValueError("no shape")
    except (
        ValueError,
        SyntaxError,
        KeyError,
        IndexError,
        TypeError,
        struct.error,
        MemoryError,
        RecursionError,
    ) as error:
        raise BadInput(f"array {name[:100]!r} has no header that can be read ({error}): copy the file again") from None
    sizes = cast("tuple[int, ...]", shape)
    dtype, is_big = _dtype(kind)
    bits = bits_of(dtype)
    total = math.prod(sizes) * bits // 8 if bits is not None else None
    return at + size, Tensor(name, dtype, sizes, total, is_big_endian=is_big)


def _dtype(text: object) -> tuple[str, bool]:
    if not isinstance(text, str):
        return "object", False  # records
    code = text.lstrip("<>|=")
    if code == "b1":
        return "bool", False
    if code[:1] in _WORDS and code[1:].isdecimal() and len(code) < 5:
        return f"{_WORDS[code[0]]}{int(code[1:]) * 8}", text.startswith(">")
    found = find(code)
    return found.name if found is not None else "object", False
