"""The classic graphs of PyTorch: each way in its module, as `capture(target, args, kwargs, *, caller)`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FrameType
from typing import Any

from opscope.ir import Capture
from opscope.tracers.arguments import is_a
from opscope.tracers.torch.parts import has_memory, named_parts, stored
from opscope.tracers.torch.private import the_torch, uncompiled

from .errors import CannotCapture, no_sizes_yet

__all__ = ["WAYS", "CannotCapture", "capture", "existing"]

# how= -> the module that captures so
WAYS: dict[str, str] = {
    "fx": "opscope.tracers.torch.graphs.fx",
    "export": "opscope.tracers.torch.graphs.export",
    "export-strict": "opscope.tracers.torch.graphs.export_strict",
    "jit-trace": "opscope.tracers.torch.graphs.jit_trace",
    "jit-script": "opscope.tracers.torch.graphs.jit_script",
    "dynamo": "opscope.tracers.torch.graphs.dynamo",
    "joint": "opscope.tracers.torch.graphs.joint",
    "autograd": "opscope.tracers.torch.graphs.autograd",
}

_CALLS = ("dynamo", "joint", "autograd")  # the model itself, on real tensors


def capture(
    how: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None
) -> Capture:
    """Capture one way. Raises CannotCapture where that way does not work on this model."""
    target = uncompiled(target)
    if how not in _CALLS:
        _refuse_lazy(how, target)
    return importlib.import_module(WAYS[how]).capture(target, args, kwargs, caller=caller)


def _refuse_lazy(how: str, target: Any) -> None:
    """Lazy modules get their weights in their first call, and these ways of torch make none, or not on real tensors."""
    owner = getattr(target, "__self__", target)
    if not is_a(owner, the_torch().nn.Module):
        return
    for path, part in named_parts(owner):
        if not all(has_memory(tensor) for _, tensor in [*stored(part, "_parameters"), *stored(part, "_buffers")]):
            raise no_sizes_yet(how, f"{type(part).__name__} {path!r}" if path else type(part).__name__)


def existing(obj: Any) -> Capture | None:
    """A graph that the user has already: ScriptModule, ScriptFunction, GraphModule, Graph, ExportedProgram."""
    torch = the_torch()

    from . import export, fx, script

    kinds: list[tuple[Any, Callable[[Any], Capture]]] = [
        ((torch.jit.ScriptModule, torch.jit.ScriptFunction), script.of_script),
        (torch.export.ExportedProgram, export.of_program),
        (torch.fx.GraphModule, fx.of_graph_module),
        (torch.fx.Graph, fx.of_graph),
    ]
    for kind, make in kinds:
        if isinstance(obj, kind):
            return make(obj)
    return None
