"""A live model run once so that its cost can be counted: nothing of it is different afterwards."""

from __future__ import annotations

from typing import Any

from opscope.errors import OpscopeError

from . import registry
from .contract import Count
from .frames import users_frame


def count(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, train: bool, fake: bool | None) -> Count:
    """`fake`: on tensors without numbers; None leaves it to the framework's tracer."""
    tracer = registry.load(registry.detect(target, args, kwargs))
    if tracer.count is not None:
        return tracer.count(target, args, kwargs, train=train, fake=fake, caller=users_frame())
    if train or fake:
        raise OpscopeError(
            f"train= and fake= are not supported for {tracer.name}: record the training step with opscope.record() "
            "and take its .stats()"
        )
    return Count(tracer.trace(target, args, kwargs, how="auto", caller=users_frame()))
