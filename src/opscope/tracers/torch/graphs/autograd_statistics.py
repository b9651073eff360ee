"""The gradients on the edges, measured: one backward pass with a hook on every function."""

from __future__ import annotations

from typing import Any

import numpy as np

from opscope.ir.capture import Table, column
from opscope.ir.columns import frozen
from opscope.ir.facts import GRADIENTS
from opscope.ir.measurements import Statistics, statistics_of
from opscope.tracers.torch.private import the_torch
from opscope.tracers.torch.words import numbers_of

from .autograd_graph import Backward

_FIGURES = ("norm", "min", "max", "mean", "nan", "inf")


def gradient_table(backward: Backward, roots: list[tuple[str, Any]]) -> tuple[Table, list[str]]:
    """Norm, smallest, largest and mean of every gradient, and how many of its numbers are NaN or infinite.

    torch.autograd.grad leaves `.grad` alone, and keeps the graph for the user's own backward pass.
    """
    torch = the_torch()

    measured: dict[int, Statistics] = {}
    handles: list[Any] = []

    def watch(values: list[int]) -> Any:
        def hook(outputs: Any, inputs: Any) -> None:
            for value, gradient in zip(values, outputs, strict=False):
                numbers = numbers_of(torch, gradient) if gradient is not None else None
                if numbers is not None:
                    measured[value] = statistics_of(numbers)

        return hook

    warnings: list[str] = []
    outputs = [tensor for _, tensor in roots]
    if any(tensor.numel() != 1 for tensor in outputs):
        warnings.append("the outputs are not single numbers: the gradients are those of the sum of all their elements")
    leaves = list(backward.leaves.items())
    try:
        for function, values in zip(backward.functions, backward.slots, strict=True):
            if values:
                handles.append(function.register_hook(watch(values)))
        ones = [torch.ones_like(tensor) for tensor in outputs]
        wanted = [variable for _, variable in leaves] or outputs
        torch.autograd.grad(outputs, wanted, ones, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        warnings.append(f"the gradients could not be measured: {str(error).splitlines()[0]}")
    finally:
        for handle in handles:
            handle.remove()
    index = sorted(measured)
    rows = [measured[value] for value in index]
    columns = {
        name: column(np.array([getattr(row, name) for row in rows], dtype=np.float64), unit="" if i < 4 else "elements")
        for i, name in enumerate(_FIGURES)
    }
    return Table(0, "value", frozen(np.array(index, dtype=np.int32)), columns, GRADIENTS.name), warnings
