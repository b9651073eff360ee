"""What the arguments of an fx node are called, by the schema or the signature of what it calls."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from opscope.tracers.torch.private import the_torch


class Argument(NamedTuple):
    name: str
    value: Any


def named_arguments(node: Any, callee: Any = None) -> list[Argument]:
    """The arguments in order with their names; by position where nothing gives a name."""
    args, kwargs = cast("tuple[Any, ...]", node.args), cast("dict[str, Any]", node.kwargs)
    names = _names(node, callee, len(args), tuple(kwargs))
    named = [Argument(names[i] if i < len(names) else str(i), value) for i, value in enumerate(args)]
    return named + [Argument(name, value) for name, value in kwargs.items()]


def flat(name: str, value: Any) -> Iterator[Argument]:
    """The parts of an argument that is a list or dict: `tensors[1]`."""
    if isinstance(value, list | tuple):
        for i, item in enumerate(cast("Sequence[Any]", value)):
            yield from flat(f"{name}[{i}]", item)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            yield from flat(f"{name}[{key}]", item)
    elif isinstance(value, slice):
        piece = cast("slice[Any, Any, Any]", value)
        for part, item in (("start", piece.start), ("stop", piece.stop), ("step", piece.step)):
            yield from flat(f"{name}.{part}", item)
    else:
        yield Argument(name, value)


def _names(node: Any, callee: Any, count: int, keywords: tuple[str, ...]) -> tuple[str, ...]:
    target = node.target
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return tuple(argument.name for argument in schema.arguments)
    if node.op == "call_method":
        return _of_aten(str(target), count, keywords)
    if node.op == "call_module":
        return _of_signature(cast("type[Any]", type(callee)).forward, skip=1) if callee is not None else ()
    return _of_function(target, count, keywords)


@lru_cache(maxsize=4096)
def _of_function(target: Any, count: int, keywords: tuple[str, ...]) -> tuple[str, ...]:
    if (getattr(target, "__module__", None) or "") in ("_operator", "builtins", "math"):
        return ()  # `a` and `b` say no more than their positions
    if is_higher_order(target):
        return _of_signature(type(target).__call__, skip=1)
    return _of_signature(target) or _of_aten(getattr(target, "__name__", ""), count, keywords)


@lru_cache(maxsize=4096)
def _of_signature(function: Any, skip: int = 0) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        return ()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(parameter.name for parameter in parameters if parameter.kind in plain)
    return names if names and names != ("self",) else ()


@lru_cache(maxsize=4096)
def _of_aten(name: str, count: int, keywords: tuple[str, ...]) -> tuple[str, ...]:
    """A builtin or a method has no signature, but the operator of the same name has a schema: where all of its
    variants that fit agree, those are the names."""
    torch = the_torch()

    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    fitting: set[tuple[str, ...]] = set()
    for variant in packet.overloads() if packet is not None else ():
        arguments = getattr(packet, variant)._schema.arguments
        names = [argument.name for argument in arguments if not argument.kwarg_only]
        if len(names) >= count and {argument.name for argument in arguments} >= {*keywords} - {"input", "self"}:
            fitting.add(tuple(names[:count]))
    return (
        fitting.pop()
        if len(fitting) == 1
        else ("self",)
        if fitting and all(f[:1] == ("self",) for f in fitting)
        else ()
    )


def is_higher_order(target: Any) -> bool:
    """cond, while_loop, map and the like: operators that take graphs."""
    return any(cls.__name__ == "HigherOrderOperator" for cls in type(target).__mro__)
