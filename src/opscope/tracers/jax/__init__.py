"""Live capture of JAX: a function as its jaxpr, as StableHLO, after every pass of XLA, and as the kernels that run."""

from __future__ import annotations

from types import FrameType
from typing import Any, NoReturn

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.tracers.contract import Options, Tracer

from .private import import_jax


def trace(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, how: str, caller: FrameType) -> Capture:
    """A function, jitted or not, a Flax NNX or an Equinox module, called with these arguments."""
    import_jax()
    from .stages import capture_of

    return capture_of(target, args, kwargs, how)


def start(options: Options) -> NoReturn:
    raise OpscopeError(
        "JAX computes nothing that can be watched while it runs: give opscope.trace() the function and its arguments"
    )


TRACER = Tracer(name="JAX", how=("auto", "jaxpr", "stablehlo", "compile"), trace=trace, start=start, records=())
