"""In place of `megengine.utils.module_stats`: the same figures, also where that one crashes.

What it counts is MegEngine's convention: one multiply-accumulate is one FLOP, and only modules of some types are
counted, never a functional call. `opscope.trace(model, x).stats()` counts every operator.

Where MegEngine fails, and what is done here:

* A module of another type with a `weight` or `bias` (one's own, or an LSTM, whose `bias` is a flag): KeyError. Here its
  parameters are counted under its name, and so is every parameter of another name that is read.
* Inputs or outputs that are no tensors (None, dicts): AttributeError. Here they have no shape.
* Modules that are fused for quantization (ConvBn2d and its kin, while they train) run the parts that are counted on a
  way of their own: neither MegEngine nor the total here counts them. `total.fused_flops` says what they come to, and
  the summary has a line for it, so that the two figures stand side by side.
* A model without anything that is counted, or adaptive pooling of 1 × 1: ZeroDivisionError. Here it is 0, and 1.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import numpy as np

from opscope.errors import OpscopeError
from opscope.export.megengine.rows import ModuleStats, Row, TotalStats, activation_row, finished, param_row

Formula = Callable[[Any, Sequence[Any], Sequence[Any]], float]

_formulas: list[tuple[Any, Formula]] = []  # the user's
_hooked: list[Any] = []


def register_flops(*modules: Any) -> Callable[[Formula], Formula]:
    """Give modules of these types a formula: `formula(module, inputs, outputs)`."""

    def register(formula: Formula) -> Formula:
        _formulas.extend((module, formula) for module in modules)
        return formula

    return register


def register_hook_module(module: Any) -> None:
    """Count modules of this type, or of each of a list of types."""
    module_type = importlib.import_module("megengine.module").Module
    for kind in cast("list[Any]", module) if isinstance(module, list | tuple) else [module]:
        if not (isinstance(kind, type) and issubclass(kind, module_type)):
            raise TypeError(f"a type of modules, or a list of them, is expected; this is {kind!r}")
        _hooked.append(kind)


def module_stats(
    model: Any,
    inputs: Any = None,
    input_shapes: Any = None,
    cal_params: bool = True,
    cal_flops: bool = True,
    cal_activations: bool = True,
    logging_to_stdout: bool = True,
    bar_length_max: int = 20,
) -> tuple[TotalStats, ModuleStats]:
    """Run the model once, in evaluation mode, and say what its parameters, its FLOPs and its activations come to.

    `inputs` is an array, or a list of arrays (or dicts of them); or `input_shapes` gives shapes, for which zeros are
    made. `bar_length_max` is the length of the longest bar.
    """
    if inputs is None and not input_shapes:
        raise OpscopeError("module_stats needs inputs, or input_shapes, to run the model with")
    has_inputs = inputs is not None
    counting = _Counting(model, has_inputs, cal_params, cal_flops, cal_activations)
    counting.run(_given(inputs) if has_inputs else _zeros(input_shapes))
    return finished(
        counting.params,
        counting.flops,
        counting.activations,
        which=(cal_params, cal_flops, cal_activations),
        bar_length_max=bar_length_max,
        logging=logging_to_stdout,
        has_input=has_inputs,
        fused=counting.fused,
    )


def _given(inputs: Any) -> list[Any]:
    tensor = importlib.import_module("megengine").Tensor

    def load(x: Any) -> Any:
        if isinstance(x, tensor):
            return x
        if isinstance(x, np.ndarray):
            return tensor(x)
        if isinstance(x, Mapping):
            return {key: load(value) for key, value in cast("Mapping[Any, Any]", x).items()}
        if isinstance(x, tuple) and hasattr(cast("Any", x), "_fields"):
            return cast("Any", type(cast("Any", x)))(*(load(value) for value in cast("tuple[Any, ...]", x)))
        if isinstance(x, list | tuple):
            return [load(value) for value in cast("list[Any]", x)]
        return tensor(x, dtype=np.float32)

    return load(inputs if isinstance(inputs, list | tuple) else [inputs])


def _zeros(shapes: Any) -> list[Any]:
    functional = importlib.import_module("megengine.functional")
    listed = shapes if isinstance(shapes[0], tuple | list) else [shapes]
    return [functional.zeros(tuple(shape), dtype=np.float32) for shape in listed]


class _Counting:
    def __init__(self, model: Any, has_inputs: bool, params: bool, flops: bool, activations: bool) -> None:
        self._module: Any = importlib.import_module("megengine.module")
        self._tensor: Any = importlib.import_module("megengine").Tensor
        self._parameter: Any = importlib.import_module("megengine").Parameter
        self._model = model
        self._has_inputs = has_inputs
        self._wanted = params, flops, activations
        self._names: dict[int, str] = {id(module): name for name, module in model.named_modules()}
        self._recorded: dict[int, Any] = {}  # held, so that no other parameter gets the same id
        self._counted_modules: set[int] = set()
        self.fused = 0  # FLOPs of modules that are fused for quantization
        self.params: list[Row] = []
        self.flops: list[Row] = []
        self.activations: list[Row] = []

    def run(self, inputs: list[Any]) -> None:
        hooked = (*hook_modules(self._module), *_hooked)
        fused = fused_modules(self._module)
        handles: list[Any] = []
        training: list[tuple[Any, bool]] = []
        try:
            for name, module in self._model.named_modules():
                training.append((module, module.training))
                module.train(False, recursive=False)
                if isinstance(module, fused) and self._wanted[1]:
                    handles.append(module.register_forward_hook(self._count_parts))
                if isinstance(module, hooked):
                    handles.append(module.register_forward_hook(partial(self._counted, name=name)))
            with self._reading_parameters():
                self._model(*inputs)
        finally:
            for handle in handles:
                handle.remove()
            for module, mode in training:
                module.training = mode

    # -- parameters -----------------------------------------------------------------------------

    @contextmanager
    def _reading_parameters(self) -> Generator[None]:
        """A parameter counts when it is read: fused modules use those of modules that are never called."""
        kind = self._module.Module
        before = kind.__dict__.get("__getattribute__")
        read = before or object.__getattribute__

        def reading(module: Any, item: str) -> Any:
            found = read(module, item)
            if isinstance(found, self._tensor) and (item in ("weight", "bias") or self._is_learned(found, module)):
                self._param(found, module, item)
            return found

        if self._wanted[0]:
            kind.__getattribute__ = reading
        try:
            yield
        finally:
            if self._wanted[0]:
                if before is None:
                    del kind.__getattribute__
                else:
                    kind.__getattribute__ = before

    def _is_learned(self, tensor: Any, module: Any) -> bool:
        """A parameter of another name. Those of fake quantization are gone when the model is quantized."""
        return isinstance(tensor, self._parameter) and not type(module).__module__.startswith("megengine.quantization")

    def _param(self, tensor: Any, module: Any, item: str) -> None:
        if id(tensor) in self._recorded:
            return
        self._recorded[id(tensor)] = tensor
        name = self._names.get(id(module), type(module).__name__)
        suffix = {"weight": "w", "bias": "b"}.get(item, item)
        count = math.prod(tensor.shape)
        self.params.append(param_row(f"{name}-{suffix}", _dtype(tensor), tensor.shape, count, *_figures(tensor)))

    # -- modules --------------------------------------------------------------------------------

    def _counted(self, module: Any, inputs: Any, outputs: Any, name: str = "") -> None:
        if self._wanted[1]:
            self._flops(module, inputs, outputs, name)
        if self._wanted[0]:
            for item in ("weight", "bias"):
                found = getattr(module, item, None)
                if isinstance(found, self._tensor):
                    self._param(found, module, item)
        if self._wanted[2]:
            output: Any = cast("list[Any]", outputs)[0] if isinstance(outputs, tuple | list) else outputs
            if isinstance(output, self._tensor):
                self._activation(output, name, type(module).__name__)

    def _count_parts(self, module: Any, inputs: Any, outputs: Any) -> None:
        """As if the product and the normalization had been called: each of those that was not."""
        listed = cast("Sequence[Any]", outputs) if isinstance(outputs, tuple | list) else (outputs,)
        for part in module.children():
            if id(part) not in self._counted_modules:
                normalizes = isinstance(part, self._module.batchnorm._BatchNorm)
                formula = next((f for kind, f in formulas(self._module) if isinstance(part, kind)), None)
                if formula is not None:
                    self.fused += int(formula(part, listed if normalizes else inputs, listed))

    def _flops(self, module: Any, inputs: Any, outputs: Any, name: str) -> None:
        listed = cast("Sequence[Any]", outputs) if isinstance(outputs, tuple | list) else (outputs,)
        self._counted_modules.add(id(module))
        for kind, formula in (*reversed(_formulas), *formulas(self._module)):
            if isinstance(module, kind):
                self.flops.append(
                    {
                        "input_shapes": self._shapes(inputs),
                        "output_shapes": self._shapes(listed),
                        "flops_num": formula(module, inputs, listed),
                        "name": name,
                        "class_name": type(module).__name__,
                    }
                )
                return

    def _shapes(self, tensors: Any) -> list[tuple[int, ...]]:
        return [tuple(int(size) for size in t.shape) for t in tensors if isinstance(t, self._tensor)]

    def _activation(self, output: Any, name: str, class_name: str) -> None:
        row = activation_row(name, class_name, _dtype(output), output.shape, math.prod(output.shape))
        if self._has_inputs:
            row["mean"], row["std"] = _figures(output)
        self.activations.append(row)


def _figures(tensor: Any) -> tuple[str, str]:
    """In MegEngine's own arithmetic, so that the last digit is the same."""
    functional = importlib.import_module("megengine.functional")
    numbers = importlib.import_module("megengine").Tensor(tensor).astype(np.float32)
    return f"{functional.mean(numbers).numpy():.3g}", f"{functional.std(numbers).numpy():.3g}"


def _dtype(tensor: Any) -> Any:
    make: Any = np.dtype
    return make(tensor.dtype)


def hook_modules(module: Any) -> tuple[Any, ...]:
    return (
        module.conv._ConvNd,
        module.Linear,
        module.BatchMatMulActivation,
        module.batchnorm._BatchNorm,
        module.LayerNorm,
        module.GroupNorm,
        module.InstanceNorm,
        module.pooling._PoolNd,
        module.adaptive_pooling._AdaptivePoolNd,
    )


def fused_modules(module: Any) -> tuple[Any, ...]:
    """A product and a normalization in one module, each with the two as its parts."""
    kinds = (
        ("conv_bn", "_ConvBnActivation2d"),
        ("conv_transpose_bn", "_ConvTransposeBnActivation2d"),
        ("linear_bn", "_LinearBnActivation1d"),
    )
    return tuple(
        kind for place, name in kinds if (kind := getattr(getattr(module, place, None), name, None)) is not None
    )


def formulas(module: Any) -> list[tuple[Any, Formula]]:
    """MegEngine's, in its order: the first that fits counts."""
    m = module
    convolutions = (m.Conv1d, m.Conv2d, m.Conv3d, m.LocalConv2d, m.DeformableConv2d)
    norms = (m.batchnorm._BatchNorm, m.SyncBatchNorm, m.GroupNorm, m.LayerNorm, m.InstanceNorm)
    return [
        (convolutions, _convolution),
        (m.ConvTranspose2d, _transposed),
        (norms, lambda module, inputs, outputs: 7 * _size(inputs[0])),
        ((m.AvgPool2d, m.MaxPool2d), _pool),
        ((m.AdaptiveAvgPool2d, m.AdaptiveMaxPool2d), _adaptive),
        (m.Linear, _linear),
        (m.BatchMatMulActivation, _batched),
    ]


def _size(tensor: Any) -> int:
    return math.prod(int(size) for size in tensor.shape)


def _kernel(size: Any) -> int:
    return math.prod(cast("tuple[int, ...]", size)) if isinstance(size, tuple) else size


def _has_bias(module: Any) -> int:
    return int(module.bias is not None)


def _convolution(module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
    kernel = float(module.in_channels // module.groups) * _kernel(module.kernel_size)
    return _size(outputs[0]) * (kernel + _has_bias(module))


def _transposed(module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
    kernel = module.out_channels // module.groups * _kernel(module.kernel_size)
    return _size(inputs[0]) * kernel + _size(outputs[0]) * _has_bias(module)


def _pool(module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
    size = module.kernel_size
    return _size(outputs[0]) * (_kernel(size) if isinstance(size, tuple) else size**2)


def _adaptive(module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
    kernels = [h - (h - 1) * np.floor(h / (h - 1)) if h > 1 else 1.0 for h in inputs[0].shape[2:4]]
    return float(_size(outputs[0]) * kernels[0] * kernels[1])


def _linear(module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
    return _size(outputs[0]) * module.in_features + (module.out_features if module.bias is not None else 0)


def _batched(module: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
    batch, n, p = inputs[0].shape
    return n * (p + _has_bias(module)) * module.weight.shape[-1] * batch
