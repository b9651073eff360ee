"""What TorchScript values are for us, and what TorchScript says of its nodes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from opscope.ir.pools import Frame
from opscope.tracers.torch import private

from .frames import python_frames

LISTS = ("prim::ListConstruct", "prim::TupleConstruct")
UNPACKS = ("prim::ListUnpack", "prim::TupleUnpack")


class CannotOpen(Exception):
    """A call whose callee cannot be reached from Python."""


class Held(NamedTuple):
    """A module, or something that a module holds, by its path from the captured one."""

    module: Any  # the ScriptModule, or its C++ object
    path: str


class Constant(NamedTuple):
    value: Any


class Items(NamedTuple):
    """A list or tuple that was only put together to be handed on."""

    items: tuple[Any, ...]


# What a TorchScript value is for us: one of our values, or something that needs none.
Known = int | Held | Constant | Items


class Trail:
    """Where every operator was called from, found by opening the calls one by one.

    torch's inlined graph is a simplified version of that (branches that are never taken are gone) in the same order.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []  # scope, stack, number of the top-level node
        self._places: dict[tuple[str, str], list[int]] = {}
        self._next = 0

    def add(self, node: Any, row: tuple[int, int, int]) -> None:
        self._places.setdefault((node.kind(), node.sourceRange()), []).append(len(self.rows))
        self.rows.append(row)

    def follow(self, node: Any) -> tuple[int, int, int] | None:
        """The next operator of this kind from the same line."""
        places = self._places.get((node.kind(), node.sourceRange()), [])
        at = bisect_left(places, self._next)
        if at == len(places):
            return None
        self._next = places[at] + 1
        return self.rows[places[at]]


def constant(node: Any) -> Any:
    names = node.attributeNames()
    if "name" in names:
        return node.s("name")  # of a function
    if "value" not in names:
        return None
    if node.kindOf("value") == "t":
        return node.t("value")
    return node.output().toIValue()


def printed_kinds(block: Any) -> Iterator[str]:
    for node in block.nodes():
        yield node.kind()
        for inner in node.blocks():
            yield from printed_kinds(inner)


def whole(items: tuple[Any, ...]) -> Known:
    """A list of numbers is a number of its own."""
    if all(isinstance(item, Constant) and not hasattr(item.value, "dtype") for item in items):
        return Constant([item.value for item in items])
    return Items(items)


def unpacked(value: Any) -> list[Any] | None:
    uses = value.uses()
    if len(uses) != 1 or uses[0].user.kind() not in UNPACKS:
        return None
    return list(uses[0].user.outputs())


def is_module(value: Any) -> bool:
    kind = value.type()
    return kind.kind() == "ClassType" and kind.annotation_str.startswith("__torch__")


def is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def attribute(owner: Held, name: str) -> Held:
    path = f"{owner.path}.{name}".strip(".")
    module = owner.module
    return Held(getattr(module, name, None), path)


def role_of(held: Held) -> str:
    name = type(held.module).__name__
    if name == "Parameter" or getattr(held.module, "requires_grad", False):
        return "parameter"
    return "buffer"


def class_name(module: Any) -> str:
    name = getattr(module, "original_name", None)
    return str(name) if name else type(module).__name__


def script_frames(node: Any) -> tuple[Frame, ...]:
    """The one line of a scripted node; its function is not given."""
    found = python_frames(node.sourceRange())
    return tuple(found[-1:])


@lru_cache(maxsize=4096)
def argument_names(schema: str) -> tuple[str, ...]:
    if schema == "(no schema)":
        return ()
    try:
        parsed = private.parsed_schema(schema)
    except RuntimeError:
        return ()
    return tuple(argument.name for argument in parsed.arguments) if parsed is not None else ()
