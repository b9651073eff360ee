"""opscope.trace and opscope.record: what a model or a training step really computes."""

from __future__ import annotations

from typing import Any

from opscope import tracers
from opscope.capture import Capture


def trace(target: Any, *args: Any, how: str = "auto", **kwargs: Any) -> Capture:
    """Call a model or a function once with these arguments and capture what it computes.

    The framework is found from the type of `target` and of its arguments.
    """
    return Capture.of(tracers.trace(target, *args, how=how, **kwargs))


def record(
    model: Any = None,
    *,
    optimizer: Any = None,
    framework: str | None = None,
    how: str = "auto",
    values: bool = False,
    times: bool = False,
) -> tracers.Recording[Capture]:
    """Record everything that a `with` block computes, as it really runs.

    `values=True` keeps the numbers of every tensor, `times=True` measures every kernel. The capture is empty
    while the block runs. An exception in the block goes through, and leaves the framework as it was.

    >>> with opscope.record(model, optimizer=opt) as cap:            # doctest: +SKIP
    ...     opt.step(loss(model(x), y))
    >>> cap.save("step.opscope")                                     # doctest: +SKIP
    """
    return tracers.record(
        Capture(), model, optimizer=optimizer, framework=framework, how=how, values=values, times=times
    )
