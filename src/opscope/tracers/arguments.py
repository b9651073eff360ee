"""The arguments of a call by the names that the callee has for them, and the tensors inside them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, cast


def named_arguments(call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name and value of each. Where they do not fit, by position: the framework says better what is wrong with them."""
    try:
        return list(inspect.signature(call).bind(*args, **kwargs).arguments.items())
    except (TypeError, ValueError):
        return [*((f"args[{number}]", value) for number, value in enumerate(args)), *kwargs.items()]


def tensors_in(
    kind: type[Any], value: Any, name: str = "", *, depth: int = 6, most: int | None = None
) -> Iterator[tuple[str, Any]]:
    """Name and tensor of all tensors in a value: the value itself, or those in lists, tuples, dicts and dataclasses.
    Containers with more than `most` items are not looked into. Other mappings are not either: they may load what they
    hold.

    >>> list(tensors_in(int, {"a": 1, "b": [2, 3]}, "x"))
    [('x.a', 1), ('x.b[0]', 2), ('x.b[1]', 3)]
    """
    inside: Iterator[tuple[str, Any]]
    if isinstance(value, kind):
        yield name, value
        return
    if not depth:
        return
    if isinstance(value, list | tuple | dict):
        held = cast("list[Any] | dict[Any, Any]", value)
        if most is not None and len(held) > most:
            return
        if isinstance(held, dict):
            inside = ((f"{name}.{key}" if name else str(key), item) for key, item in held.items())
        else:
            inside = ((f"{name}[{number}]", item) for number, item in enumerate(held))
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        fields = cast("dict[str, Any]", value.__dataclass_fields__)
        inside = ((f"{name}.{field}" if name else field, getattr(value, field, None)) for field in fields)
    else:
        return
    for inner, item in inside:
        yield from tensors_in(kind, item, inner, depth=depth - 1, most=most)
