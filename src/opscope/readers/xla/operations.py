"""What StableHLO writes behind an operation: types, and attributes under the names that HLO has for them."""

from __future__ import annotations

import re
from typing import Any

from .hlo import Array, Shape
from .scanning import outside, split_top, type_start
from .written import window

_TENSOR = re.compile(r"(?:ranked_)?(?:tensor|vector|memref)<(.*)>\Z", re.DOTALL)
_DIMS = re.compile(r"((?:(?:\d+|\?)x)*)(.*)\Z", re.DOTALL)
_NUMBERS = r"\[([-\d, ]*)\]"
_PAIRED = re.compile(rf"(contracting_dims|batching_dims) = {_NUMBERS} x {_NUMBERS}")
_DIMENSIONS = re.compile(rf"(?:dims|dimensions) = {_NUMBERS}")
_DIMENSION = re.compile(r"\bdim = (\d+)")
_SLICE = re.compile(r"%[\w$.\-#]+ (\[[\d:, ]+\])")
_APPLIES = re.compile(r"applies ([\w.]+)")
_SIZES = re.compile(rf"sizes = {_NUMBERS}")
_LABELS = re.compile(r"dim_numbers = \[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")
_WINDOW = re.compile(r"window = \{([^}]*)\}")
_COUNTS = re.compile(r"(batch_group_count|feature_group_count) = (\d+)")
_TARGET = re.compile(r"custom_call @(\"[^\"]*\"|[\w$.\-]+)|^ ?@(\"[^\"]*\"|[\w$.\-]+)\(")
_DIRECTION = re.compile(r"\b(EQ|NE|LT|LE|GT|GE)\b")
_SHARDING = re.compile(r'(?:mhlo|sdy)\.sharding = (?:"([^"]*)"|(#sdy\.\S+(?:<[^}]*>)?))')
_ARRAY = re.compile(r"(\w+) = array<i64: ([-\d, ]*)>")
_DENSE = re.compile(r"padding = dense<([^>]*)> : tensor<(\d+)x2xi64>")


def types_in(text: str) -> tuple[list[Shape], list[Shape] | None]:
    """The types behind an operation: of what is written before an arrow, and of its results where there is one."""
    at = type_start(text)
    if at < 0:
        return [], None
    written = text[at + 3 :].strip()
    before, arrow, after = _arrow(written)
    given = [_type(part) for part in split_top(_bare(before))]
    return given, [_type(part) for part in split_top(_bare(after))] if arrow else None


def _arrow(text: str) -> tuple[str, str, str]:
    at = next((at for at, mark in outside(text) if mark == "->"), -1)
    return (text, "", "") if at < 0 else (text[:at].strip(), "->", text[at + 2 :].strip())


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _type(text: str) -> Shape:
    text = text.strip().split(" {")[0]
    if text.startswith("tuple<"):
        return tuple(_type(part) for part in split_top(text[6:-1]))
    found = _TENSOR.match(text)
    if not found:
        return Array("token" if "token" in text else "opaque", ())
    inside = found[1].split(", #")[0]
    parts = _DIMS.match(inside)
    assert parts is not None
    sizes = tuple(-1 if part == "?" else int(part) for part in parts[1].split("x") if part)
    return Array(_dtype(parts[2].strip()), sizes)


def _dtype(text: str) -> str:
    if text == "i1":
        return "pred"
    if text.startswith("complex<"):
        return "c64" if "f32" in text else "c128"
    if found := re.match(r"(ui|si|i)(\d+)\Z", text):
        return f"{'u' if found[1] == 'ui' else 's'}{found[2]}"
    if text.startswith("!quant.uniform<"):
        kind = re.match(r"!quant\.uniform<([iu]\d+)", text)
        return {"i8": "qint8", "u8": "quint8", "i32": "qint32"}.get(kind[1], "qint8") if kind else "qint8"
    return text.lower()


def attributes(op: str, text: str) -> dict[str, Any]:
    bare = op.rpartition(".")[2]
    attrs: dict[str, Any] = {}
    for name, left, right in _PAIRED.findall(text):
        key = "contracting_dims" if name == "contracting_dims" else "batch_dims"
        attrs[f"lhs_{key}"], attrs[f"rhs_{key}"] = _list(left), _list(right)
    if bare in ("broadcast_in_dim", "transpose", "reverse", "reduce", "dynamic_broadcast_in_dim") and (
        found := _DIMENSIONS.search(text)
    ):
        attrs["dimensions"] = _list(found[1])
    if bare in ("iota", "concatenate", "get_dimension_size") and (found := _DIMENSION.search(text)):
        attrs["iota_dimension" if bare == "iota" else "dimensions"] = (
            int(found[1]) if bare == "iota" else [int(found[1])]
        )
    if bare == "slice" and (found := _SLICE.search(text)):
        attrs["slice"] = [
            [*map(int, part.split(":")), 1][:3] for part in found[1].strip("[]").split(",") if part.strip()
        ]
    if bare == "dynamic_slice" and (found := _SIZES.search(text)):
        attrs["dynamic_slice_sizes"] = _list(found[1])
    if found := _APPLIES.search(text):
        attrs["applies"] = found[1].rpartition(".")[2]
    if bare == "compare" and (found := _DIRECTION.search(text)):
        attrs["direction"] = found[1]
    if bare == "custom_call" and (found := _TARGET.search(text)):
        attrs["custom_call_target"] = (found[1] or found[2]).strip('"')
    if bare == "convolution":
        attrs |= _convolution(text)
    if bare in ("reduce_window", "select_and_scatter"):
        attrs |= _generic_window(text)
    for name, count in _COUNTS.findall(text):
        if int(count) > 1:
            attrs[name] = int(count)
    if found := _SHARDING.search(text):
        attrs["sharding"] = found[1] or found[2]
    return attrs


def _convolution(text: str) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    if found := _LABELS.search(text):
        left, kernel, result = (part.replace(" ", "").replace(",", "") for part in found.groups())
        attrs["dim_labels"] = f"{left}_{kernel}->{result}"
        spatial = [label for label in kernel if label.isdigit()]
        types, _ = types_in(text)
        weight = types[1] if len(types) > 1 else None
        if isinstance(weight, Array) and len(weight.sizes) == len(kernel):
            size = [weight.sizes[kernel.index(str(i))] for i in range(len(spatial))]
            settings = found_window[1] if (found_window := _WINDOW.search(text)) else ""
            attrs |= window(_rows(size, settings))
    return attrs


def _rows(size: list[int], settings: str) -> list[list[int]]:
    """Of each dimension: size, stride, pad low, pad high, window dilation, base dilation, reversed."""
    count = len(size)

    def numbers(name: str, plain: int) -> list[int]:
        found = re.search(rf"{name} = {_NUMBERS}", settings)
        listed = _list(found[1]) if found else []
        return listed if len(listed) == count else [plain] * count

    pads = re.search(r"pad = \[((?:\[[-\d, ]*\](?:, )?)*)\]", settings)
    pairs = [_list(pair) for pair in re.findall(r"\[([-\d, ]*)\]", pads[1])] if pads else []
    if len(pairs) != count or any(len(pair) != 2 for pair in pairs):
        pairs = [[0, 0]] * count
    stride, lhs, rhs = numbers("stride", 1), numbers("lhs_dilate", 1), numbers("rhs_dilate", 1)
    return [[size[i], stride[i], *pairs[i], rhs[i], lhs[i], 0] for i in range(count)]


def _generic_window(text: str) -> dict[str, Any]:
    listed = {name: _list(numbers) for name, numbers in _ARRAY.findall(text)}
    size = listed.get("window_dimensions", [])
    count = len(size)
    plain = [1] * count
    stride, lhs, rhs = (listed.get(n, plain) for n in ("window_strides", "base_dilations", "window_dilations"))
    pads = [[0, 0]] * count
    if (found := _DENSE.search(text)) and int(found[2]) == count:
        numbers = [int(number) for number in re.findall(r"-?\d+", found[1])]
        numbers = numbers * 2 * count if len(numbers) == 1 else numbers
        pads = [numbers[2 * i : 2 * i + 2] for i in range(count)]
    if not count or any(len(rows) != count for rows in (stride, lhs, rhs)):
        return {}
    return window([[size[i], stride[i], *pads[i], rhs[i], lhs[i], 0] for i in range(count)])


def _list(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]
