"""In place of `megengine.tools.network_visualize`: statistics of a dumped model, and its graph for TensorBoard.

MegEngine itself is needed only for what is not in the file: what the operators compute for an `input`, shapes for an
input of another size or in files of the first format, and the names that MegEngine makes up for operators without one.

Where MegEngine's is wrong, and what is done here:

* With `input` and activations it crashes (segmentation fault). Here they are computed.
* With `input` it counts the input as a parameter. Here it is an input.
* It sets the batch to 1. Here the batch is that of the input, or that of the file.
* One shape that is not known makes all figures 0. Here only that operator is left out, and named.
* A product with a transposed first factor, or of other than two or three dimensions, is counted wrong or fails.
* Tables go to standard error, and the graph for TensorBoard has no FLOPs. Here they go to standard output, and it has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.export import registry
from opscope.export.megengine.rows import ModuleStats, Row, TotalStats, activation_row, finished, param_row
from opscope.readers.megengine import capture_of, decoded
from opscope.readers.megengine.model import Model
from opscope.readers.megengine.weights import of_tensor
from opscope.readers.pages import mapped
from opscope.readers.source import Source

from . import running
from .operators import Listed, flops, in_file, see


def visualize(
    model_path: str,
    log_path: str | None,
    input: npt.NDArray[Any] | None = None,
    inp_dict: Mapping[str, npt.NDArray[Any]] | None = None,
    cal_params: bool = True,
    cal_flops: bool = True,
    cal_activations: bool = True,
    logging_to_stdout: bool = True,
    bar_length_max: int = 20,
) -> tuple[TotalStats, ModuleStats]:
    """Say what the parameters, the FLOPs and the activations of a dumped model come to, and write its graph to
    `log_path` for `tensorboard --logdir`.

    `input` is the data of the only input, `inp_dict` that of several by name: with one of them the activations have a
    mean and a standard deviation.
    """
    source = Source.of(model_path).unpacked()
    with mapped(source) as (data, size):
        model = decoded(source, data, size)
        inputs = _inputs(model, input, inp_dict, source.name)
        rows = _rows(source.name, model, inputs)
        if inputs is None:
            _weights(rows, model, data)
    if log_path:
        registry.export(capture_of(model), Path(log_path), format=".tensorboard")
    tables = _tables(rows, has_input=inputs is not None)
    unknown = [row.name for row in rows if row.shape is None]
    if unknown and logging_to_stdout:
        print(f"not counted, as the shapes are not known: {', '.join(unknown[:10])}{' …' if unknown[10:] else ''}")
    return finished(
        *tables,
        which=(cal_params, cal_flops, cal_activations),
        bar_length_max=bar_length_max,
        logging=logging_to_stdout,
        has_input=inputs is not None,
        receptive_field=True,
        ops=len(rows),
    )


def _inputs(
    model: Model, array: npt.NDArray[Any] | None, arrays: Mapping[str, npt.NDArray[Any]] | None, path: str
) -> dict[str, npt.NDArray[Any]] | None:
    if arrays is not None:
        return dict(arrays)
    if array is None:
        return None
    names = [operator.tensors[0].name for operator in model.operators if operator.is_input and operator.tensors]
    if len(names) != 1:
        raise OpscopeError(f"{path}: it has {len(names)} inputs ({', '.join(names)}): give them by name, in inp_dict")
    return {names[0]: np.asarray(array)}


def _rows(path: str, model: Model, inputs: dict[str, npt.NDArray[Any]] | None) -> list[Listed]:
    rows = in_file(model)
    is_complete = all(row.shape is not None for row in rows) and all(operator.name for operator in model.operators)
    if is_complete and inputs is None:
        return rows
    if not running.is_there():
        if inputs is not None:
            raise OpscopeError(
                f"{path}: what the model computes for an input only MegEngine can say: install it (Python 3.10, "
                "`pip install megengine==1.13.0 'numpy<2'`), or leave the input out"
            )
        return rows
    live = running.Running(path, inputs)
    rows = live.listed()
    if inputs is not None:
        live.compute(rows, _figures)
    return rows


def _weights(rows: list[Listed], model: Model, data: Any) -> None:
    """Mean and standard deviation of what the file holds, a piece at a time."""
    by_name = {
        variable.name: operator.tensors[0]
        for operator in model.operators
        for number in operator.outputs[:1]
        if operator.is_parameter and operator.tensors and (variable := model.variables.get(number)) is not None
    }
    for row in rows:
        tensor = row.tensor or by_name.get(row.name)
        found = of_tensor(data, tensor) if tensor is not None and row.type == "ImmutableTensor" else None
        if found is not None:
            row.mean, row.std = f"{np.float32(found.mean):.3g}", f"{np.float32(found.std):.3g}"


def _figures(array: npt.NDArray[Any]) -> tuple[str, str]:
    numbers = array.astype(np.float64)
    return f"{np.float32(numbers.mean()):.3g}", f"{np.float32(numbers.std()):.3g}"


def _tables(rows: list[Listed], has_input: bool) -> tuple[list[Row], list[Row], list[Row]]:
    params: list[Row] = []
    counted: list[Row] = []
    activations: list[Row] = []
    for row, is_convolution in see(rows):
        count = flops(row)
        if count is not None:
            entry: Row = {"input_shapes": row.input_shapes, "output_shapes": row.output_shapes, "flops_num": count}
            if is_convolution:
                entry |= {"receptive_field": row.rf, "stride": row.stride}
            counted.append(entry | {"name": row.name, "class_name": row.type})
        if row.shape is None:
            continue
        size = math.prod(row.shape)
        dtype = _dtype(row.dtype)
        activation = activation_row(row.name, row.type, dtype, row.shape, size)
        if has_input and row.mean is not None:
            activation |= {"mean": row.mean, "std": row.std}
        activations.append(activation)
        if row.type == "ImmutableTensor":
            params.append(param_row(row.name, dtype, row.shape, size, row.mean or "", row.std or ""))
    return params, counted, activations


def _dtype(name: str | None) -> Any:
    """numpy's type where it has one; quantized ones by their name."""
    try:
        return np.dtype(name) if name else ""
    except TypeError:
        return name
