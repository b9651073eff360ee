"""safetensors files, and the index of those that lie in several: only their headers are read."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, cast

from opscope.errors import BadInput, of_file
from opscope.ir import Capture
from opscope.ir.dtypes import bits_of
from opscope.ir.pools import clean
from opscope.readers import json_text
from opscope.readers.source import Options, Source

from .tree import LARGEST_DIM, Tensor, capture_of

NAME = "safetensors"
_LARGEST_HEADER = 100 << 20  # as the format's own readers
_PIECE = 1 << 22
_MOST_FILES = 10_000
_INDEX = "weight_map"
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "F4": "float4_e2m1fn",
    "F6_E2M3": "float6_e2m3fn", "F6_E3M2": "float6_e3m2fn",
}  # fmt: skip


def match(source: Source) -> bool:
    source = _file(source)
    head = source.head
    if _has_header(head):
        size = struct.unpack_from("<Q", head)[0]
        return 2 <= size <= source.size - 8 and (b'"dtype"' in head or b'"__metadata__"' in head)
    return head.lstrip()[:1] == b"{" and b'"weight_map"' in head


def _file(source: Source) -> Source:
    """In a folder, as models are handed around: the index, or the one file."""
    return source.only("*.safetensors.index.json", "*.safetensors") or source


def _has_header(head: bytes) -> bool:
    return len(head) > 9 and head[8:9] == b"{" and head[:1] != b"{"


def read(source: Source, options: Options) -> Capture:
    source = _file(source)
    try:
        if _has_header(source.head):
            tensors, metadata = tensors_of(source)
            return _capture(tensors, metadata, [], options)
        return _sharded(source, options)
    except BadInput as error:
        raise of_file(error, source.name, "not readable safetensors") from None


def _capture(tensors: list[Tensor], metadata: str, warnings: list[str], options: Options) -> Capture:
    return capture_of(
        tensors, format=NAME, metadata=metadata, warnings=warnings, options=options
    )  # fmt: skip


def tensors_of(source: Source, file: str = "") -> tuple[list[Tensor], str]:
    """What the header says, and its metadata as text."""
    with source.open() as opened:
        begin = opened.read(8)
        size = struct.unpack("<Q", begin)[0] if len(begin) == 8 else -1
        if not 0 <= size <= min(_LARGEST_HEADER, source.size - 8):
            raise BadInput(f"a header of {size:,} bytes in a file of {source.size:,}: it may be cut off, copy it again")
        header = json_text.parse(opened.read(size))
    if not isinstance(header, dict):
        raise BadInput("its header is no JSON object")
    entries = cast("dict[str, Any]", header)
    told = entries.pop("__metadata__", None)
    data = 8 + size
    found = [_tensor(source, name, entry, data, file) for name, entry in entries.items()]
    found.sort(key=lambda tensor: _natural(tensor.name))
    return found, clean(json.dumps(told, ensure_ascii=False, indent=1))[:100_000] if isinstance(told, dict) else ""


def _natural(name: str) -> list[tuple[int, str]]:
    """Layer 2 before layer 10: the file has them in the order of their letters, or in that of their places."""
    return [(int(part), "") if part.isdecimal() and len(part) < 10 else (-1, part) for part in re.split(r"(\d+)", name)]


def _tensor(source: Source, name: str, entry: object, data: int, file: str) -> Tensor:
    told = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    kind, shape, offsets = told.get("dtype"), told.get("shape"), told.get("data_offsets")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(cast("list[int]", offsets)) != 2:
        raise BadInput(f"tensor {name[:100]!r} has no shape or no place: the file is damaged")
    begin, end = cast("list[int]", offsets)
    if not begin <= end <= source.size - data:
        raise BadInput(
            f"tensor {name[:100]!r} lies at bytes {begin:,} to {end:,} of {max(source.size - data, 0):,}: the file may "
            "be cut off, copy it again"
        )
    dtype = DTYPES.get(str(kind), str(kind)[:20].lower())
    sizes = tuple(cast("list[int]", shape))
    bits, count = bits_of(dtype), 1
    for size in sizes:
        count *= size
    if bits is not None and -(-count * bits // 8) != end - begin:
        raise BadInput(f"tensor {name[:100]!r} takes {end - begin:,} bytes, which its shape {list(sizes)} does not")
    return Tensor(
        name, dtype, sizes, end - begin, file=file, at=data + begin, pieces=slices(source, data + begin, end - begin)
    )


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(
        type(size) is int and 0 <= size < LARGEST_DIM for size in cast("list[Any]", value)
    )


def slices(source: Source, at: int, size: int) -> Callable[[], Iterator[bytes]]:
    """Bytes of a file, a piece at a time."""

    def pieces() -> Iterator[bytes]:
        with source.open() as file:
            file.seek(at)
            left = size
            while left > 0 and (piece := file.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece

    return pieces


# -- several files ------------------------------------------------------------------------------------


def _sharded(source: Source, options: Options) -> Capture:
    """`model.safetensors.index.json`: which file has which tensor."""
    parsed = json_text.parse(source.read(json_text.LARGEST))
    index = cast("dict[str, Any]", parsed).get(_INDEX) if isinstance(parsed, dict) else None
    if not isinstance(index, dict) or source.path is None or source.data is not None:
        raise BadInput("an index names the files beside it: open it where they lie")
    wanted = {str(name): str(file) for name, file in cast("dict[Any, Any]", index).items()}
    files = sorted(set(wanted.values()))
    if len(files) > _MOST_FILES:
        raise BadInput(f"{len(files):,} files; {_MOST_FILES:,} are the most")
    found: list[Tensor] = []
    missing: list[str] = []
    for file in files:
        path = _beside(source.path, file)
        if path is None:
            missing.append(file)
            continue
        held, _ = tensors_of(Source.of(path), file)
        found += [tensor for tensor in held if wanted.get(tensor.name) == file]
    names = {tensor.name for tensor in found}
    lost = [name for name in wanted if name not in names]
    # What lies in files that are not there has a name all the same.
    found += [Tensor(name, "", None, None, file=wanted[name]) for name in lost]
    warnings: list[str] = []
    if missing:
        warnings.append(f"{len(missing):,} of {len(files):,} files are not there: {', '.join(missing[:3])}"[:500])
    if lost:
        warnings.append(
            f"{len(lost):,} tensors of the index are in none of the files: nothing but their names is known"
        )
    told = cast("dict[str, Any]", parsed).get("metadata")
    metadata = clean(json.dumps(told, ensure_ascii=False, indent=1))[:100_000] if isinstance(told, dict) else ""
    return _capture(found, metadata, warnings, options)


def _beside(index: Path, name: str) -> Path | None:
    """A file in the folder of the index; no other."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        return None
    place = index.parent / path
    return place if place.is_file() else None
