"""The PIR program that to_static makes of a layer or a function: forward and backward, without running it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.readers.paddle.pir import from_json

from . import private
from .assemble import origin
from .words import reason_of

_VERSION = 1
_LONGEST_LISTING = 2_000_000


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture:
    paddle = private.the_paddle()
    try:
        program = _program(paddle, target, args, kwargs)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "program.json")
            private.core().serialize_pir_program(program, str(file), _VERSION, True, False, True)
            text = file.read_bytes()
        listing = str(program)
    except OpscopeError:
        raise
    except Exception as error:
        raise OpscopeError(
            f"how='program' does not work on this model: {reason_of(error).rstrip('.')}. "
            "how='record' sees what really runs"
        ) from error
    found = from_json(text, buffers=_buffers(paddle, target))
    found.origin = origin("program")
    found.stages[:] = [replace(found.stages[0], listings={"native": listing[:_LONGEST_LISTING]})]
    found.warnings.append("a program made by to_static: branches that this input does not take may be in it")
    return found


def _buffers(paddle: Any, target: Any) -> set[str]:
    """Paddle's own names of the tensors that the layer holds as buffers."""
    owner: Any = target if isinstance(target, paddle.nn.Layer) else getattr(target, "__self__", None)
    return {str(tensor.name) for tensor in owner.buffers()} if isinstance(owner, paddle.nn.Layer) else set()


def _program(paddle: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(target, paddle.nn.Layer):
        # Not to_static(layer), which would put itself into the user's layer for good.
        static = paddle.jit.to_static(type(target).forward, full_graph=True).__get__(target, type(target))
    elif callable(target):
        static = paddle.jit.to_static(target, full_graph=True)
    else:
        raise OpscopeError("how='program' needs a layer or a function, and what it is called with")
    _, partial = static.get_concrete_program(*args, **kwargs)
    layer: Any = target if isinstance(target, paddle.nn.Layer) else None
    training = layer is not None and layer.training
    return (partial.train_program if training else partial.infer_program).program
