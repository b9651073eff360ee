"""A folder of Parquet files, one per table; rows of all stages, with a column `stage`."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar, cast

import arro3.core as ac
import numpy as np

from opscope.files import replacing_folder
from opscope.ir import Capture

from . import frames
from .registry import Options

Result = TypeVar("Result")


def export(capture: Capture, path: Path, options: Options) -> None:
    stages = [capture.stage(options.stage)] if options.stage is not None else capture.stages
    with replacing_folder(path) as folder:
        for name in frames.names(capture):
            if name in capture.tables:
                owner = capture.stages[capture.tables[name].stage]
                if owner in stages:
                    _write(folder, name, iter([(owner.name, frames.frame(capture, name))]))
            else:
                _write(folder, name, ((stage.name, frames.frame(capture, name, stage.name)) for stage in stages))


_TOGETHER = 64  # stages


def _write(folder: Path, name: str, parts: Iterator[tuple[str, frames.Frame]]) -> None:
    from arro3.io import write_parquet

    tables: list[ac.Table] = []
    while begun := list(islice(parts, _TOGETHER)):
        names, held = zip(*begun, strict=True)
        count = [frames.length(frame) for frame in held]
        rows = frames.Coded(np.repeat(np.arange(len(held), dtype=np.int32), count), names)
        tables.append(frames.to_arrow({"stage": rows, **frames.joined(held)}))
    if not tables:
        return
    file = folder / (re.sub(r"[^\w.-]+", "_", name) + ".parquet")
    batches = [batch for table in tables for batch in _plain(table).to_batches()]
    with file.open("wb") as out:
        held = _Held(out)
        write_parquet(
            ac.Table.from_batches(batches, schema=_plain(tables[0]).schema),
            cast("IO[bytes]", held),
            compression="snappy",
        )
        held.flush()
        if held.error is not None:
            raise held.error


class _Held(io.BufferedIOBase):
    """A file whose errors wait: the writer in native code would panic, with its own words on stderr."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return self._try(lambda: self._file.write(data), len(data))

    def flush(self) -> None:
        self._try(self._file.flush, None)

    def _try(self, act: Callable[[], Result], otherwise: Result) -> Result:
        if self.error is None:
            try:
                return act()
            except OSError as error:
                self.error = error
        return otherwise


def _plain(table: ac.Table) -> ac.Table:
    """Text columns as plain text: whether a column is worth a dictionary differs from stage to stage."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        columns[name] = column.cast(ac.DataType.utf8()) if ac.DataType.is_dictionary(column.type) else column
    return ac.Table.from_pydict(columns)
