"""how="compile": a model compiled anew and run once, with its backward pass where something needs a gradient."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.tracers.arguments import tensors_in
from opscope.tracers.frames import name_in_frame
from opscope.tracers.torch import private
from opscope.tracers.torch.graphs.compiling import kept_counters
from opscope.tracers.torch.graphs.guard import unchanged
from opscope.tracers.torch.graphs.origin import origin
from opscope.tracers.torch.private import the_torch

from . import hooks
from .finish import finished
from .watch import Watch

# What torch.compile takes; everything else that opscope.trace is given goes to the model.
OPTIONS = ("mode", "dynamic", "fullgraph", "backend", "options")


def capture_call(
    target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None
) -> Capture:
    torch = the_torch()
    options = {name: kwargs.pop(name) for name in OPTIONS if name in kwargs and not _takes(target, name)}
    plain = private.uncompiled(target)
    owner = plain if isinstance(plain, torch.nn.Module) else getattr(plain, "__self__", None)
    models: list[tuple[str, Any]] = []
    if isinstance(owner, torch.nn.Module):
        models.append(((name_in_frame(caller, owner) if caller else None) or type(owner).__name__, owner))
    watch = Watch(models)
    with unchanged(plain), kept_counters():
        watch.open()
        try:
            result = _compiled(torch, target, plain, options)(*args, **kwargs)
            _backward(torch, result)
        finally:
            watch.close()
    capture = finished(watch, origin("compile"))
    if capture is None:
        raise OpscopeError("torch.compile compiled nothing of this")
    return capture


def _takes(target: Any, name: str) -> bool:
    """Whether the model itself has an argument of this name."""
    try:
        return name in inspect.signature(getattr(target, "forward", target)).parameters
    except (TypeError, ValueError):
        return False


def _compiled(torch: Any, target: Any, plain: Any, options: dict[str, Any]) -> Any:
    """Compiled apart from whatever the user has compiled of the same code, so that it happens before our eyes."""
    found = {}
    if plain is not target and not options:
        found = private.options_of(target)
    with private.own_backends(hooks.own_wrapper):
        return torch.compile(plain, **{**found, **options, **hooks.separate(torch.compile)})


def _backward(torch: Any, result: Any) -> None:
    """The backward pass, which is compiled when it first runs. No gradient is kept."""
    outputs = [tensor for _, tensor in tensors_in(torch.Tensor, result) if tensor.requires_grad and tensor.grad_fn]
    outputs = [tensor for tensor in outputs if tensor.is_floating_point() or tensor.is_complex()]
    leaves = private.leaves_behind(outputs)
    if outputs and leaves:
        torch.autograd.grad(outputs, leaves, [torch.ones_like(output) for output in outputs], allow_unused=True)
