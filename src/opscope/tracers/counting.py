"""A live model run once so that its cost can be counted: nothing of it is different afterwards."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, NamedTuple

from opscope.errors import OpscopeError
from opscope.ir import Capture

from . import registry, users_frame


class Held(NamedTuple):
    """A parameter of the model, with all its names."""

    names: tuple[str, ...]
    dtype: str
    elements: int
    bytes: int
    is_trained: bool


class Counted(NamedTuple):
    capture: Capture
    held: tuple[Held, ...] = ()
    guesses: tuple[str, ...] = ()


def count(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, train: bool, fake: bool | None) -> Counted:
    """`fake`: on tensors without numbers; None leaves it to the framework's module."""
    framework = registry.detect(target, args, kwargs)
    tracer = registry.load(framework)
    module = f"{registry.FRAMEWORKS[framework].tracer}.counted"
    if importlib.util.find_spec(module) is not None:
        counted: Any = importlib.import_module(module)
        return counted.count(target, args, kwargs, train=train, fake=fake, caller=users_frame())
    if train or fake:
        raise OpscopeError(
            f"{framework}: record the training step with opscope.record() and take its .stats(); train= and fake= are "
            "for PyTorch"
        )
    return Counted(tracer.trace(target, args, kwargs, how="auto", caller=users_frame()))
