"""One use of an operator, as a formula sees it: arguments by their role, sizes as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, cast

from opscope.ir import dtypes
from opscope.ir.attributes import MODULE, NO_GRADIENT
from opscope.ir.pools import Type

from .cost import Argument

Shape = tuple[int, ...]


class NotKnown(Exception):
    """A formula needs a size or an argument that the capture does not say."""


class Place(NamedTuple):
    """Where a framework has an argument: its names there, and its position in captures that have no names."""

    names: tuple[str, ...]
    position: int


Places = Mapping[str, Place]

# PyTorch calls the first argument `self` in operators and methods, `input` in functions and modules.
_FIRST = {"self": "input", "input": "self"}


class Call:
    """The arguments, results and attributes of one operator.

    A role such as `weight` is looked up where the alias table of the framework says it is, or under its own name.
    """

    __slots__ = ("attrs", "in_place", "inputs", "lists", "only_computed", "outputs", "places")

    def __init__(
        self,
        inputs: Sequence[Argument],
        outputs: Sequence[Type],
        attrs: Mapping[str, Any],
        places: Places,
        lists: bool = False,
        in_place: bool = False,
        only_computed: bool = False,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.attrs = attrs
        self.places = places
        self.lists = lists  # it does the same to every tensor of a list: `_foreach_add`
        self.in_place = in_place
        self.only_computed = only_computed  # of a backward operator: it lists no gradient that it does not compute

    # -- tensors --------------------------------------------------------------------------------

    def names(self, role: str) -> tuple[str, ...]:
        """What the framework calls the argument in that role, the likeliest first."""
        place = self.places.get(role)
        if place is None:
            return (role, *((_FIRST[role],) if role in _FIRST else ()))
        more = [_FIRST[name] for name in place.names if name in _FIRST]
        return (*place.names, role, *more, *((str(place.position),) if place.position >= 0 else ()))

    def given(self, role: str) -> Type | None:
        """The tensor in that role; None if there is none. Of several parts of one tensor, the largest."""
        for name in self.names(role):
            found = [a.type for a in self.inputs if a.name == name and a.type is not None]
            if found:
                return found[0] if len(found) == 1 else max(found, key=lambda t: t.elements or 0)
        return None

    def tensor(self, role: str) -> Type:
        found = self.given(role)
        if found is None:
            raise NotKnown(role)
        return found

    def listed(self, role: str) -> list[Type]:
        """The tensors of a list: `tensors[0]`, `tensors[1]`, …"""
        for name in self.names(role):
            found = [a.type for a in self.inputs if a.name.startswith(f"{name}[") and a.type is not None]
            if found:
                return found
        return []

    def shape(self, role: str) -> Shape:
        return shape_of(self.tensor(role))

    def size(self, role: str) -> int:
        return size_of(self.tensor(role))

    def out(self, slot: int = 0) -> Type:
        if slot >= len(self.outputs):
            raise NotKnown(f"output {slot}")
        return self.outputs[slot]

    def first(self) -> Type:
        """The first tensor it reads."""
        found = next((a.type for a in self.inputs if a.type is not None), None)
        if found is None:
            raise NotKnown("any input")
        return found

    # -- elements, the measure of most formulas ---------------------------------------------------

    def made(self) -> int:
        """Elements of the result; of every result where it works on lists."""
        if self.lists:
            return sum(map(size_of, self.outputs))
        # An in-place operator of a framework that does not say what it writes has no output.
        return size_of(self.outputs[0] if self.outputs else self.first())

    def taken(self) -> int:
        """Elements of the first argument; of all of the first list where it works on lists."""
        if self.lists:
            head = next((a.name.partition("[")[0] for a in self.inputs), "")
            types = [a.type for a in self.inputs if a.type is not None and a.name.partition("[")[0] == head]
            return sum(map(size_of, types))
        return size_of(self.first())

    # -- other arguments --------------------------------------------------------------------------

    def attr(self, role: str, default: Any = None) -> Any:
        for name in self.names(role):
            if name in self.attrs:
                value = self.attrs[name]
                return default if value is None else value
        text = self.attrs.get(MODULE)
        if isinstance(text, str):
            found = re.search(rf"\b{re.escape(role)}=(\([^)]*\)|[^,)]+)", text)
            if found:
                return _literal(found[1])
        return default

    def numbers(self, role: str, count: int) -> Shape:
        """An attribute with a number for each dimension, or one for all."""
        value = self.attr(role)
        if isinstance(value, int):
            return (value,) * count
        if not isinstance(value, list | tuple):
            raise NotKnown(role)
        items = cast("Sequence[Any]", value)
        if not items or not all(isinstance(item, int) for item in items):
            raise NotKnown(role)
        return tuple(items) if len(items) == count else (items[0],) * count

    def mask(self, count: int) -> list[bool]:
        """Which gradients a backward operator computes, where an argument says so."""
        mask = self.attr("output_mask")
        if isinstance(mask, list | tuple):
            asked = [bool(item) for item in cast("Sequence[Any]", mask)]
            return (asked + [False] * count)[:count]
        return [True] * count

    def computed(self, count: int) -> list[bool]:
        """Which gradients a backward operator computes, where its outputs say so: one that nobody wants has no type."""
        left_out: Any = self.attrs.get(NO_GRADIENT, ())
        found = [
            i not in left_out and (self.only_computed or made.shape is not None)
            for i, made in enumerate(self.outputs[:count])
        ]
        return found + [False] * (count - len(found))

    def gradients(self, count: int) -> list[Type]:
        """The gradients that are computed, where the outputs say so."""
        return [made for made, wanted in zip(self.outputs, self.computed(count), strict=False) if wanted]


def shape_of(type_: Type) -> Shape:
    if type_.shape is None:
        raise NotKnown("a shape")
    sizes: list[int] = []
    for dim in type_.shape:
        if not isinstance(dim, int):
            raise NotKnown("a size")
        sizes.append(dim)
    return tuple(sizes)


def size_of(type_: Type) -> int:
    return prod(shape_of(type_))


def bytes_of(type_: Type | None) -> int:
    """Bytes of a tensor; none at all for Python's numbers."""
    if type_ is None:
        return 0
    return size_of(type_) * bits_of(type_.dtype) // 8


def bits_of(dtype: str) -> int:
    """Bits of one element: 32 for `float32`; 0 for Python's own numbers, which are in no memory that is counted."""
    if dtype in ("int", "float", "str", "complex"):
        return 0
    bits = dtypes.bits_of(dtype)
    if bits is None:
        raise NotKnown(f"the size of {dtype!r}")
    return bits


def _literal(text: str) -> Any:
    numbers = [int(n) for n in re.findall(r"-?\d+", text)]
    if text.startswith("("):
        return numbers
    if re.fullmatch(r"-?\d+", text):
        return numbers[0]
    return {"True": True, "False": False, "None": None}.get(text, text)
