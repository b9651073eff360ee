"""how="export": torch.export's ExportedProgram, with symbolic shapes and the graphs of higher-order operators."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from types import FrameType
from typing import Any, cast

from opscope.ir import Capture, GraphBuilder, Listing, Pools, Stage, add_listings
from opscope.ir.symbols import renamed
from opscope.sources import embed, exact
from opscope.tracers.torch.private import dimension_names, the_torch

from .errors import cannot
from .fxgraph import Built, FxGraph, Named, named_by
from .guard import unchanged
from .listings import of_fx
from .origin import origin
from .places import Places

_ROLES = {"PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "constant", "CUSTOM_OBJ": "constant"}


def capture(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    caller: FrameType | None = None,
    strict: bool = False,
    how: str = "export",
) -> Capture:
    torch = the_torch()

    with unchanged(target):
        try:
            module = target if isinstance(target, torch.nn.Module) else _as_module(target)
            program = torch.export.export(module, args, kwargs, strict=strict)
        except Exception as error:
            raise cannot(how, error, caller) from error
    return of_program(program, root=target, how=how)


def _as_module(function: Any) -> Any:
    """A function in a module: export takes nothing else."""
    torch = the_torch()

    class Function(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    with contextlib.suppress(TypeError, ValueError):  # so that inputs are called as the function calls them
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
        parameters += inspect.signature(function).parameters.values()
        cast("Any", Function.forward).__signature__ = inspect.Signature(parameters)
    return Function()


def of_program(program: Any, *, root: Any = None, how: str = "export") -> Capture:
    """An ExportedProgram as it is."""
    pools = Pools()
    module = program.graph_module
    signature = program.graph_signature
    names: dict[str, Named] = {}
    for spec in signature.input_specs:
        role = _ROLES.get(spec.kind.name)
        if role and spec.target:
            names[spec.arg.name] = Named(spec.target, role)
    way = FxGraph(
        pools,
        Places(pools, root),
        owner=module,
        named=named_by(names),
        relate=lambda builder, built: _storages(builder, built, program),
    )
    built = way.build(program.graph)
    native = str(program)
    listings = of_fx(program.graph, module.code, native, built.nodes)
    listings["signature"] = Listing(str(signature).strip())
    names_of = dimension_names(program)
    if program.range_constraints:
        ranges = [_range(symbol, found, names_of) for symbol, found in program.range_constraints.items()]
        listings["symbols"] = Listing("\n".join(ranges))
    capture = Capture(pools, [Stage("export", built.graph)], origin=origin(how))
    add_listings(capture, 0, listings)
    embed(capture, exact)
    return renamed(capture, names_of)


def _storages(builder: GraphBuilder, built: Built, program: Any) -> None:
    """Tied weights are one; an output that is the new content of a buffer or an input lives in its place."""
    signature, first = program.graph_signature, dict[int, int]()
    for spec in signature.input_specs:
        tensor = program.state_dict.get(spec.target) if spec.target else None
        if tensor is not None and spec.arg.name in built.values:
            value = built.values[spec.arg.name]
            builder.set_storage(value, first.setdefault(_memory(tensor), value))
    places = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target}
    for spec in signature.output_specs:
        if spec.kind.name in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION"):
            inside = places.get(spec.target, spec.target)
            if spec.arg.name in built.values and inside in built.values:
                builder.set_storage(built.values[spec.arg.name], built.values[inside])


def _memory(tensor: Any) -> int:
    """Where a parameter's numbers are; fake ones are distinguished by identity."""
    try:
        return tensor.data_ptr() or id(tensor)
    except RuntimeError:
        return id(tensor)


def _range(symbol: Any, found: Any, names_of: Mapping[str, str]) -> str:
    lower, upper = str(found.lower), str(found.upper)
    name = names_of.get(str(symbol))
    return (
        f"{f'{name} ({symbol})' if name else symbol}: {lower} to {'any' if upper in ('int_oo', 'oo', 'inf') else upper}"
    )
