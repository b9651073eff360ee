"""how="autograd": the graph of backward functions behind a tensor, or behind what a model returns."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

from opscope.ir import Capture, Listing, Pools, Stage, add_listings
from opscope.sources import embed, exact
from opscope.tracers import arguments
from opscope.tracers.torch.private import the_torch, without_compiler

from .autograd_graph import Backward, name_of
from .autograd_names import Names
from .autograd_statistics import gradient_table
from .errors import CannotCapture, cannot
from .guard import unchanged
from .listings import aligned
from .modules_seen import ModulesSeen
from .origin import origin
from .places import Places


def capture(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    caller: FrameType | None = None,
    statistics: bool | None = None,
) -> Capture:
    """`target` is a tensor, tensors in a tuple, list or dict, or a model or function with its arguments.

    With `statistics=True` (also among `kwargs`, as `opscope.trace` hands it on) the backward pass is run and the
    gradients on every edge are measured; `.grad` stays as it is.
    """
    torch = the_torch()

    kwargs = dict(kwargs)
    if statistics is None:
        statistics = bool(kwargs.pop("statistics", False))
    pools = Pools()
    seen = ModulesSeen()
    if any(True for _ in tensors_in("", target)):
        if args or kwargs:
            raise CannotCapture("autograd", "a tensor takes no arguments", instead="")
        roots = list(tensors_in("", target))
        return _captured(pools, roots, Names(caller), seen, Places(pools), statistics)
    model = target if isinstance(target, torch.nn.Module) else getattr(target, "__self__", None)
    with unchanged(target), torch.enable_grad(), _tracebacks(), without_compiler():
        try:
            with seen.watching():
                results = target(*args, **kwargs)
        except Exception as error:
            raise cannot("autograd", error, caller) from error
        roots = list(tensors_in("", results))
        names = Names(caller, model if isinstance(model, torch.nn.Module) else None, args, kwargs)
        return _captured(pools, roots, names, seen, Places(pools, model), statistics)


def _captured(
    pools: Pools, roots: list[tuple[str, Any]], names: Names, seen: ModulesSeen, places: Places, statistics: bool
) -> Capture:
    differentiable = [(name, tensor) for name, tensor in roots if tensor.requires_grad]
    if not differentiable:
        raise CannotCapture("autograd", "nothing here requires a gradient, so there is no backward graph")
    backward = Backward(pools, names, seen.scopes(places))
    backward.add(differentiable)
    graph = backward.freeze()
    capture = Capture(pools, [Stage("backward", graph)], origin=origin("autograd"), warnings=backward.warnings)
    add_listings(capture, 0, _table(backward))
    if statistics:
        table, warnings = gradient_table(backward, differentiable)
        capture.tables["gradients"] = table
        capture.warnings += warnings
    embed(capture, exact)
    return capture


def tensors_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors in a nest of tuples, lists, dicts and dataclasses, with the way to each."""
    return arguments.tensors_in(the_torch().Tensor, value, name, depth=16)


class _tracebacks:
    """Autograd keeps the Python stack of every operator while this lasts."""

    def __enter__(self) -> None:
        torch = the_torch()

        self._before = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
        torch.autograd.set_detect_anomaly(True, check_nan=False)

    def __exit__(self, *_: object) -> None:
        torch = the_torch()

        torch.autograd.set_detect_anomaly(self._before[0], check_nan=self._before[1])


def _table(backward: Backward) -> dict[str, Listing]:
    rows = [
        (str(i), name_of(function), str(number), ", ".join("none" if f is None else name_of(f) for f, _ in edges))
        for i, (function, number, edges) in enumerate(backward.rows())
    ]
    lines = [(i + 3, i) for i in range(len(rows))]
    return {"table": Listing(aligned(("node", "function", "sequence", "next functions"), rows), lines)}
