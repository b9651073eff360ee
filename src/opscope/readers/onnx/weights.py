"""The numbers of the weights, on request: those in the file, and those in files beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from opscope.ir import Capture
from opscope.ir.measurements import Figures, figures_table
from opscope.ir.tally import figures_of
from opscope.readers.pages import Pages, Whole
from opscope.readers.source import Source

from .build import Weight
from .tensors import bytes_of

_PIECE = 1 << 22


def add_statistics(capture: Capture, source: Source, data: Pages | Whole, weights: Sequence[Weight]) -> None:
    """The figures of the weights, by the values that they are."""
    found: dict[int, Figures] = {}
    with ExitStack() as files:
        beside = _Beside(source, files)
        for weight in weights:
            size = bytes_of(weight.type)
            file = beside.open(weight.data.file) if weight.data.file else None
            if size is None or weight.data.size < size or (weight.data.file and file is None):
                continue
            pieces = _read(file, weight.data.at, size) if file is not None else _slices(data, weight.data.at, size)
            count = math.prod(dim for dim in weight.type.shape or () if isinstance(dim, int))
            figures = figures_of(pieces, weight.type.dtype, count)
            if figures is not None:
                found[weight.value] = figures
    if found:
        capture.add(figures_table(0, found))
    if len(found) < len(weights):
        missing = ", ".join(sorted(beside.missing))
        why = f": there is no {missing} beside it" if missing else ""
        capture.warnings.append(f"{len(weights) - len(found):,} of {len(weights):,} weights have no statistics{why}")


def _slices(data: Pages | Whole, at: int, size: int) -> Iterator[bytes]:
    for first in range(at, at + size, _PIECE):
        yield data[first : min(first + _PIECE, at + size)]


def _read(file: BinaryIO, at: int, size: int) -> Iterator[bytes]:
    file.seek(at)
    while size > 0 and (piece := file.read(min(size, _PIECE))):
        size -= len(piece)
        yield piece


class _Beside:
    """Files in the folder of the model, as it names them; no others."""

    def __init__(self, source: Source, stack: ExitStack) -> None:
        self._folder = source.path.parent if source.path is not None and source.data is None else None
        self._stack = stack
        self._open: dict[str, BinaryIO | None] = {}
        self.missing: set[str] = set()

    def open(self, name: str) -> BinaryIO | None:
        if name not in self._open:
            self._open[name] = self._found(name)
            if self._open[name] is None:
                self.missing.add(name[:100])
        return self._open[name]

    def _found(self, name: str) -> BinaryIO | None:
        path = PurePosixPath(name)
        if self._folder is None or path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            return None
        folder, place = self._folder.resolve(), Path(self._folder, path)
        if not place.is_file() or folder not in place.resolve().parents:
            return None
        return self._stack.enter_context(Source.of(place).open())
