"""Live capture of Jittor, with its own tracer (`jt.flags.trace_py_var`) and a look at the calls it misses."""

from __future__ import annotations

from types import FrameType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.tracers.arguments import named_arguments, tensors_in
from opscope.tracers.contract import RECORDS, Options, Tracer
from opscope.tracers.frames import name_in_frame, variables_of

from .session import Session, import_jittor


def trace(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, how: str, caller: FrameType) -> Capture:
    """Call a Module or a function once; its results are computed, so that all of it is in the capture."""
    jt = import_jittor()
    owner = target if isinstance(target, jt.Module) else getattr(target, "__self__", None)
    model = owner if isinstance(owner, jt.Module) else None
    session = Session(
        jt,
        _roots(jt, caller, model),
        caller,
        model=model,
        arguments=named_arguments(getattr(target, "execute", target), args, kwargs),
    )
    with session.or_abort():
        result = target(*args, **kwargs)
        # Held until the session has run what is pending: Jittor does not compute what is not held.
        held = [var for _, var in tensors_in(jt.Var, result, depth=16)]
        jt.sync(held)
    return session.finish()


def start(options: Options) -> Session:
    jt = import_jittor()
    caller, model = options.caller, options.model
    roots = _roots(jt, caller, *_each(model), *_each(options.optimizer))
    main = model if isinstance(model, jt.Module) else None
    return Session(jt, roots, caller, model=main, values=options.values, times=bool(options.times))


def tensor(array: npt.NDArray[np.generic], dtype: str) -> Any:
    if dtype == "bfloat16" or dtype.startswith("complex"):
        raise OpscopeError(f"Jittor has no {dtype}")
    return import_jittor().array(array).cast(dtype)


def _each(given: Any) -> list[Any]:
    return list(cast("list[Any]", given)) if isinstance(given, list | tuple) else [given]


def _roots(jt: Any, caller: FrameType, *given: Any) -> list[tuple[str, Any]]:
    """Modules and optimizers with the names that the user gave them: those given, then those in his variables."""
    kinds = (jt.Module, jt.optim.Optimizer)
    roots: list[tuple[str, Any]] = []
    for root in given:
        if isinstance(root, kinds):
            roots.append((name_in_frame(caller, root) or type(root).__name__, root))
    for name, value in variables_of(caller).items():
        if isinstance(value, kinds) and not any(root is value for _, root in roots):
            roots.append((name, value))
    return roots


TRACER = Tracer(
    name="Jittor",
    how=RECORDS,
    trace=trace,
    start=start,
    refuses={"steps": "its tracer records a script to its end; run fewer steps in the script instead"},
    tensor=tensor,
)
