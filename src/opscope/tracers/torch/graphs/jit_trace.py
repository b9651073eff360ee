"""how="jit-trace": TorchScript by running the model once. Branches are those that this input took."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any

from opscope.ir import Capture
from opscope.tracers.torch.private import the_torch

from .errors import cannot, one_line
from .guard import said, unchanged
from .script import of_script


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None) -> Capture:
    torch = the_torch()

    with unchanged(target) as heard:
        try:
            given = _arguments(target, args, kwargs)
            script = torch.jit.trace(target, check_trace=False, strict=False, **given)
        except Exception as error:
            raise cannot("jit-trace", error, caller) from error
        doubts = said(heard.warnings, torch.jit.TracerWarning)
    warnings = [f"{entry.filename}:{entry.lineno}: {one_line(str(entry.message))}" for entry in doubts]
    return of_script(script, how="jit-trace", warnings=warnings)


def _arguments(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """torch.jit.trace takes either positions or names."""
    if not kwargs:
        return {"example_inputs": args}
    call = getattr(target, "forward", target)
    return {"example_kwarg_inputs": dict(inspect.signature(call).bind(*args, **kwargs).arguments)}
