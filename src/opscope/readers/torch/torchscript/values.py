"""What an expression of TorchScript stands for while its graph is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from opscope.errors import BadInput

from .objects import Thing

if TYPE_CHECKING:
    from .inline import Part

_MOST_PARTS = 100_000


@dataclass(frozen=True, eq=False)
class Val:
    """A value of the graph that is being built, or of one around it."""

    part: Part
    index: int


@dataclass(frozen=True)
class Const:
    """A number, a text, None, or a list of such."""

    value: Any
    saved_as: str = ""  # the attribute of a module that it was saved in

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str)


@dataclass(frozen=True, eq=False)
class Mod:
    """A module, or another object with attributes."""

    thing: Thing
    path: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Seq:
    """A tuple or list that was written out: its parts are known, so no operator is needed to build it."""

    items: tuple[Abstract, ...]
    is_list: bool = False
    fields: tuple[str, ...] = ()
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size_of(self.items))


@dataclass(frozen=True, eq=False)
class Dic:
    """A dict that was written out."""

    items: tuple[tuple[Abstract, Abstract], ...]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _size_of([part for pair in self.items for part in pair]))


Abstract: TypeAlias = Val | Const | Mod | Seq | Dic

NOTHING = Const(None)


def _size_of(items: Sequence[Abstract]) -> int:
    """How much somebody sees who walks through all of it: lists may name each other, each twice the one before."""
    size = 1 + sum(item.size if isinstance(item, Seq | Dic) else 1 for item in items)
    if size > _MOST_PARTS:
        raise BadInput(f"a list or dict in its code has more than {_MOST_PARTS:,} parts")
    return size


def plain(value: Abstract) -> tuple[bool, Any]:
    """(True, the plain data), or (False, None) if some part of it is computed."""
    if isinstance(value, Const):
        return True, value.value
    if isinstance(value, Seq):
        parts = [plain(item) for item in value.items]
        return all(known for known, _ in parts), [data for _, data in parts]
    if isinstance(value, Dic) and not value.items:
        return True, {}
    return False, None
