"""A model with its backward pass, as one call that can be traced."""

from __future__ import annotations

import inspect
from types import MethodType
from typing import Any

from opscope.errors import OpscopeError
from opscope.tracers.torch.private import the_torch

from .subject import tensors_in


def training(model: Any) -> Any:
    """Calls the model and runs backward from the sum of the floating-point numbers that it returns."""
    torch = the_torch()

    if not isinstance(model, torch.nn.Module):
        raise OpscopeError(f"--train needs a torch.nn.Module, not {type(model).__qualname__}")
    model.train()

    def forward_and_backward(model: Any, *args: Any, **kwargs: Any) -> Any:
        with torch.enable_grad():
            result = model(*args, **kwargs)
            parts = [tensor.sum() for tensor in tensors_in(result) if tensor.requires_grad]
            if not parts:
                raise OpscopeError("--train: nothing that the model returns requires a gradient")
            loss = parts[0]
            for part in parts[1:]:
                loss = loss + part
            loss.backward()
        return result

    # Inputs are named after the model's own arguments, and a method shows whose it is.
    own = [inspect.Parameter("model", inspect.Parameter.POSITIONAL_ONLY)]
    try:
        given = list(inspect.signature(model.forward).parameters.values())
        signature = inspect.Signature([*own, *given])
    except (TypeError, ValueError):
        return MethodType(forward_and_backward, model)
    forward_and_backward.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return MethodType(forward_and_backward, model)
