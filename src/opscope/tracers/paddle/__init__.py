"""Live capture of PaddlePaddle: operators as they are called, and the backward pass by hooks that only look."""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.tracers.arguments import named_arguments
from opscope.tracers.contract import RECORDS, Options, Tracer

from . import private
from .autograd import measure, of_tensors
from .layers import layers_in
from .passes import Pass
from .session import Session


def trace(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, how: str, caller: FrameType) -> Capture:
    """Call a layer or a function once, and see its backward pass; or take the backward graph of tensors as it is.

    `statistics=True` (among `kwargs`) measures the gradients. No `.grad` is changed.
    """
    kwargs = dict(kwargs)
    statistics = bool(kwargs.pop("statistics", False))
    paddle = private.the_paddle()
    if any(True for _ in private.tensors_in(target)):
        if how not in ("auto", "autograd"):
            raise OpscopeError(f"how={how!r} captures a layer or a function; a tensor has only its backward graph")
        if args or kwargs:
            raise OpscopeError("a tensor takes no arguments")
        return of_tensors(target, caller, statistics)
    if how == "program":
        from . import program

        return program.capture(target, args, kwargs)
    owner = target if isinstance(target, paddle.nn.Layer) else getattr(target, "__self__", None)
    model = owner if isinstance(owner, paddle.nn.Layer) else None
    session = Session(
        caller,
        layers=[(type(model).__name__, model)] if model is not None else layers_in(caller),
        hidden=model,
        arguments=named_arguments(getattr(target, "forward", target), args, kwargs),
        statistics=statistics,
    )
    warnings: list[str] = []
    with session.or_abort():
        result = target(*args, **kwargs)
        warnings += _backward(session, result, statistics)
    if how == "autograd" and not session.recorder.passes:
        session.abort()
        raise OpscopeError("nothing here takes a gradient (stop_gradient is True), so there is no backward graph")
    forward = how != "autograd"
    capture = session.finish(
        result, how="autograd" if not forward else "record", forward=forward, stage="step" if forward else "backward"
    )
    capture.warnings += warnings
    return capture


def _backward(session: Session, result: Any, statistics: bool) -> list[str]:
    """The backward pass from the results, watched as the user's own would be."""
    roots = [tensor for _, tensor in private.tensors_in(result) if private.gradient_node(tensor) is not None]
    if not roots:
        return []
    recorder = session.recorder
    recorder.on = False  # what the pass runs inside is not the model's own
    watched = Pass(roots, statistics=statistics, tick=recorder.tick)
    watched.started = recorder.tick()
    warnings = list(measure(watched, roots, session.leaves()))
    recorder.passes.append(watched)
    recorder.read(watched)
    watched.close(watched.failed)
    return warnings


def start(options: Options) -> Session:
    return Session(
        options.caller,
        layers=layers_in(options.caller, options.model),
        values=options.values,
        times=bool(options.times),
        steps=options.steps,
    )


def tensor(array: npt.NDArray[np.generic], dtype: str) -> Any:
    return private.the_paddle().to_tensor(array).astype(dtype)


TRACER = Tracer(
    name="PaddlePaddle",
    how=(*RECORDS, "autograd", "program"),
    trace=trace,
    start=start,
    tensor=tensor,
)
