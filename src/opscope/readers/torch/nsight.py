"""Profiles of Nsight Systems, exported as SQLite: `nsys export --type sqlite report.nsys-rep`.

NVTX ranges are what ran on the CPU: the operators, where the program ran under `torch.autograd.profiler.emit_nvtx()`,
and otherwise the user's own regions. The device's work is joined to them through the calls that launched it.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opscope.errors import BadInput
from opscope.ir import Capture
from opscope.readers.source import Options, Source

from .kineto import capture_of
from .kineto.columns import Columns

NAME = "nsight"
_HEAD = b"SQLite format 3\0"
_RANGES = (59, 60)  # pushed and popped, started and ended
_OPERATOR = re.compile(r"(\w+::[\w.]+)(?:, seq = (\d+))?(?:, op_id = \d+)?(?:, sizes = (\[.*\]))?")
_CHUNK = 1 << 20
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}

Event = dict[str, Any]


def match(source: Source) -> bool:
    return source.head.startswith(_HEAD)


def read(source: Source, options: Options) -> Capture:
    columns = Columns()
    with tempfile.TemporaryDirectory() as folder:
        # A copy: SQLite takes a path, and may otherwise write its journal beside the user's file.
        path = Path(folder, "report.sqlite")
        with source.open() as file, path.open("wb") as copy:
            while chunk := file.read(_CHUNK):
                copy.write(chunk)
        found = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            found.text_factory = _text
            found.execute("PRAGMA trusted_schema = OFF")
            columns.take(_events(found, source.name))
        except (sqlite3.Error, OverflowError) as error:
            raise BadInput(f"{source.name}: a damaged SQLite file, or not of Nsight Systems: {error}") from None
        finally:
            found.close()
    profile = columns.profile(NAME, {}, [])
    if not len(profile.calls) and not len(profile.work):
        raise BadInput(f"{source.name}: an Nsight Systems export in which nothing ran: no kernels and no NVTX ranges")
    return capture_of(profile)


def _events(found: sqlite3.Connection, name: str) -> Iterator[Event]:
    # Only tables: a view would be a program of the file's own.
    known = {row[0] for row in found.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    tables = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
    if known.isdisjoint(tables):
        raise BadInput(f"{name}: an SQLite file, but no export of Nsight Systems (it has none of {', '.join(tables)})")
    texts: dict[Any, str] = {}
    if "StringIds" in known:
        texts = {row[0]: str(row[1]) for row in found.execute("SELECT id, value FROM StringIds")}
    for table, make in (
        ("CUPTI_ACTIVITY_KIND_KERNEL", _kernel),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", _copy),
        ("CUPTI_ACTIVITY_KIND_MEMSET", _set),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", _launch),
        ("NVTX_EVENTS", _range),
    ):
        if table in known:
            rows = found.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in rows.description]
            for row in rows:
                event = make({name: _told(cell) for name, cell in zip(names, row, strict=True)}, texts)
                if event is not None:
                    yield event


def _told(cell: Any) -> Any:
    """A cell may hold anything, whatever the type of its column. Bytes and what is infinite tell nothing here."""
    if isinstance(cell, bytes) or (isinstance(cell, float) and not math.isfinite(cell)):
        return None
    return cell


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _timed(row: Event, cat: str, name: str, args: Event) -> Event | None:
    start, end = row.get("start"), row.get("end")
    if type(start) is not int or type(end) is not int:
        return None  # a mark, or a range that was still open
    process = row.get("globalPid", 0) if cat in ("kernel", "gpu_memcpy", "gpu_memset") else row.get("globalTid", 0)
    process = process >> 24 if type(process) is int else 0
    where = {"pid": process, "tid": row.get("globalTid", 0)}
    return {"ph": "X", "cat": cat, "name": name, "ts": start / 1e3, "dur": (end - start) / 1e3, **where, "args": args}


def _kernel(row: Event, texts: dict[Any, str]) -> Event | None:
    name = texts.get(row.get("demangledName")) or texts.get(row.get("shortName"), "a kernel without a name")
    grid, block = ([row.get(f"{kind}{axis}") for axis in "XYZ"] for kind in ("grid", "block"))
    registers = row.get("registersPerThread")
    return _timed(row, "kernel", name, {**_where(row), "grid": grid, "block": block, "registers per thread": registers})


def _copy(row: Event, _: dict[Any, str]) -> Event | None:
    return _timed(row, "gpu_memcpy", f"Memcpy {_COPIES.get(row.get('copyKind', 0), '')}".strip(), _where(row))


def _set(row: Event, _: dict[Any, str]) -> Event | None:
    return _timed(row, "gpu_memset", "Memset", _where(row))


def _where(row: Event) -> Event:
    return {
        "correlation": row.get("correlationId"),
        "device": row.get("deviceId"),
        "stream": row.get("streamId"),
        "bytes": row.get("bytes"),
    }


def _launch(row: Event, texts: dict[Any, str]) -> Event | None:
    name = texts.get(row.get("nameId"), "a call of CUDA")
    return _timed(row, "cuda_runtime", name, {"correlation": row.get("correlationId")})


def _range(row: Event, texts: dict[Any, str]) -> Event | None:
    if row.get("eventType") not in _RANGES:
        return None
    text = row.get("text") or texts.get(row.get("textId")) or ""
    found = _OPERATOR.fullmatch(str(text))
    if found is None:
        return _timed(row, "user_annotation", str(text), {})
    args: Event = {"Sequence number": int(found[2])} if found[2] and len(found[2]) < 19 else {}
    if found[3]:
        with contextlib.suppress(ValueError):
            args["Input Dims"] = json.loads(found[3])
    return _timed(row, "cpu_op", found[1], args)
