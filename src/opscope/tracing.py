"""opscope.trace, opscope.record and opscope.ways: what a model or a training step really computes."""

from __future__ import annotations

from typing import Any

from opscope import ir, tracers
from opscope.capture import Capture
from opscope.errors import OpscopeError
from opscope.parts import part_of


def trace(target: Any, *args: Any, how: str = "auto", **kwargs: Any) -> Capture:
    """Call a model or a function once with these arguments and capture what it computes.

    The framework is found from the type of `target` and of its arguments.
    """
    return Capture.of(tracers.trace(target, *args, how=how, **kwargs))


def ways(target: Any, *args: Any, **kwargs: Any) -> tracers.Ways:
    """Try every way of capturing on this model, called with these arguments, and say in one table which works, which
    does not and why, and what each loses.

    The model, random numbers and torch's settings are left as they are. A way that silently keeps a branch or a
    number that another input would change is found by running it on other inputs of the same shapes.

    >>> opscope.ways(model, x)                                       # doctest: +SKIP
    way            works     operators  what is lost, or why it does not work
    record         yes              12  all but this execution (another input goes another way: net.py:31); …
    jit-trace      yes, but          3  bakes in a branch: net.py:31; …
    """
    return tracers.ways(target, args, kwargs)


def record(
    model: Any = None,
    *,
    optimizer: Any = None,
    framework: str | None = None,
    how: str = "auto",
    values: bool | str = False,
    part: str | None = None,
    times: bool | str = False,
) -> tracers.Recording[Capture]:
    """Record everything that a `with` block computes, as it really runs.

    `times=True` measures how long each operator ran, in the table "times": by operator, or by kernel in Jittor, whose
    operators run fused. On a GPU each operator is waited for. Measuring adds to what is measured: compare operators
    with each other, not with the time of the step.

    `times="device"` lets PyTorch's profiler measure beside the recorder: the kernels of every operator on a GPU, and
    the time of its call on the CPU. Nothing is waited for. Of several steps in the block, every operator gets its
    median, its fastest and its slowest run; the first step, which warms up, is left out of that where others follow.

    `values=True` measures every tensor that an operator makes, gradients included, in the table "value statistics":
    min, max, mean, std, how many numbers are NaN or infinite, and the numbers themselves (of a large tensor the first
    1024).

    `values="stats"` keeps figures of every tensor and no numbers: also of inputs, and of parameters before and after
    the step; NaN, infinite, zero and subnormal numbers, min, max, mean, rms, how the exponents are distributed, and a
    hash of the bits. They are computed where the tensor is; the program never waits for them. `Capture.origins` then
    says where numbers that are not finite were born.

    `values="full"` also keeps every number of a part: of the operators that the query `part` finds, in the language of
    `opscope find` (`scope:layers/3 op:softmax`: names of operators and modules); without it, of all. Gradients belong
    to the module of their forward operators. This does wait for a device, and takes the memory of what it keeps.

    Where a framework cannot do one of them, OpscopeError says why. The capture is empty while the block runs. An
    exception in the block goes through and leaves the framework as it was; the capture then holds what ran until then,
    with the operator that raised it.

    >>> with opscope.record(model, optimizer=opt) as cap:            # doctest: +SKIP
    ...     opt.step(loss(model(x), y))
    >>> cap.save("step.opscope")                                     # doctest: +SKIP
    """
    return tracers.record(
        Capture(),
        model,
        optimizer=optimizer,
        framework=framework,
        how=how,
        values=values,
        part=part_of(part),
        times=times,
        join=joined,
    )


def joined(capture: ir.Capture, measured: ir.Capture) -> ir.Capture:
    """A recording with what a profiler measured meanwhile."""
    from opscope.analysis.joining import join
    from opscope.analysis.joining.over_steps import over_steps

    try:
        joined = join(capture, measured, "the profiler")
        over_steps(joined)
        return joined
    except OpscopeError as error:  # what was recorded is not to be lost with it
        capture.warnings.append(f"the times could not be joined: {error}")
        return capture
