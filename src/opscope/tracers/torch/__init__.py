"""Live capture of PyTorch: the recorder sees what really runs; `how=` chooses one of torch's own graphs instead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.ir import Capture
from opscope.tracers.contract import RECORDS, Count, Tracer
from opscope.tracers.messages import Mailbox
from opscope.tracers.ways import Ways

from . import graphs
from .graphs import WAYS, existing
from .private import the_torch
from .recorder import record_call, start

COMPILE = "compile"  # what torch.compile makes of it: stages and kernels


def trace(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, how: str, caller: FrameType) -> Capture:
    """Call a module or a function once, or take a graph that exists already as it is."""
    if how == COMPILE:
        from .compiler import capture_call

        return capture_call(target, args, kwargs, caller=caller)
    if how in WAYS:
        return graphs.capture(how, target, args, kwargs, caller=caller)
    if how == "auto" and not args and not kwargs and (found := existing(target)) is not None:
        return found
    return record_call(target, args, kwargs, caller=caller, compiled=how != "record")


# What is asked less often is imported when it is asked.


def ways(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    caller: FrameType,
    keep: bool,
    progress: Callable[[str], None],
) -> Ways:
    from .questions.ways import ways

    return ways(target, args, kwargs, caller=caller, keep=keep, progress=progress)


def count(
    target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, train: bool, fake: bool | None, caller: FrameType
) -> Count:
    from .questions.cost import count

    return count(target, args, kwargs, train=train, fake=fake, caller=caller)


def training(model: Any) -> Any:
    from .questions.training import training

    return training(model)


def tensor(array: npt.NDArray[np.generic], dtype: str) -> Any:
    torch = the_torch()
    return torch.from_numpy(array).to(getattr(torch, dtype))


def prepare_ranks() -> None:
    from .ranks import prepare

    prepare()


def as_rank(rank: int, world: int, local: int, *, fake: bool, box: Mailbox) -> AbstractContextManager[list[str]]:
    from .ranks import as_rank

    return as_rank(rank, world, local, fake=fake, box=box)


TRACER = Tracer(
    name="PyTorch",
    how=(*RECORDS, *WAYS, COMPILE),
    records=(*RECORDS, COMPILE),
    trace=trace,
    start=start,
    ways=ways,
    count=count,
    training=training,
    tensor=tensor,
    prepare_ranks=prepare_ranks,
    as_rank=as_rank,
    keeps=True,
    profiles=True,
)
