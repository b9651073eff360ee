"""how="fx": torch.fx.symbolic_trace, with source lines, and with shapes where there are arguments to run it on."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any

from opscope.ir import Capture, Pools, Stage
from opscope.sources import embed, exact
from opscope.tracers.torch.private import find, the_torch

from .errors import cannot
from .fxgraph import Built, FxGraph
from .guard import unchanged
from .listings import of_fx
from .origin import origin
from .places import Places


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None) -> Capture:
    with unchanged(target):
        try:
            module = _symbolic(target)
        except Exception as error:
            raise cannot("fx", error, caller) from error
        warnings: list[str] = []
        if args or kwargs:
            try:
                _propagate(module, target, args, kwargs)
            except Exception as error:
                warnings.append(f"the shapes are not known: the traced graph does not run on these arguments: {error}")
    return of_graph_module(module, root=target, warnings=warnings)


def _symbolic(target: Any) -> Any:
    torch = the_torch()

    tracer: Any = torch.fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(target)
    name = type(target).__name__ if isinstance(target, torch.nn.Module) else getattr(target, "__name__", "function")
    return torch.fx.GraphModule(tracer.root, graph, name)


def _propagate(module: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    shape_prop = find("torch.fx.passes.shape_prop", "ShapeProp")

    bound = inspect.signature(getattr(target, "forward", target)).bind(*args, **kwargs)
    bound.apply_defaults()
    shape_prop(module).propagate(*bound.args, *bound.kwargs.values())


def of_graph_module(module: Any, *, root: Any = None, warnings: list[str] | None = None) -> Capture:
    """A GraphModule as it is."""
    pools = Pools()
    places = Places(pools, root if hasattr(root, "named_modules") else module)
    built = FxGraph(pools, places, owner=module, python_level=True).build(module.graph)
    stage = Stage("fx", built.graph, listings=of_fx(module.graph, module.code, str(module.graph), built.nodes))
    return _finished(pools, stage, warnings)


def of_graph(graph: Any) -> Capture:
    """A bare fx.Graph: what it names may be gone, but its owner often still has it."""
    owner = getattr(graph, "owning_module", None)
    if owner is not None:
        return of_graph_module(owner)
    pools = Pools()
    built: Built = FxGraph(pools, Places(pools), python_level=True).build(graph)
    listings = of_fx(graph, str(graph.python_code("self").src), str(graph), built.nodes)
    return _finished(pools, Stage("fx", built.graph, listings=listings), None)


def _finished(pools: Pools, stage: Stage, warnings: list[str] | None) -> Capture:
    capture = Capture(pools, [stage], origin=origin("fx"), warnings=warnings or [])
    embed(capture, exact)
    return capture
