"""how="fx": torch.fx.symbolic_trace, with source lines, and with shapes where there are arguments to run it on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

from opscope.ir import Capture, Listing, Pools, Stage, add_listings
from opscope.sources import embed, exact
from opscope.tracers.arguments import tensors_in
from opscope.tracers.torch.private import find, the_torch

from .errors import cannot
from .fxgraph import Built, FxGraph
from .guard import unchanged
from .listings import of_fx
from .origin import origin
from .places import Places


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None) -> Capture:
    with unchanged(target) as heard:
        try:
            traced = Traced(target, args, kwargs, heard.kept.restore)
        except Exception as error:
            raise cannot("fx", error, caller) from error
        warnings: list[str] = []
        if args or kwargs:
            try:
                find("torch.fx.passes.shape_prop", "ShapeProp")(traced.module).propagate(*traced.values(args, kwargs))
            except Exception as error:
                warnings.append(f"the shapes are not known: the traced graph does not run on these arguments: {error}")
    return of_graph_module(traced.module, root=target, warnings=warnings)


class Traced:
    """A target and the GraphModule that fx makes of it. Every argument that holds tensors becomes an input.

    fx alone makes inputs of all parameters that there are, also of those that have a default and were not given. A
    model that asks which ones it has got (`if input_ids is None`) then finds all of them. So the model is called as the
    user calls it; without arguments there is nothing to go by, and fx does as it does.

    `restore` is called when the model has run: what it has assigned to its buffers are fx's stand-ins.
    """

    def __init__(
        self,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        restore: Callable[[], None] = lambda: None,
    ) -> None:
        torch = the_torch()
        call = self._call

        class Given(torch.fx.Tracer):
            def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> Any:
                return call(self, root_fn, is_module)

        self._target = target
        self._given = args, kwargs
        tracer: Any = Given() if args or kwargs else torch.fx.Tracer()
        tracer.record_stack_traces = True
        graph = tracer.trace(target)
        constants = _constants(tracer.root, graph)
        restore()
        name = type(target).__name__ if isinstance(target, torch.nn.Module) else getattr(target, "__name__", "function")
        with _holding(tracer.root, constants):
            self.module = torch.fx.GraphModule(tracer.root, graph, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph as the target is called."""
        return self.module(*self.values(args, kwargs))

    def values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """What the inputs of the graph are for these arguments."""
        return [value for _, value, is_input in self._slots(args, kwargs) if is_input]

    def _slots(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any, bool]]:
        """Positional arguments, then named ones: what each is called, its value, and whether it is an input."""
        tensor = the_torch().Tensor
        names = _positions(self._target, len(args))
        given = [*zip(names, args, strict=True), *kwargs.items()]
        return [(name, value, any(True for _ in tensors_in(tensor, value))) for name, value in given]

    def _call(self, tracer: Any, root_fn: Any, is_module: bool) -> tuple[Any, list[Any]]:
        args, kwargs = self._given
        passed = [
            tracer.create_proxy("placeholder", name, (), {}) if is_input else value
            for name, value, is_input in self._slots(args, kwargs)
        ]
        named = dict(zip(kwargs, passed[len(args) :], strict=True))

        def call(*positional: Any) -> Any:
            return root_fn(*positional, **named)

        call.__annotations__ = dict(getattr(root_fn, "__annotations__", {}))
        return call, [*([tracer.root] if is_module else []), *passed[: len(args)]]


def _constants(root: Any, graph: Any) -> dict[str, Any]:
    """What the graph reads by name from the root itself: fx puts the tensors there that the code has made."""
    held = cast("dict[str, Any]", vars(root))
    return {node.target: held[node.target] for node in graph.nodes if node.op == "get_attr" and node.target in held}


@contextmanager
def _holding(root: Any, constants: dict[str, Any]) -> Generator[None]:
    """Constants of a trace are on the model while a GraphModule takes them over, and not after."""
    missing = {name: value for name, value in constants.items() if name not in vars(root)}
    vars(root).update(missing)
    try:
        yield
    finally:
        for name in missing:
            del vars(root)[name]


def _positions(target: Any, count: int) -> list[str]:
    """What the positional arguments are called: `x`, or `args_0` where there are any number of them."""
    try:
        parameters = list(inspect.signature(getattr(target, "forward", target)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [*names, *(f"{rest}_{number}" for number in range(count))][:count]


def of_graph_module(module: Any, *, root: Any = None, warnings: list[str] | None = None) -> Capture:
    """A GraphModule as it is."""
    pools = Pools()
    places = Places(pools, root if hasattr(root, "named_modules") else module)
    built = FxGraph(pools, places, owner=module, python_level=True).build(module.graph)
    listings = of_fx(module.graph, module.code, str(module.graph), built.nodes)
    return _finished(pools, built, listings, warnings)


def of_graph(graph: Any) -> Capture:
    """A bare fx.Graph: what it names may be gone, but its owner often still has it."""
    owner = getattr(graph, "owning_module", None)
    if owner is not None:
        return of_graph_module(owner)
    pools = Pools()
    built: Built = FxGraph(pools, Places(pools), python_level=True).build(graph)
    listings = of_fx(graph, str(graph.python_code("self").src), str(graph), built.nodes)
    return _finished(pools, built, listings, None)


def _finished(pools: Pools, built: Built, listings: dict[str, Listing], warnings: list[str] | None) -> Capture:
    capture = Capture(pools, [Stage("fx", built.graph)], origin=origin("fx"), warnings=warnings or [])
    add_listings(capture, 0, listings)
    embed(capture, exact)
    return capture
