"""Shapes that a file leaves out, by ONNX's own inference where the package is installed."""

from __future__ import annotations

import importlib
from typing import Any

from opscope.readers.pages import Pages, Whole
from opscope.readers.protobuf import Message, Reader

from .schema import SCHEMA
from .tensors import bytes_of, type_of, type_of_tensor

_LARGEST = 256 << 20  # bytes of the graph without its weights
_KEPT = 4096  # bytes of a weight: smaller ones may be shapes


def with_shapes(data: Pages | Whole, size: int, model: Message) -> list[str]:
    """Adds to the graph what can be inferred. Says how many values have no shape after that."""
    graph = model["graph"]
    missing = _missing(graph)
    if not missing:
        return []
    inferred = _inferred(data, size, model)
    if inferred is not None:
        known = {info.get("name"): info for info in graph.get("value_info", ())}
        for info in inferred:
            known.setdefault(info.get("name"), info)
            if type_of(known[info.get("name")].get("type")).shape is None:
                known[info.get("name")] = info
        graph["value_info"] = list(known.values())
        left = _missing(graph)
        found = len(missing) - len(left)
        said = [f"the file leaves out the shapes of {len(missing):,} values: onnx inferred {found:,} of them"]
        return said if not left else [f"{said[0]}, {len(left):,} are not known"]
    return [
        f"the file leaves out the shapes of {len(missing):,} values: costs of what reads them are unknown. "
        "Install onnx (pip install onnx), and they are inferred; or save the model with onnx.shape_inference"
    ]


def _missing(graph: Message) -> list[str]:
    """Values that nodes of the main graph make and whose type the file does not say."""
    known = {
        info.get("name")
        for info in (*graph.get("value_info", ()), *graph.get("output", ()), *graph.get("input", ()))
        if (type_ := type_of(info.get("type"))).shape is not None or "(" in type_.dtype
    }
    return [
        name
        for node in graph.get("node", ())
        if node.get("op_type") != "Constant"
        for name in node.get("output", ())
        if name and name not in known
    ]


def _inferred(data: Pages | Whole, size: int, model: Message) -> list[Message] | None:
    """The types that ONNX infers; None where it is not installed, or cannot."""
    try:
        onnx: Any = importlib.import_module("onnx")
        inference: Any = importlib.import_module("onnx.shape_inference")
    except ImportError:
        return None
    text = _without_weights(data, size, model)
    if len(text) > _LARGEST:
        return None
    try:
        done: Any = inference.infer_shapes(onnx.load_model_from_string(text))
        made: bytes = done.SerializeToString()
    except Exception:  # the checker meets what it does not like with many kinds of errors
        return None
    found = Reader(Whole(made), SCHEMA).message("ModelProto", 0, len(made))
    graph = found.get("graph", {})
    return [*graph.get("value_info", ()), *graph.get("output", ())]


def _without_weights(data: Pages | Whole, size: int, model: Message) -> bytes:
    """The same file, in which large weights have a type and no numbers."""
    large = [
        span
        for tensor in model["graph"].get("initializer", ())
        if (bytes_of(type_of_tensor(tensor)) or 0) > _KEPT
        for key in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")
        for span in ([tensor[key]] if key == "raw_data" and key in tensor else tensor.get(key, ()))
    ]
    return _cut(data, 0, size, sorted(large), 0)


def _cut(data: Pages | Whole, start: int, end: int, spans: list[Any], level: int) -> bytes:
    """The message between two places without the fields that are these spans; lengths around them shrink."""
    if not spans:
        return bytes(data[start:end])
    out: list[bytes] = []
    at = start
    left = list(spans)
    while at < end:
        key, after = _number(data, at)
        if key & 7 != 2:  # a number: as it is
            at, begun = _past(data, after, key & 7), at
            out.append(bytes(data[begun:at]))
            continue
        length, content = _number(data, after)
        stop = content + length
        inside: list[Any] = []
        while left and left[0].at < stop:
            inside.append(left.pop(0))
        if inside and inside[0].at == content and inside[0].size == length:
            out.append(_encoded(14 << 3) + b"\x01")  # data_location: EXTERNAL
        elif inside and level < 2:
            cut = _cut(data, content, stop, inside, level + 1)
            out.append(bytes(data[at:after]) + _encoded(len(cut)) + cut)
        else:
            out.append(bytes(data[at:stop]))
        at = stop
    return b"".join(out)


def _number(data: Pages | Whole, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in bytes(data[at : at + 10]):
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value, at


def _past(data: Pages | Whole, at: int, wire: int) -> int:
    return {0: lambda: _number(data, at)[1], 1: lambda: at + 8, 5: lambda: at + 4}[wire]()


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
