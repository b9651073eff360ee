"""The operators of a dumped model as MegEngine's visualizer lists them, and what it counts for each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from opscope.readers.megengine.infer import dtypes
from opscope.readers.megengine.kinds import live
from opscope.readers.megengine.model import Dtype, Model, Operator, Tensor

Shape = tuple[int, ...]
_PROVIDERS = ("ImmutableTensor", "Host2DeviceCopy")


@dataclass
class Listed:
    """One operator. Shapes and types that are not known are None."""

    name: str
    type: str  # as MegEngine's `Network` names it
    params: dict[str, Any]
    inputs: list[Listed]
    input_shapes: list[Shape | None]
    output_shapes: list[Shape | None]
    dtype: str | None  # of the output that counts
    tensor: Tensor | None = None  # the weights, in the file
    mean: str | None = None
    std: str | None = None
    rf: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    outputs: list[Any] = field(default_factory=list[Any])  # MegEngine's variables, where it is the source

    @property
    def shape(self) -> Shape | None:
        """Of the output that counts: the last one of a BatchNorm, the first of all others."""
        if not self.output_shapes:
            return None
        return self.output_shapes[-1 if self.type == "BatchNorm" else 0]


def in_file(model: Model) -> list[Listed]:
    """The operators of a decoded file, in MegEngine's order: inputs and parameters right before who reads them."""
    shapes: dict[int, Shape | None] = {}
    types: dict[int, Dtype | None] = {}
    makers: dict[int, Listed] = {}
    listed: list[Listed] = []
    for operator in model.operators:
        found = dtypes(operator, [types.get(number) for number in operator.inputs])
        for i, (number, dtype) in enumerate(zip(operator.outputs, found, strict=True)):
            variable = model.variables.get(number)
            tensor = operator.tensors[min(i, len(operator.tensors) - 1)] if _is_provider(operator) else None
            shapes[number] = (variable.shape if variable else None) or (tensor.shape if tensor else None)
            types[number] = (variable.dtype if variable else None) or dtype
        row = _listed(operator, model, shapes, types, makers)
        for number in operator.outputs:
            makers[number] = row
        listed.append(row)
    return ordered(listed)


def _is_provider(operator: Operator) -> bool:
    return bool(operator.tensors) and (operator.is_input or operator.is_parameter)


def _listed(
    operator: Operator,
    model: Model,
    shapes: dict[int, Shape | None],
    types: dict[int, Dtype | None],
    makers: dict[int, Listed],
) -> Listed:
    kind = live(operator.type)
    outputs = operator.outputs
    counted = outputs[-1 if kind == "BatchNorm" else 0] if outputs else None
    dtype = types.get(counted) if counted is not None else None
    names = [variable.name for number in outputs if (variable := model.variables.get(number)) and variable.name]
    provided = operator.tensors[0] if _is_provider(operator) else None
    return Listed(
        name=operator.name or next(iter(names), "") or (provided.name if provided else "") or kind,
        type=kind,
        params=operator.param or {},
        inputs=[makers[number] for number in operator.inputs if number in makers],
        input_shapes=[shapes.get(number) for number in operator.inputs],
        output_shapes=[shapes.get(number) for number in outputs],
        dtype=dtype.name if dtype and dtype.name else None,
        tensor=provided,
    )


def ordered(listed: Sequence[Listed]) -> list[Listed]:
    """As MegEngine's `get_oprs_seq` has them."""
    placed: set[int] = set()
    found: list[Listed] = []
    for row in listed:
        if row.type in _PROVIDERS:
            continue
        for provider in row.inputs:
            if provider.type in _PROVIDERS and id(provider) not in placed:
                placed.add(id(provider))
                found.append(provider)
        found.append(row)
    return found


# -- what is counted --------------------------------------------------------------------------------------


def flops(row: Listed) -> float | None:
    """None where MegEngine's convention counts nothing, or a shape is not known.

    A product counts its inner dimension, also where it is transposed or has other than two or three dimensions.
    """
    shape = row.output_shapes[0] if row.output_shapes else None
    if shape is None:
        return None
    count = math.prod(shape)
    if row.type in ("Elemwise", "ElemwiseMultiType"):
        return count
    first, second = [*row.input_shapes, None, None][:2]
    if row.type in ("MatrixMul", "BatchedMatmul") and first is not None and len(first) > 1:
        return count * first[-2 if row.params.get("transposeA") else -1]
    if row.type in ("Convolution", "ConvBias") and second is not None and len(second) > 3:
        channels = second[2] if len(second) == 5 else second[1]
        return count * (float(channels * second[-1] * second[-2]) + (row.type == "ConvBias"))
    return None


def see(rows: Sequence[Listed]) -> Iterator[tuple[Listed, bool]]:
    """The receptive field of every operator, by MegEngine's rule: only convolutions widen it; and whether it is one."""
    for row in rows:
        if row.inputs:
            row.rf = max(r.rf[0] for r in row.inputs), max(r.rf[1] for r in row.inputs)
            row.stride = max(r.stride[0] for r in row.inputs), max(r.stride[1] for r in row.inputs)
        weight = list((row.input_shapes[1] if len(row.input_shapes) > 1 else None) or ())
        widens = row.type in ("Convolution", "ConvBias") and len(weight) > 3
        if widens:
            height, width = weight[-2:]
            (rf_h, rf_w), (stride_h, stride_w) = row.rf, row.stride
            row.rf = height * stride_h + rf_h - stride_h, width * stride_w + rf_w - stride_w
            row.stride = row.params.get("stride_h", 1) * stride_h, row.params.get("stride_w", 1) * stride_w
        yield row, widens
