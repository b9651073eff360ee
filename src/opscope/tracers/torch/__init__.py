"""Live capture of PyTorch: the recorder sees what really runs; `how=` chooses one of torch's own graphs instead."""

from __future__ import annotations

import importlib
from types import FrameType
from typing import Any

from opscope.ir import Capture
from opscope.tracers.arguments import named_arguments

from . import private
from .graphs import WAYS, existing
from .session import Session, models_in, optimizers_in

HOW = ("auto", "record", *WAYS)


def trace(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    how: str,
    caller: FrameType,
    lean: bool = False,
    fakes: Any = None,
) -> Capture:
    """Call a module or a function once, or take a graph that exists already as it is. `lean`, `fakes`: see Session."""
    if how in WAYS:
        return importlib.import_module(WAYS[how]).capture(target, args, kwargs, caller=caller)
    if how == "auto" and not args and not kwargs and (found := existing(target)) is not None:
        return found
    torch = private.the_torch()

    owner = target if isinstance(target, torch.nn.Module) else getattr(target, "__self__", None)
    model = owner if isinstance(owner, torch.nn.Module) else None
    session = Session(
        torch,
        caller,
        models=[(type(model).__name__, model)] if model is not None else models_in(torch, caller, ()),
        main=model,
        arguments=named_arguments(getattr(target, "forward", target), args, kwargs),
        hide_root=model is not None,
        lean=lean,
        fakes=fakes,
    )
    try:
        result = target(*args, **kwargs)
    except BaseException:
        session.abort()
        raise
    return session.finish(result)


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
    torch = private.the_torch()

    return Session(
        torch,
        caller,
        models=models_in(torch, caller, model),
        main=model if isinstance(model, torch.nn.Module) else None,
        optimizers=optimizers_in(torch, caller, optimizer),
        values=values,
        times=times,
        steps=steps,
    )
