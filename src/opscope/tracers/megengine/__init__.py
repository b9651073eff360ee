"""Live capture of MegEngine: the recorder sees every operator that runs, also functional ones; graphs that exist
already (`jit.trace` functions, `Network` objects) are dumped in memory and read like a file."""

from __future__ import annotations

import importlib
import io
from types import FrameType
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture, Origin
from opscope.readers.megengine import capture_of
from opscope.readers.megengine.model import decode
from opscope.tracers.arguments import named_arguments

from .session import Session

HOW = ("auto", "record", "dump")
_FAITHFUL: dict[str, Any] = {"keep_opr_name": True, "keep_var_name": 2, "optimize_for_inference": False}


def trace(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, how: str, caller: FrameType) -> Capture:
    """Call a module or a function once; or take the graph of a traced function or of a Network as it is."""
    jit_trace: Any = importlib.import_module("megengine.jit").trace
    network: Any = importlib.import_module("megengine.utils.network").Network
    module: Any = importlib.import_module("megengine.module").Module
    if isinstance(target, network):
        if how == "record":
            raise OpscopeError("a Network is a graph already: there is nothing to record (use how='auto')")
        return _dumped(target, "Network")
    if isinstance(target, jit_trace) and how != "record":
        return _traced(target, args, kwargs)
    if isinstance(target, jit_trace):
        target = target.__wrapped__
    if how == "dump":
        return _traced(jit_trace(target, symbolic=True, capture_as_const=True), args, kwargs)
    owner = target if isinstance(target, module) else getattr(target, "__self__", None)
    model = owner if isinstance(owner, module) else None
    models = [(type(model).__name__, model)] if model is not None else ()
    session = Session(
        caller, model=model, models=models, arguments=named_arguments(getattr(target, "forward", target), args, kwargs)
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
    if values:
        raise OpscopeError("values=True is not there for MegEngine: its tensors are computed in the background")
    if how == "dump":
        raise OpscopeError("how='dump' captures a model, not a block: opscope.trace(model, x, how='dump')")
    models = [(type(model).__name__, model)] if model is not None and hasattr(model, "named_modules") else ()
    return Session(caller, models=models, times=times, steps=steps)


def _traced(traced: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Capture:
    """A function of `jit.trace`: called, so that its graph is there, and dumped."""
    if not getattr(traced, "_capture_as_const", False):
        raise OpscopeError(
            "this jit.trace function cannot be dumped: make it with capture_as_const=True, or record it with "
            "how='record'"
        )
    try:
        if args or kwargs:
            traced(*args, **kwargs)
        return _dumped(traced, "jit.trace")
    except (RuntimeError, ValueError, AttributeError, AssertionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OpscopeError(f"MegEngine cannot dump this function: {reason}. Record it with how='record'") from error


def _dumped(graph: Any, how: str) -> Capture:
    file = io.BytesIO()
    graph.dump(file, **_FAITHFUL)
    data = file.getvalue()
    capture = capture_of(decode(data, len(data)))
    capture.tables.pop("weights in the file", None)  # of a file that nobody has
    capture.origin = Origin("", "megengine", str(importlib.import_module("megengine").__version__), how)
    return capture
