"""A model named on the command line: `opscope trace package.module:make_model --input 1x3x224x224`."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.tracers import Ways, registry, trace, ways
from opscope.tracers.contract import RECORDS, Tracer
from opscope.tracers.failing import report_of
from opscope.tracers.script import ScriptFailed, as_main, look_up, split

from .inputs import Input, arguments

_MAKERS = (type, FunctionType, MethodType, BuiltinFunctionType, partial)


def trace_model(
    path: str, argv: Sequence[str] = (), inputs: Sequence[Input] = (), *, how: str = "auto", train: bool = False
) -> Capture:
    """Make the model that `path` names, call it once, and return what it computed; with `train`, its backward pass
    too."""
    if train and how not in RECORDS:
        raise OpscopeError(f"--train goes with the recorder, not with --how {how}")
    with _made(path, argv, inputs) as (model, tracer, args, kwargs):
        return trace(_training(tracer, model) if train else model, *args, how=how, **kwargs)


def ways_of_model(
    path: str,
    argv: Sequence[str] = (),
    inputs: Sequence[Input] = (),
    *,
    keep: bool = False,
    progress: Callable[[str], None] = lambda how: None,
) -> Ways:
    """Make the model that `path` names, and try every way of capturing on it."""
    with _made(path, argv, inputs) as (model, _, args, kwargs):
        return ways(model, args, kwargs, keep=keep, progress=progress)


@contextlib.contextmanager
def _made(
    path: str, argv: Sequence[str], inputs: Sequence[Input]
) -> Generator[tuple[Any, Tracer, tuple[Any, ...], dict[str, Any]], None, None]:
    """The model, its tracer and its arguments. What goes wrong in the user's code is reported as his."""
    split(path)
    try:
        with as_main(path, argv, Path()):
            model = model_of(look_up(path), path)
            tracer = registry.load(registry.detect(model))
            args, kwargs = arguments(inputs, tracer) if inputs else ((), {})
            yield model, tracer, args, kwargs
    except (OpscopeError, KeyboardInterrupt):
        raise
    except BaseException as error:
        report, where = report_of(error)
        raise ScriptFailed(f"{path} failed{where}: {type(error).__name__}: {error}", report, None) from error


def model_of(found: Any, path: str) -> Any:
    """A model as it is; what a class or a function without arguments makes; another function as it is."""
    if isinstance(found, _MAKERS):
        needed = _needed(found)
        if needed and isinstance(found, type):
            raise OpscopeError(
                f"{path} needs arguments ({', '.join(needed)}): name a function without arguments that makes the model"
            )
        if needed:
            return cast("Any", found)
        path = f"{path}()"
        model: Any = cast("Callable[[], Any]", found)()
    else:
        model = found
    if not callable(model):
        raise OpscopeError(f"{path} is {registry.describe(model)}, which cannot be called: a model is expected")
    return model


def _needed(function: Any) -> list[str]:
    """The arguments without which it cannot be called; `*tensors` is one, since such a function takes the inputs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    named = (inspect.Parameter.VAR_KEYWORD,)
    is_class = isinstance(function, type)
    return [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in named and not (is_class and p.kind is p.VAR_POSITIONAL)
    ]


def _training(tracer: Tracer, model: Any) -> Any:
    if tracer.training is None:
        raise OpscopeError(f"--train is not supported for {tracer.name}: trace a script that makes a training step")
    return tracer.training(model)
