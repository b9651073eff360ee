"""An HLO module as both of its forms, text and proto, say it: computations of instructions, nothing interpreted yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from opscope.ir import Frame


class Array(NamedTuple):
    """The shape of one array; `dtype` as HLO writes it: f32, bf16, pred, token. A size may be a bound (`<=8`)."""

    dtype: str
    sizes: tuple[int, ...]


# An array, or a tuple of shapes.
Shape: TypeAlias = "Array | tuple[Shape, ...]"


class Place(NamedTuple):
    """Where in the source an instruction comes from, the outermost call first, and the column of the last."""

    frames: tuple[Frame, ...] = ()
    column: int = 0
    call: int = 0  # in a live program: which call of a primitive it was; gradients carry that of their forward operator


NOWHERE = Place()


@dataclass(slots=True)
class Instruction:
    name: str
    opcode: str
    shape: Shape
    operands: list[str] = field(default_factory=list[str])  # names of instructions of the same computation
    called: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # how it calls, and which computation
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    op_name: str = ""
    place: Place = NOWHERE
    number: int = -1  # of a parameter
    title: str | None = None  # what it is called, where that is not its name
    role: str = "input"  # of a parameter
    control: list[str] = field(default_factory=list[str])  # instructions that must come before
    bound: list[list[str]] = field(default_factory=list[list[str]])  # of each that is called, what its parameters are


@dataclass(slots=True)
class Computation:
    name: str
    instructions: list[Instruction]
    root: str
    is_entry: bool = False
    results: list[str] | None = None  # where there is no root: what it returns


@dataclass(slots=True)
class Module:
    name: str
    computations: dict[str, Computation]  # those that are called come before those that call them
    entry: str
    aliases: Mapping[int, int] = field(default_factory=dict[int, int])  # result -> the parameter whose memory it takes


def leaves(shape: Shape) -> list[Array]:
    """The arrays of a shape, in order."""
    if isinstance(shape, Array):
        return [shape]
    found: list[Array] = []
    stack: list[Shape] = [shape]
    while stack:
        item = stack.pop()
        if isinstance(item, Array):
            found.append(item)
        else:
            stack.extend(reversed(item))
    return found
