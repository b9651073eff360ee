"""GGUF files of llama.cpp: tensors by module, how they are quantized, and what the file says of the model."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from opscope.errors import BadInput, of_file
from opscope.ir import Capture
from opscope.ir.dtypes import bytes_of
from opscope.ir.pools import clean
from opscope.readers.source import Options, Source

from .blocks import DECODERS
from .safetensors import slices
from .tree import LARGEST_DIM, MOST_TENSORS, Tensor, capture_of

NAME = "gguf"
_MAGIC = b"GGUF"
_LONGEST_TEXT = 64 << 20
_SHOWN = 200  # characters of a value
_FEW = 8  # of a list
_MOST_ENTRIES = 1_000_000
_MOST_ITEMS = 50_000_000
_DEEPEST = 4
_DTYPES = {
    0: "float32", 1: "float16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 9: "q8_1", 10: "q2_k",
    11: "q3_k", 12: "q4_k", 13: "q5_k", 14: "q6_k", 15: "q8_k", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs",
    19: "iq1_s", 20: "iq4_nl", 21: "iq3_s", 22: "iq2_s", 23: "iq4_xs", 24: "int8", 25: "int16", 26: "int32",
    27: "int64", 28: "float64", 29: "iq1_m", 30: "bfloat16", 34: "tq1_0", 35: "tq2_0", 39: "mxfp4",
}  # fmt: skip
# Types of what the file says: the code of one, or a text (8), or a list (9).
_VALUES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


class _Info(NamedTuple):
    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


def match(source: Source) -> bool:
    return source.head.startswith(_MAGIC)


def read(source: Source, options: Options) -> Capture:
    try:
        with source.open() as file:
            header = _Header(file, source.size)
            told = header.metadata()
            infos = header.tensors()
            begin = -(-file.tell() // header.alignment(told)) * header.alignment(told)
    except BadInput as error:
        raise of_file(error, source.name, "not a readable GGUF file") from None
    except (struct.error, ValueError, OverflowError) as error:
        raise BadInput(f"{source.name}: not a readable GGUF file ({error}): copy it again") from None
    warnings: list[str] = []
    found = [_tensor(source, info, begin, header.is_big_endian) for info in infos]
    cut = [t for t in found if t.size is not None and (t.at or 0) + t.size > source.size]
    if cut:
        warnings.append(
            f"{len(cut):,} of {len(found):,} tensors lie beyond the end of the file, which was cut off: copy it again"
        )
        gone = {t.name for t in cut}
        found = [t._replace(pieces=None) if t.name in gone else t for t in found]
    text = "\n".join(f"{key}: {value}" for key, value in told.items())
    version = f"version {header.version}, {told['general.architecture']}" if "general.architecture" in told else ""
    return capture_of(
        found, format=NAME, version=version, metadata=clean(text)[:200_000], warnings=warnings,
        options=options,
    )  # fmt: skip


def _tensor(source: Source, info: _Info, begin: int, is_big_endian: bool) -> Tensor:
    dtype = _DTYPES.get(info.kind, f"ggml_type_{info.kind}")
    count = math.prod(info.shape)
    size = bytes_of(dtype, count) if count < 1 << 60 else None
    at = begin + info.offset
    pieces: Callable[[], Iterator[Any]] | None = slices(source, at, size) if size is not None else None
    attrs: dict[str, Any] = {}
    if pieces is not None and dtype in DECODERS:
        pieces = partial(DECODERS[dtype].pieces, pieces)
        attrs["read as"] = "float32"
    return Tensor(info.name, dtype, info.shape, size, at=at, pieces=pieces, attrs=attrs, is_big_endian=is_big_endian)


class _Header:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self._items = 0
        begin = self._take(8)
        self._order = "<"
        self.version = struct.unpack("<I", begin[4:])[0]
        if self.version & 0xFFFF == 0:  # of a machine with the other order of bytes
            self._order = ">"
            self.version = struct.unpack(">I", begin[4:])[0]
        if not 1 <= self.version <= 100:
            raise BadInput(f"version {self.version:,}, of which nothing is known")
        self._long = "I" if self.version == 1 else "Q"
        self._n_tensors, self._n_entries = self._number(self._long), self._number(self._long)
        if self._n_tensors > MOST_TENSORS or self._n_entries > _MOST_ENTRIES:
            raise BadInput(f"{self._n_tensors:,} tensors and {self._n_entries:,} entries: it is damaged, copy it again")

    @property
    def is_big_endian(self) -> bool:
        return self._order == ">"

    def alignment(self, told: dict[str, Any]) -> int:
        found = told.get("general.alignment")
        return int(found) if isinstance(found, str) and found.isdecimal() and 0 < int(found[:9]) < 1 << 20 else 32

    def metadata(self) -> dict[str, str]:
        """Texts as they are shown; long ones are cut."""
        return {self._text()[:_SHOWN]: self._value(self._number("I"), 0) for _ in range(self._n_entries)}

    def tensors(self) -> list[_Info]:
        found: list[_Info] = []
        for _ in range(self._n_tensors):
            name, dimensions = self._text()[:1000], self._number("I")
            if dimensions > 16:
                raise BadInput(f"a tensor of {dimensions:,} dimensions: it is damaged, copy it again")
            sizes = [self._number(self._long) for _ in range(dimensions)]
            if not all(size < LARGEST_DIM for size in sizes):
                raise BadInput(f"tensor {name[:100]!r} is larger than anything: it is damaged, copy it again")
            kind, offset = self._number("I"), self._number("Q")
            if offset >= LARGEST_DIM:
                raise BadInput(f"tensor {name[:100]!r} lies beyond anything: it is damaged, copy it again")
            # The file counts from the innermost dimension.
            found.append(_Info(name, tuple(sizes[::-1]), kind, offset))
        return found

    def _value(self, kind: int, depth: int) -> str:
        if kind == _TEXT:
            text = self._text()
            return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"
        if kind == _LIST and depth < _DEEPEST:
            inner, count = self._number("I"), self._number(self._long)
            self._items += count
            if self._items > _MOST_ITEMS or count > self._size:
                raise BadInput(f"a list of {count:,} values: it is damaged, copy it again")
            if inner in _VALUES and count > _FEW:
                shown = [self._value(inner, depth + 1) for _ in range(_FEW)]
                self._pass((count - _FEW) * struct.calcsize(self._order + _VALUES[inner]))
            else:
                shown = []
                for i in range(count):
                    one = self._value(inner, depth + 1)
                    if i < _FEW:
                        shown.append(one)
            return f"[{', '.join(shown)}{f', … {count:,} in all' if count > _FEW else ''}]"
        if kind in _VALUES:
            return str(self._number(_VALUES[kind]))
        raise BadInput(f"a value of type {kind:,}, of which nothing is known")

    def _number(self, code: str) -> Any:
        return struct.unpack(self._order + code, self._take(struct.calcsize(self._order + code)))[0]

    def _text(self) -> str:
        size = self._number(self._long)
        if size > _LONGEST_TEXT:
            raise BadInput(f"a text of {size:,} bytes: it is damaged, copy it again")
        return self._take(size).decode("utf-8", "backslashreplace")

    def _take(self, size: int) -> bytes:
        if size > self._size - self._file.tell():
            raise BadInput(f"{size:,} bytes are announced, {self._size - self._file.tell():,} are left: copy it again")
        return self._file.read(size)

    def _pass(self, size: int) -> None:
        if size > self._size - self._file.tell():
            raise BadInput(f"{size:,} bytes are announced, {self._size - self._file.tell():,} are left: copy it again")
        self._file.seek(size, 1)
