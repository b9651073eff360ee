"""The numbers that a .mge file holds, on request: their mean and standard deviation, a piece at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Capture
from opscope.ir.measurements import Figures, figures_table
from opscope.ir.tally import figures_of
from opscope.readers.pages import Pages, Whole, mapped
from opscope.readers.source import Source

from . import decoded
from .model import Dtype, Tensor

_PIECE = 1 << 22  # bytes in memory at a time

_NUMPY = {
    "float32": "<f4", "float16": "<f2", "int32": "<i4", "int16": "<i2", "int8": "i1", "uint8": "u1", "uint16": "<u2",
    "bool": "?", "qint8": "i1", "quint8": "u1", "qint32": "<i4", "qint16": "<i2", "bfloat16": "<u2",
}  # fmt: skip


class Statistics(NamedTuple):
    mean: float
    std: float  # of the population


def statistics(path: str) -> dict[str, Statistics | None]:
    """Mean and standard deviation of every tensor of a file by the name of its variable; None where its type is one
    of a few bits, or it has no numbers.

    >>> statistics("resnet18.mge")["conv1.weight"]                   # doctest: +SKIP
    Statistics(mean=…, std=…)
    """
    source = Source.of(path).unpacked()
    found: dict[str, Statistics | None] = {}
    with mapped(source) as (data, size):
        model = decoded(source, data, size)
        for operator in model.operators:
            for number, tensor in zip(operator.outputs, operator.tensors, strict=False):
                variable = model.variables.get(number)
                name = (variable.name if variable else "") or tensor.name or operator.name or str(number)
                found[name] = of_tensor(data, tensor)
    return found


def add_statistics(capture: Capture, data: Pages | Whole, weights: Sequence[tuple[int, Tensor]]) -> None:
    """The figures of the weights, by the values that they are."""
    found = {value: known for value, tensor in weights if (known := figures(data, tensor)) is not None}
    if found:
        capture.add(figures_table(0, found))
    if len(found) < len(weights):
        capture.warnings.append(f"{len(weights) - len(found)} of {len(weights)} weights have no statistics")


def figures(data: Pages | Whole, tensor: Tensor) -> Figures | None:
    """Of the numbers that are meant, as a table of values has them."""
    kind = _NUMPY.get(tensor.dtype.name)
    count = math.prod(tensor.shape)
    if kind is None or tensor.data is None or tensor.data.size < count * np.dtype(kind).itemsize:
        return None
    if tensor.dtype.scale is not None:
        return figures_of(_pieces(data, tensor, kind, count), "float64")
    width = np.dtype(kind).itemsize
    at, size = tensor.data.at, count * width
    raw = (bytes(data[first : min(first + _PIECE, at + size)]) for first in range(at, at + size, _PIECE))
    return figures_of(raw, tensor.dtype.name, count)


def of_tensor(data: Pages | Whole, tensor: Tensor) -> Statistics | None:
    """In two passes, as a sum of squares would lose the digits."""
    kind = _NUMPY.get(tensor.dtype.name)
    count = math.prod(tensor.shape)
    if kind is None or tensor.data is None or not count or tensor.data.size < count * np.dtype(kind).itemsize:
        return None
    total = sum(float(piece.sum()) for piece in _pieces(data, tensor, kind, count))
    mean = total / count
    squares = sum(float(np.square(piece - mean).sum()) for piece in _pieces(data, tensor, kind, count))
    return Statistics(mean, math.sqrt(squares / count))


def _pieces(data: Pages | Whole, tensor: Tensor, kind: str, count: int) -> Iterator[npt.NDArray[np.float64]]:
    assert tensor.data is not None
    width = np.dtype(kind).itemsize
    step = _PIECE // width
    for first in range(0, count, step):
        at = tensor.data.at + first * width
        raw = np.frombuffer(bytes(data[at : at + min(step, count - first) * width]), dtype=kind)
        yield real(raw, tensor.dtype)


def real(raw: npt.NDArray[Any], dtype: Dtype) -> npt.NDArray[np.float64]:
    """The numbers that are meant: quantized ones times their scale."""
    if dtype.name == "bfloat16":
        return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    numbers = raw.astype(np.float64)
    if dtype.scale is not None:
        return (numbers - (dtype.zero_point or 0)) * dtype.scale
    return numbers
