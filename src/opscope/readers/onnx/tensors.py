"""Types and tensors of an .onnx file. Numbers are looked at only where they are few."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from opscope.ir.dtypes import bits_of, sparse
from opscope.ir.pools import Dim
from opscope.readers.pages import Span
from opscope.readers.protobuf import Message, Reader, packed

# TensorProto.DataType
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4",
    23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
    27: "float6_e2m3fn", 28: "float6_e3m2fn",
}  # fmt: skip
_NUMPY = {
    "float32": "<f4", "uint8": "u1", "int8": "i1", "uint16": "<u2", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "bool": "?", "float16": "<f2", "float64": "<f8", "uint32": "<u4", "uint64": "<u8",
}  # fmt: skip
# Which field has the numbers that are not raw: as floats, doubles, or varints.
_FIELDS = {"float32": "float_data", "float64": "double_data", "int64": "int64_data", "uint64": "uint64_data"}
_FIELDS["uint32"] = "uint64_data"
FEW = 64  # numbers that are shown
_LARGEST_DIM = 1 << 62
_MADE_UP = re.compile(r"unk__\d+")  # what ONNX's own inference calls a size that it does not know


class Typed(NamedTuple):
    """A dtype as opscope spells it, "" where it is not known; and a shape, None where that is not known."""

    dtype: str = ""
    shape: tuple[Dim, ...] | None = None

    def __str__(self) -> str:
        if self.shape is None:
            return self.dtype or "?"
        return f"{self.dtype or '?'}[{','.join('?' if d is None else str(d) for d in self.shape)}]"


class Data(NamedTuple):
    """Where the bytes of a tensor lie: in this file, or in another one, which nobody opens."""

    at: int
    size: int
    file: str = ""


def dtype(number: object) -> str:
    return DTYPES.get(number, "") if isinstance(number, int) else ""


def type_of(proto: Message | None, depth: int = 0) -> Typed:
    """What a TypeProto says. Sequences, maps and optionals have a dtype that names what is in them, and no shape."""
    if proto is None or depth > 8:
        return Typed()
    for kind, inner in proto.items():
        if kind == "tensor_type":
            return Typed(dtype(inner.get("elem_type")), _shape(inner.get("shape")))
        if kind == "sparse_tensor_type":
            return Typed(sparse("sparse_coo", dtype(inner.get("elem_type"))), _shape(inner.get("shape")))
        if kind in ("sequence_type", "optional_type"):
            return Typed(f"{kind.removesuffix('_type')}({type_of(inner.get('elem_type'), depth + 1)})")
        if kind == "map_type":
            return Typed(f"map({dtype(inner.get('key_type'))}, {type_of(inner.get('value_type'), depth + 1)})")
        if kind == "opaque_type":
            return Typed(f"opaque({inner.get('name', '')})")
    return Typed()


def _shape(proto: Message | None) -> tuple[Dim, ...] | None:
    return None if proto is None else tuple(map(_dim, proto.get("dim", ())))


def _dim(proto: Message) -> Dim:
    size = proto.get("dim_value")
    if size is not None:
        return size if 0 <= size < _LARGEST_DIM else None
    symbol = proto.get("dim_param", "").strip()
    return None if not symbol or _MADE_UP.fullmatch(symbol) else symbol


def type_of_tensor(tensor: Message) -> Typed:
    sizes = cast("list[int]", tensor.get("dims", []))
    if not all(0 <= size < _LARGEST_DIM for size in sizes):
        return Typed(dtype(tensor.get("data_type")))
    return Typed(dtype(tensor.get("data_type")), tuple(sizes))


def type_of_sparse(tensor: Message) -> Typed:
    values = type_of_tensor(tensor.get("values", {}))
    sizes = cast("list[int]", tensor.get("dims", []))
    return Typed(sparse("sparse_coo", values.dtype), tuple(size if size >= 0 else None for size in sizes))


def data_of(tensor: Message) -> Data | None:
    """Where the numbers of a tensor lie, if they lie in one piece."""
    if tensor.get("data_location") == 1 or tensor.get("external_data"):
        entries = {entry.get("key"): entry.get("value", "") for entry in tensor.get("external_data", ())}
        size = bytes_of(type_of_tensor(tensor)) or 0
        offset, length = _number(entries.get("offset"), 0), _number(entries.get("length"), size)
        return Data(offset, length, str(entries.get("location") or "?"))
    raw = tensor.get("raw_data")
    if raw is not None:
        return Data(*raw)
    field = _FIELDS.get(dtype(tensor.get("data_type")), "int32_data")
    pieces = cast("list[Span]", tensor.get(field, []))
    return Data(*pieces[0]) if len(pieces) == 1 and field in ("float_data", "double_data") else None


def bytes_of(type_: Typed) -> int | None:
    bits = bits_of(type_.dtype)
    if bits is None or type_.shape is None or not all(isinstance(size, int) for size in type_.shape):
        return None
    return -(-math.prod(cast("tuple[int, ...]", type_.shape)) * bits // 8)


def _number(text: object, default: int) -> int:
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 19 else default


def numbers(reader: Reader, tensor: Message) -> Any:
    """The numbers of a small tensor that lies in the file, nested as its shape says; None for any other."""
    kind, shape = type_of_tensor(tensor)
    count = math.prod(cast("tuple[int, ...]", shape)) if shape is not None else FEW + 1
    if count > FEW or tensor.get("data_location") == 1:
        return None
    try:
        flat = _flat(reader, tensor, kind, count)
    except (struct.error, ValueError, OverflowError):
        return None
    if flat is None or len(flat) != count:
        return None
    return _nested(flat, cast("tuple[int, ...]", shape))


def _flat(reader: Reader, tensor: Message, kind: str, count: int) -> list[Any] | None:
    if kind == "string":
        texts = [reader.read(span)[:200] for span in tensor.get("string_data", ())]
        return [text.decode("utf-8", "backslashreplace") for text in texts]
    raw: Span | None = tensor.get("raw_data")
    if raw is not None:
        if raw.size > 16 * FEW:
            return None
        return _from_bytes(reader.read(raw), kind, count)
    field = _FIELDS.get(kind, "int32_data")
    pieces = b"".join(reader.read(span) for span in tensor.get(field, ()) if span.size <= 16 * FEW)
    if field in ("float_data", "double_data"):
        return np.frombuffer(pieces, dtype=_NUMPY[kind]).tolist()
    found = packed(pieces, signed=field != "uint64_data")
    if kind in ("float16", "bfloat16") or kind.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2")):
        width = 2 if kind.endswith("16") else 1
        return _from_bytes(b"".join(int(n & 0xFFFF).to_bytes(2, "little")[:width] for n in found), kind, count)
    return [bool(n) for n in found] if kind == "bool" else list(found)


def _from_bytes(data: bytes, kind: str, count: int) -> list[Any] | None:
    if kind in _NUMPY:
        return np.frombuffer(data, dtype=_NUMPY[kind]).tolist()
    if kind == "bfloat16":
        return (np.frombuffer(data, dtype="<u2").astype(np.uint32) << 16).view(np.float32).tolist()
    if kind in ("int4", "uint4", "int2", "uint2"):
        bits = int(kind[-1])
        found = [byte >> shift & ((1 << bits) - 1) for byte in data for shift in range(0, 8, bits)][:count]
        return [n - (1 << bits) if kind[0] == "i" and n >> (bits - 1) else n for n in found]
    return None


def _nested(flat: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return list(flat)
    step = math.prod(shape[1:])
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
