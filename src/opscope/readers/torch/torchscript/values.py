"""What an expression of TorchScript stands for while its graph is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .objects import Thing

if TYPE_CHECKING:
    from .inline import Part


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


@dataclass(frozen=True, eq=False)
class Dic:
    """A dict that was written out."""

    items: tuple[tuple[Abstract, Abstract], ...]


Abstract: TypeAlias = Val | Const | Mod | Seq | Dic

NOTHING = Const(None)


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
