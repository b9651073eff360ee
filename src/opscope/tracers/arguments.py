"""The arguments of a call by the names that the callee has for them, and the tensors inside them."""

from __future__ import annotations

import inspect
from collections import UserDict, deque
from collections.abc import Iterator
from types import MemberDescriptorType
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
    """Name and tensor of all tensors in a value: the value itself, or those in plain containers and dataclasses.
    Containers with more than `most` items are not looked into.

    >>> list(tensors_in(int, {"a": 1, "b": [2, 3]}, "x"))
    [('x.a', 1), ('x.b[0]', 2), ('x.b[1]', 3)]
    """
    if is_a(value, kind):
        yield name, value
        return
    if not depth:
        return
    for step, item in items_of(value, most):
        inner = f"{name}{step}" if name else step.removeprefix(".")
        yield from tensors_in(kind, item, inner, depth=depth - 1, most=most)


# -- looking at what is somebody else's ------------------------------------------------------------------
#
# Among a user's variables and arguments is anything: mappings that import a package when they are looked into,
# objects that connect to a database when they are asked for an attribute. So nothing of theirs is called here:
# no method, no property, no `__getattr__`, no `__class__`. What is stored is read by the methods of Python's own types.


def is_a(value: Any, kind: type[Any] | tuple[type[Any], ...]) -> bool:
    """`isinstance`, but of the type that it really has; a proxy may say that it has another."""
    return issubclass(cast("type[Any]", type(value)), kind)


def items_of(value: Any, most: int | None = None) -> Iterator[tuple[str, Any]]:
    """What a container or a dataclass stores, each item with the step to it; nothing of any other object.

    >>> dict(items_of({"a": 1, 2: 3})), dict(items_of((4, 5)))
    ({'.a': 1, '.2': 3}, {'[0]': 4, '[1]': 5})
    """
    if is_a(value, UserDict):
        value = attributes_of(value).get("data")
    for base in _SEQUENCES:
        if is_a(value, base):
            if most is None or base.__len__(value) <= most:
                names = _found(value, "_fields") if base is tuple else None
                names = names if type(names) is tuple and len(names) == tuple.__len__(value) else None
                for number, item in enumerate(list(base.__iter__(value))):
                    yield (f".{names[number]}" if names is not None else f"[{number}]"), item
            return
    found = _found(value, "__dataclass_fields__")
    fields: list[str] | None = list(cast("dict[str, Any]", found)) if type(found) is dict else None
    if fields is not None:  # before dictionaries: some are both, and a field may hold what the dictionary does not
        stored = attributes_of(value)
        slots = ((field, _slot(value, field)) for field in fields if field not in stored)
        yield from ((f".{field}", item) for field, item in [*_chosen(stored, fields), *slots])
    elif is_a(value, dict) and (most is None or dict.__len__(value) <= most):
        for number, (key, item) in enumerate(list(dict.items(value))):
            yield (f".{key}" if type(key) in _PLAIN_KEYS else f"[{number}]"), item


def attributes_of(value: Any) -> dict[str, Any]:
    """What an object stores under its attributes' names; slots and properties are not among it."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


_SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
_PLAIN_KEYS = (str, int, float, bool, type(None))


def _found(value: Any, name: str) -> Any:
    """What the class of a value has under a name, as it stands there."""
    for base in cast("type[Any]", type(value)).__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _chosen(stored: dict[str, Any], fields: list[str]) -> list[tuple[str, Any]]:
    return [(field, stored[field]) for field in fields if field in stored]


def _slot(value: Any, name: str) -> Any:
    found = _found(value, name)
    if type(found) is not MemberDescriptorType:
        return None
    try:
        return found.__get__(value)
    except AttributeError:  # empty
        return None
