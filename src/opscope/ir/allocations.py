"""What an allocator handed out and took back while a program ran: a snapshot of its history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .pools import Frame


class Block(NamedTuple):
    """Memory that was handed out. `stack`: where it was asked for, innermost frame first; `op`: by which operator."""

    address: int
    bytes: int
    stack: tuple[Frame, ...] = ()
    op: str = ""


class Event(NamedTuple):
    block: Block
    is_freed: bool


@dataclass(frozen=True)
class Allocations:
    """The history of one device: what was held before it begins, and then what was taken and given back in order."""

    device: int
    held: list[Block]
    events: list[Event]
    refused: Block | None = None  # what the program asked for when there was no more memory
    refused_at: int = 0  # so many events before that
    warnings: list[str] = field(default_factory=list[str])
