"""One process as any rank of any world, without its peers and without GPUs.

`as_rank` is what the rest uses. Inside it, a script that starts a process group gets a fake one, which answers every
collective at once and sends nothing; CUDA devices are the CPU where there are none; and with `fake`, tensors have
shapes and no numbers, so that a model of any size needs no memory.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Generator
from typing import Any

from opscope.errors import OpscopeError
from opscope.tracers.messages import Mailbox
from opscope.tracers.torch.private import find, the_torch

from . import control, groups
from .devices import cuda_is_the_cpu
from .groups import patched
from .mode import on_real, running_on

# What programs of many ranks import: once, before the process is forked.
_USED = (
    "torch.distributed.device_mesh",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch.distributed.pipelining",
    "torch.distributed.nn.functional",
    "torch.nn.parallel",
    "torch._subclasses.fake_tensor",
    "torch.optim",
    "torch._dynamo",
    "torch.testing._internal.distributed.fake_pg",
)


def prepare() -> None:
    """Import what every rank needs. Nothing runs, and no thread is started: the process will be forked."""
    torch = the_torch()
    if not torch.distributed.is_available():
        raise OpscopeError(f"torch {torch.__version__} was built without torch.distributed: it knows no ranks")
    for name in _USED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if groups.fake_store() is None:
        raise OpscopeError(f"torch {torch.__version__} has no fake process groups: a world needs torch 2.4 or newer")


@contextlib.contextmanager
def as_rank(rank: int, world: int, local: int, *, fake: bool, box: Mailbox) -> Generator[list[str], None, None]:
    """What runs inside runs as rank `rank` of `world`, with `local` ranks on each machine. Gives the list of what a
    reader of the recording should know."""
    prepare()
    torch = the_torch()
    told: list[str] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(_environment(rank, world, local))
        stack.enter_context(groups.without_peers(torch, rank, world, box, told))
        stack.enter_context(control.without_peers(torch))
        if not torch.cuda.is_available():
            stack.enter_context(cuda_is_the_cpu(torch, rank % local, local, told))
        if fake:
            stack.enter_context(_on_fakes(told))
        yield told


@contextlib.contextmanager
def _environment(rank: int, world: int, local: int) -> Generator[None, None, None]:
    given = {
        "RANK": rank,
        "WORLD_SIZE": world,
        "LOCAL_RANK": rank % local,
        "LOCAL_WORLD_SIZE": min(local, world),
        "GROUP_RANK": rank // local,
        "NODE_RANK": rank // local,
        "GROUP_WORLD_SIZE": -(-world // local),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": 29500,
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update({name: str(value) for name, value in given.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# What DeviceMesh does with tensors of ranks, whose numbers it needs.
_MESH = ("__init__", "__getitem__", "_flatten", "_unflatten", "_concatenate", "from_group", "_get_all_submeshes")


@contextlib.contextmanager
def _meshes_on_real() -> Generator[None, None, None]:
    def real(function: Any) -> Any:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with on_real():
                return function(*args, **kwargs)

        return run

    cls: Any = find("torch.distributed.device_mesh", "DeviceMesh")
    places: list[tuple[Any, str, Any]] = []
    for name in _MESH if cls is not None else ():
        found: Any = cls.__dict__.get(name)
        if isinstance(found, staticmethod | classmethod):
            places.append((cls, name, type(found)(real(found.__func__))))  # pyright: ignore[reportUnknownArgumentType]
        elif found is not None:
            places.append((cls, name, real(found)))
    start = find("torch.distributed.device_mesh", "init_device_mesh")
    for home in ("torch.distributed.device_mesh", "torch.distributed"):
        if start is not None and find(home, "init_device_mesh") is start:
            places.append((importlib.import_module(home), "init_device_mesh", real(start)))
    with patched(*places):
        yield


@contextlib.contextmanager
def _on_fakes(told: list[str]) -> Generator[None, None, None]:
    from opscope.tracers.torch.questions.cost import guessing

    modes: Any = find("torch._subclasses.fake_tensor", "FakeTensorMode")
    mode = modes(allow_non_fake_inputs=True)
    guesses: list[str] = []
    try:
        with running_on(mode), _meshes_on_real(), mode, guessing(guesses):
            yield
    finally:
        told.extend(dict.fromkeys(guesses))
