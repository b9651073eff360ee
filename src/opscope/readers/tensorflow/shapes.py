"""Shapes that a graph leaves out, for the operators of which they follow from the inputs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

from opscope.ir.pools import Dim

Shape = tuple[Dim, ...] | None
Rule = Callable[[Sequence[Shape], Sequence[Any], Mapping[str, Any]], Shape]

_SAME = [
    "Identity",
    "Relu",
    "Relu6",
    "Elu",
    "Selu",
    "LeakyRelu",
    "Softplus",
    "Softsign",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Log",
    "Sqrt",
    "Rsqrt",
    "Square",
    "Neg",
    "Abs",
    "Sign",
    "Floor",
    "Ceil",
    "Round",
    "Erf",
    "Sin",
    "Cos",
    "Softmax",
    "LogSoftmax",
    "BiasAdd",
    "Cast",
    "StopGradient",
    "LRN",
    "FusedBatchNorm",
    "FusedBatchNormV2",
    "FusedBatchNormV3",
    "LogicalNot",
    "Reciprocal",
    "ZerosLike",
    "OnesLike",
    "IdentityN",
    "CheckNumerics",
    "PreventGradient",
    "Cumsum",
    "FakeQuantWithMinMaxVars",
    "Log1p",
    "Expm1",
    "ReverseV2",
    "ClipByValue",
]
_BROADCAST = [
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "RealDiv",
    "Div",
    "FloorDiv",
    "FloorMod",
    "Mod",
    "Maximum",
    "Minimum",
    "Pow",
    "SquaredDifference",
    "Less",
    "LessEqual",
    "Greater",
    "GreaterEqual",
    "Equal",
    "NotEqual",
    "LogicalAnd",
    "LogicalOr",
    "Atan2",
    "DivNoNan",
]
_REDUCE = ("Mean", "Sum", "Max", "Min", "Prod", "Any", "All")


def inferred(op: str, shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    """`values`: the numbers of inputs that are small constants, else None."""
    rule = _RULES.get(op)
    try:
        return rule(shapes, values, attrs) if rule is not None else None
    except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, AttributeError):
        return None  # a file may say anything


def _same(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    return shapes[0]


def _broadcast(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    a, b = shapes[0], shapes[1]
    if a is None or b is None:
        return None
    out: list[Dim] = []
    for i in range(1, max(len(a), len(b)) + 1):
        x, y = a[-i] if i <= len(a) else 1, b[-i] if i <= len(b) else 1
        out.append(y if x == 1 else x if y == 1 or x == y else None)
    return tuple(out[::-1])


def _reduced(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    given, axes = shapes[0], values[1]
    if given is None or axes is None:
        return None
    listed: list[int] = cast("list[int]", axes) if isinstance(axes, list) else [int(axes)]
    chosen = {axis % len(given) for axis in listed}
    keep = attrs.get("keep_dims", False)
    return tuple(1 if i in chosen else size for i, size in enumerate(given) if keep or i not in chosen)


def _matmul(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    a, b = shapes[0], shapes[1]
    if a is None or b is None:
        return None
    turned = attrs.get("transpose_a", attrs.get("adj_x", False)), attrs.get("transpose_b", attrs.get("adj_y", False))
    batch = _broadcast([a[:-2], b[:-2]], [], {})
    return None if batch is None else (*batch, a[-1 if turned[0] else -2], b[-2 if turned[1] else -1])


def _windowed(given: Shape, kernel: Sequence[Dim], attrs: Mapping[str, Any], channels: Dim) -> Shape:
    """[batch, height, width, channels], or the channels behind the batch."""
    if given is None or len(given) not in (4, 5):
        return None
    last = str(attrs.get("data_format", "NHWC")) in ("NHWC", "NDHWC")
    first = 1 if last else 2
    strides = attrs.get("strides") or [1] * len(given)
    dilations = attrs.get("dilations") or [1] * len(given)
    sizes: list[Dim] = []
    for i, side in enumerate(kernel):
        size, stride = given[first + i], strides[first + i]
        if not isinstance(size, int) or not isinstance(side, int):
            sizes.append(None)
        elif attrs.get("padding") == "SAME":
            sizes.append(-(-size // stride))
        elif attrs.get("padding") == "VALID":
            sizes.append(-(-(size - (side - 1) * dilations[first + i]) // stride))
        else:
            return None
    return (given[0], *sizes, channels) if last else (given[0], channels, *sizes)


def _conv(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    weight = shapes[1]
    return None if weight is None else _windowed(shapes[0], weight[:-2], attrs, weight[-1])


def _depthwise(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    weight = shapes[1]
    if weight is None:
        return None
    sides = weight[2], weight[3]
    channels = sides[0] * sides[1] if isinstance(sides[0], int) and isinstance(sides[1], int) else None
    return _windowed(shapes[0], weight[:2], attrs, channels)


def _pool(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    given = shapes[0]
    last = str(attrs.get("data_format", "NHWC")) in ("NHWC", "NDHWC")
    kernel = attrs["ksize"][1:-1] if last else attrs["ksize"][2:]
    return None if given is None else _windowed(given, kernel, attrs, given[-1 if last else 1])


def _reshaped(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    target = values[1]
    if not isinstance(target, list):
        return None
    sizes = [int(size) for size in cast("list[Any]", target)]
    given = shapes[0]
    if -1 in sizes and given is not None and all(isinstance(size, int) for size in given):
        total, known = prod(size for size in given if isinstance(size, int)), prod(s for s in sizes if s != -1)
        sizes[sizes.index(-1)] = total // known
    return tuple(size if size >= 0 else None for size in sizes)


def _concatenated(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    axis, parts = values[-1], [shape for shape in shapes[:-1] if shape is not None]
    if not isinstance(axis, int) or len(parts) != len(shapes) - 1:
        return None
    sizes = [part[axis] for part in parts]
    total = sum(size for size in sizes if isinstance(size, int)) if all(isinstance(s, int) for s in sizes) else None
    found = list(parts[0])
    found[axis] = total
    return tuple(found)


def _transposed(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    given, order = shapes[0], values[1]
    if given is None or not isinstance(order, list):
        return None
    return tuple(given[int(i)] for i in cast("list[Any]", order))


def _padded(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    given, pads = shapes[0], values[1]
    if given is None or not isinstance(pads, list):
        return None
    added = [sum(pad) for pad in cast("list[list[int]]", pads)]
    return tuple(size + more if isinstance(size, int) else None for size, more in zip(given, added, strict=True))


def _squeezed(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    given, axes = shapes[0], attrs.get("squeeze_dims") or attrs.get("axis")
    if given is None:
        return None
    chosen = {axis % len(given) for axis in axes} if axes else {i for i, size in enumerate(given) if size == 1}
    return tuple(size for i, size in enumerate(given) if i not in chosen)


def _expanded(shapes: Sequence[Shape], values: Sequence[Any], attrs: Mapping[str, Any]) -> Shape:
    given, axis = shapes[0], values[1]
    axis = cast("list[Any]", axis)[0] if isinstance(axis, list) else axis
    if given is None or not isinstance(axis, int):
        return None
    at = axis % (len(given) + 1)
    return (*given[:at], 1, *given[at:])


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(_REDUCE, _reduced),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _matmul),
    **dict.fromkeys(("Conv2D", "Conv3D"), _conv),
    **dict.fromkeys(("MaxPool", "AvgPool"), _pool),
    "DepthwiseConv2dNative": _depthwise,
    "Reshape": _reshaped,
    "ConcatV2": _concatenated,
    "Transpose": _transposed,
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _padded),
    "Squeeze": _squeezed,
    "ExpandDims": _expanded,
}
