"""What torch.compile did: `TORCH_TRACE` logs.

`TORCH_TRACE=folder python train.py` makes torch write every graph on the way from Dynamo to Inductor's kernels into one
log for each rank. The text is taken apart and never executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Capture, Origin, Pools, Table, column
from opscope.ir.columns import frozen
from opscope.ir.facts import BREAKS, RECOMPILES, Fact
from opscope.readers.source import Options, Source
from opscope.readers.torch.archive import reading

from .log import CompileId, Log, parse
from .stages import Compilation, Stages

NAME = "torch-trace"
_HEAD = re.compile(rb"^(?:[VDIWEF]\d{4} [0-9:.]+ +\d+ [^\]\n]{1,400}\] )?\{\"")
_KEYS = (
    b'"chromium_event"', b'"str": [', b'"dynamo_start"', b'"torch_version"', b'"compilation_metrics"', b'"artifact"',
    b'"describe_',
)  # fmt: skip
_LARGEST = 1 << 31
_WHERE = re.compile(r" at (.+):(\d{1,9})$")


def match(source: Source) -> bool:
    head = source.head
    return _HEAD.match(head) is not None and b"] {" in head[:600] and any(key in head for key in _KEYS)


def read(source: Source, options: Options) -> Capture:
    return reading(source, "not a TORCH_TRACE log", lambda: _read(source))


def _read(source: Source) -> Capture:
    if source.size > _LARGEST:
        raise BadInput(f"{source.size:,} bytes; {_LARGEST:,} are the most")
    with source.open() as file:
        return capture_of(file)


def capture_of(lines: Iterable[bytes], origin: Origin | None = None) -> Capture:
    """What the lines of a log say. Live capture hands over the same lines, from its own process."""
    log = parse(lines)
    compilations = _compilations(log)
    compiled = [entry for entry in compilations if entry.texts or entry.parts]
    if not compiled:
        raise BadInput(f"it has no graph ({len(log.entries):,} entries): nothing was compiled while it was written")
    capture = Capture(Pools(), origin=origin or Origin(format=NAME, framework="torch", how="compile"))
    stages = Stages(capture, suffixes=len(compiled) > 1)
    for entry in compiled:
        stages.add(entry)
    breaks = [_break(text) for entry in compilations for text in entry.breaks]
    again = [(str(entry.id), entry.why) for entry in compilations if entry.id.compile > 0]
    _add(
        capture,
        BREAKS,
        {"file": [b[0] for b in breaks], "line": [b[1] for b in breaks], "reason": [b[2] for b in breaks]},
    )
    _add(capture, RECOMPILES, {"frame": [frame for frame, _ in again], "reason": [why for _, why in again]})
    capture.warnings += [f"{file}:{line}: graph break: {reason}" for file, line, reason in breaks]
    capture.warnings += [
        f"frame {frame} was compiled again: {why or 'the log does not say why'}" for frame, why in again
    ]
    if log.damaged:
        capture.warnings.append(f"{log.damaged:,} lines of the log are damaged and were left out")
    return capture


def _compilations(log: Log) -> list[Compilation]:
    """By frame and compilation. Of several tries at one, the last that gave a graph counts."""
    found: dict[tuple[int, int, int], Compilation] = {}
    for entry in log.entries:
        if entry.id is None:
            continue
        key = (entry.id.frame, entry.id.compile, entry.id.autograd)
        known = found.get(key)
        if known is None or (entry.id.attempt > known.id.attempt and not known.parts):
            fresh = Compilation(CompileId(*entry.id))
            if known is not None:
                fresh.breaks, fresh.sources = known.breaks, known.sources
            known = found[key] = fresh
        known.add(entry)
    return list(found.values())


def _break(text: str) -> tuple[str, int, str]:
    """File, line and reason. The reason follows the sentence that says what Dynamo was doing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    where = _WHERE.search(lines[0]) if lines else None
    first = next((line.partition(":")[2].strip() for line in lines if line.startswith("Graph Break Reason:")), "")
    at = next((i for i, line in enumerate(lines) if line.startswith("Graph Break Reason:")), 0)
    after = lines[at + 1] if at + 1 < len(lines) and not lines[at + 1].startswith(("User code", "File ")) else ""
    reason = after if first.endswith((":", "encountered")) or first.startswith("Encountered graph break") else first
    return (where[1], int(where[2]), reason or first) if where else ("", 0, reason or first or "not given")


def _add(capture: Capture, fact: Fact, columns: dict[str, list[Any]]) -> None:
    count = len(next(iter(columns.values())))
    if count:
        capture.add(
            Table(0, "row", frozen(range(count)), {k: column(_values(v)) for k, v in columns.items()}, fact.name)
        )


def _values(values: list[Any]) -> Any:
    return np.array(values, dtype=np.int64) if values and isinstance(values[0], int) else values
