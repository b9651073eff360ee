"""Live capture of Jittor, with its own tracer (`jt.flags.trace_py_var`) and a look at the calls it misses."""

from __future__ import annotations

from types import FrameType
from typing import Any, cast

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.tracers.arguments import named_arguments
from opscope.tracers.frames import variables_of

from .names import name_in_frame, nested_variables
from .session import Session, import_jittor

HOW = ("auto", "record")


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
    try:
        result = target(*args, **kwargs)
        # Held until the session has run what is pending: what nobody holds, Jittor does not compute.
        held = [named.var for named in nested_variables(jt, "", result, depth=16)]
        jt.sync(held)
    except BaseException:
        session.abort()
        raise
    return session.finish()


def start(
    *,
    model: Any = None,
    optimizer: Any = None,
    how: str = "auto",
    caller: FrameType,
    values: bool = False,
    times: bool = False,
    steps: int | None = None,
) -> Session:
    if steps is not None:
        raise OpscopeError("Jittor's tracer records a script to its end: make the script shorter instead of --steps")
    jt = import_jittor()
    roots = _roots(jt, caller, *_each(model), *_each(optimizer))
    main = model if isinstance(model, jt.Module) else None
    return Session(jt, roots, caller, model=main, values=values, times=times)


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
