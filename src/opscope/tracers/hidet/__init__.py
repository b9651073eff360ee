"""Live capture of Hidet: its flow graphs as they are, its modules by tracing them, and its passes one by one."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, cast

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.tracers.contract import RECORDS, Options, Tracer

from .objects import snapshot
from .session import Session


def trace(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, how: str, caller: FrameType) -> Capture:
    """A FlowGraph as it is, or the graph that a module or a function makes of these arguments."""
    hidet = import_hidet()
    session = Session(hidet, caller)
    with session.or_abort():
        if isinstance(target, hidet.FlowGraph):
            if args or kwargs:
                raise OpscopeError("a FlowGraph takes no inputs: call opscope.trace(graph) without inputs")
            session.abort()
            return session.one(snapshot(target, session.watch.place))
        symbols: list[Any] = []
        given = _symbolic(hidet, (args, kwargs), symbols)
        if not symbols:
            raise OpscopeError(
                "Hidet traces with tensors: give opscope.trace() the hidet tensors that the model is called with"
            )
        result = target(*given[0], **given[1])
        outputs = _tensors(hidet, result)
        if not outputs or any(tensor.trace is None for tensor in outputs):
            raise OpscopeError("what was called gave no tensor that depends on its inputs: there is no graph")
        graph = hidet.trace_from(outputs, symbols)
        flow = snapshot(graph, session.watch.place, session.watch.names)
    session.abort()
    return session.one(flow)


def start(options: Options) -> Session:
    return Session(import_hidet(), options.caller, values=bool(options.values), times=bool(options.times))


def start_passes(caller: FrameType) -> Session:
    """A session that keeps the passes only."""
    return Session(import_hidet(), caller, passes_only=True)


def import_hidet() -> Any:
    try:
        return importlib.import_module("hidet")
    except ImportError as error:
        raise OpscopeError(f"Hidet is not installed here ({error})") from None


def _symbolic(hidet: Any, value: Any, symbols: list[Any]) -> Any:
    """The arguments with a symbol in the place of each tensor."""
    if isinstance(value, hidet.Tensor):
        symbol = value if value.storage is None else hidet.symbol_like(value)
        symbols.append(symbol)
        return symbol
    if isinstance(value, list | tuple):
        made = [_symbolic(hidet, item, symbols) for item in cast("Sequence[Any]", value)]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, Mapping):
        return {key: _symbolic(hidet, item, symbols) for key, item in cast("Mapping[Any, Any]", value).items()}
    return value


def _tensors(hidet: Any, value: Any) -> list[Any]:
    if isinstance(value, hidet.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        return [tensor for item in cast("Sequence[Any]", value) for tensor in _tensors(hidet, item)]
    return []


TRACER = Tracer(
    name="Hidet",
    how=RECORDS,
    trace=trace,
    start=start,
    refuses={"steps": "it compiles models and does not train them"},
    passes=start_passes,
    runs_on=("torch",),  # it computes constants with torch while it compiles
)
