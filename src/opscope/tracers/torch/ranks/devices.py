"""CUDA devices on a machine that has none: what a script puts there is on the CPU.

`torch.cuda.is_available()` still says no: a script that asks goes its own way. One that does not ask runs too.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any

from opscope.tracers.torch.private import find

from .groups import patched

_TOLD = "this machine has no CUDA device: what the script puts on one was recorded on the CPU"


@contextlib.contextmanager
def cuda_is_the_cpu(torch: Any, device: int, count: int, told: list[str]) -> Generator[None, None, None]:
    def on_cpu(value: Any) -> Any:
        """The CPU for a CUDA device, however it is written; anything else as it is."""
        kind = value if isinstance(value, str) else value.type if isinstance(value, torch.device) else ""
        is_cuda = str(kind).partition(":")[0] == "cuda"
        if not is_cuda:
            return value
        if _TOLD not in told:
            told.append(_TOLD)
        return torch.device("cpu")

    base: Any = find("torch.overrides", "TorchFunctionMode")

    class OnCpu(base):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.cuda:
                on_cpu("cuda")
                return args[0]
            if args and len(args) > 1:
                args = (args[0], *map(on_cpu, args[1:]))
            if kwargs and "device" in kwargs:
                kwargs = {**kwargs, "device": on_cpu(kwargs["device"])}
            return func(*args, **(kwargs or {}))

    def module_to(to: Any) -> Callable[..., Any]:
        @functools.wraps(to)
        def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
            if "device" in kwargs:
                kwargs = {**kwargs, "device": on_cpu(kwargs["device"])}
            return to(self, *map(on_cpu, args), **kwargs)

        return moved

    def first_on_cpu(function: Any, name: str) -> Callable[..., Any]:
        """A constructor whose argument `name` is a kind of device."""

        @functools.wraps(function)
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            if name in kwargs:
                kwargs = {**kwargs, name: _kind(on_cpu(kwargs[name]))}
            elif args:
                args = (_kind(on_cpu(args[0])), *args[1:])
            function(self, *args, **kwargs)

        made.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return made

    def without(function: Any, *names: str) -> Callable[..., Any]:
        """A constructor that is told of no device."""

        @functools.wraps(function)
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            given = inspect.signature(function).bind(self, *args, **kwargs)
            for name in names:
                if given.arguments.pop(name, None) is not None:
                    on_cpu("cuda")
            function(*given.args, **given.kwargs)

        return made

    cuda = torch.cuda
    places: list[tuple[Any, str, Any]] = [
        (torch.nn.Module, "to", module_to(torch.nn.Module.to)),
        (torch.nn.Module, "cuda", _itself),
        (torch.autocast, "__init__", first_on_cpu(torch.autocast.__init__, "device_type")),
        (cuda, "set_device", _ignored),
        (cuda, "current_device", lambda: device),
        (cuda, "device_count", lambda: count),
        *((cuda, name, _Nothing) for name in ("Stream", "Event", "current_stream", "default_stream")),
        *((cuda, name, lambda *a, **k: None) for name in ("synchronize", "empty_cache", "reset_peak_memory_stats")),  # type: ignore[misc]
        *(
            (cuda, name, lambda *a, **k: 0)  # type: ignore[misc]
            for name in ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
        ),
    ]
    for module, name, argument in (
        ("torch.distributed.device_mesh", "DeviceMesh", "device_type"),
        ("torch.nn.parallel", "DistributedDataParallel", ("device_ids", "output_device")),
        ("torch.distributed.fsdp", "FullyShardedDataParallel", ("device_id",)),
    ):
        cls = find(module, name)
        if cls is not None:
            init = cls.__init__
            made = first_on_cpu(init, argument) if isinstance(argument, str) else without(init, *argument)
            places.append((cls, "__init__", made))
    with patched(*places), OnCpu():
        yield


def _itself(module: Any, device: Any = None) -> Any:
    return module


def _ignored(device: Any) -> None:
    pass


def _kind(device: Any) -> Any:
    return device if isinstance(device, str) else getattr(device, "type", device)


class _Nothing:
    """A stream or an event that has nothing to wait for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def elapsed_time(self, other: Any) -> float:
        return 0.0

    def query(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None  # type: ignore[misc]
