"""Live capture of MegEngine: the recorder sees every operator that runs, also functional ones; graphs that exist
already (`jit.trace` functions, `Network` objects) are dumped in memory and read like a file."""

from __future__ import annotations

import importlib
import io
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import Capture, Origin
from opscope.readers.megengine import capture_of
from opscope.readers.megengine.model import decode
from opscope.tracers.arguments import named_arguments
from opscope.tracers.contract import RECORDS, Options, Tracer

from .session import Session

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
    with session.or_abort():
        result = target(*args, **kwargs)
    return session.finish(result)


def start(options: Options) -> Session:
    model = options.model
    models = [(type(model).__name__, model)] if model is not None and hasattr(model, "named_modules") else ()
    return Session(options.caller, models=models, times=bool(options.times), steps=options.steps)


def tensor(array: npt.NDArray[np.generic], dtype: str) -> Any:
    if dtype in ("bfloat16", "float64", "int64") or dtype.startswith("complex"):
        raise OpscopeError(f"MegEngine has no {dtype}")
    return importlib.import_module("megengine").Tensor(array.astype(dtype))


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
    capture.tables.pop("weights in the file", None)  # of a file that does not exist
    capture.origin = Origin("", "megengine", str(importlib.import_module("megengine").__version__), how)
    return capture


TRACER = Tracer(
    name="MegEngine",
    how=(*RECORDS, "dump"),
    trace=trace,
    start=start,
    refuses={"values": "it computes tensors asynchronously"},
    tensor=tensor,
)
