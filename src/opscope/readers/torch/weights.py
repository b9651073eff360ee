"""Statistics of the tensors in PyTorch's archives: each lies in a storage, which may hold others, too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opscope.ir import Table
from opscope.ir.dtypes import bits_of
from opscope.ir.measurements import Figures, figures_table
from opscope.ir.tally import figures_of

from .archive import TorchArchive


class Stored(NamedTuple):
    """A tensor in a member of the archive: sizes, and strides and offset in elements."""

    member: str
    dtype: str
    shape: Sequence[int]
    strides: Sequence[int]
    offset: int


def statistics(archive: TorchArchive, stage: int, tensors: Mapping[int, Stored]) -> tuple[Table | None, list[str]]:
    """By value, and the names of members whose numbers could not be taken: not there, or of other types."""
    known: dict[tuple[str, str, int, int], Figures | None] = {}  # tied weights are read once
    found: dict[int, Figures] = {}
    missing: dict[str, None] = {}
    is_big = "byteorder" in archive and archive.text("byteorder").strip() == "big"
    for value, stored in tensors.items():
        count = math.prod(stored.shape)
        key = stored.member, stored.dtype, stored.offset, count
        if key not in known:
            known[key] = _figures(archive, stored, count, is_big)
        figures = known[key]
        if figures is None:
            missing[stored.member] = None
        else:
            found[value] = figures
    return (figures_table(stage, found) if found else None), list(missing)


def _figures(archive: TorchArchive, stored: Stored, count: int, is_big: bool) -> Figures | None:
    bits = bits_of(stored.dtype)
    if not _is_dense(stored.shape, stored.strides) or stored.member not in archive or bits is None or bits % 8:
        return None
    first, last = stored.offset * bits // 8, (stored.offset + count) * bits // 8
    if stored.offset < 0 or last > archive.size(stored.member):
        return None
    pieces = _part(archive.pieces(stored.member), first, last)
    return figures_of(pieces, stored.dtype, count, big_endian=is_big)


def _part(pieces: Iterator[bytes], first: int, last: int) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        if at + len(piece) > first:
            yield piece[max(first - at, 0) : last - at]
        at += len(piece)
        if at >= last:
            return


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether it is one piece of its storage, in whatever order of axes."""
    if len(shape) != len(strides):
        return False
    step = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, shape, strict=True) if size != 1):
        if stride != step:
            return math.prod(shape) == 0
        step *= size
    return True
