"""The recorder: sees every operator that PyTorch runs."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from opscope.ir import Capture
from opscope.tracers.arguments import named_arguments
from opscope.tracers.contract import Options
from opscope.tracers.torch.private import the_torch
from opscope.tracers.torch.ranks.mode import fake_mode

from .session import Session, models_in, optimizers_in


def record_call(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    caller: FrameType,
    lean: bool = False,
    fakes: Any = None,
    before_write: Callable[[list[Any]], None] | None = None,
    compiled: bool = False,
) -> Capture:
    """Call a module or a function once, under the recorder. For the options see Session."""
    torch = the_torch()
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
        before_write=before_write,
        compiled=compiled,
    )
    with session.or_abort():
        result = target(*args, **kwargs)
    return session.finish(result)


def start(options: Options) -> Session:
    from opscope.tracers.script import is_rank
    from opscope.tracers.torch.ranks import prepare

    torch = the_torch()
    if is_rank() is not None:
        prepare()  # some of torch's modules run operators when they are imported: those are not the program's
    caller, model = options.caller, options.model
    return Session(
        torch,
        caller,
        models=models_in(torch, caller, model),
        main=model if isinstance(model, torch.nn.Module) else None,
        optimizers=optimizers_in(torch, caller, options.optimizer),
        values=options.values,
        part=options.part,
        after_step=options.after_step,
        times=options.times,
        steps=options.steps,
        ends=options.ends,
        fakes=fake_mode(),
        compiled=options.how != "record",
        compiles=options.how == "compile",
    )
