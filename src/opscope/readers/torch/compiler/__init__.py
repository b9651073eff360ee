"""What torch.compile did: `TORCH_TRACE` logs.

`TORCH_TRACE=folder python train.py` makes torch write every graph on the way from Dynamo to Inductor's kernels into one
log for each rank. The text is taken apart and never executed.
"""

from __future__ import annotations

import re
from collections import Counter

from opscope.errors import BadInput
from opscope.ir import Capture, Origin, Pools
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


def match(source: Source) -> bool:
    head = source.head
    return _HEAD.match(head) is not None and b"] {" in head[:600] and any(key in head for key in _KEYS)


def read(source: Source, options: Options) -> Capture:
    return reading(source, "not a TORCH_TRACE log", lambda: _read(source))


def _read(source: Source) -> Capture:
    if source.size > _LARGEST:
        raise BadInput(f"{source.size:,} bytes; {_LARGEST:,} are the most")
    with source.open() as file:
        log = parse(file)
    compilations = _compilations(log)
    compiled = [entry for entry in compilations if entry.texts or entry.parts]
    if not compiled:
        raise BadInput(f"it has no graph ({len(log.entries):,} entries): nothing was compiled while it was written")
    capture = Capture(Pools(), origin=Origin(format=NAME, framework="torch", how="compile"))
    stages = Stages(capture, suffixes=len(compiled) > 1)
    for entry in compiled:
        stages.add(entry)
    capture.warnings += [f"graph break in frame {entry.id}: {_reason(text)}" for entry in compilations for text in entry.breaks]
    frames = Counter(entry.id.frame for entry in compiled)
    capture.warnings += [f"frame {frame} was compiled {count} times" for frame, count in frames.items() if count > 1]
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


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    where = lines[0].removeprefix("Graph break in user code at ") if lines else ""
    why = next((line for line in lines[1:] if not line.startswith("Graph Break Reason")), "")
    return f"{where}: {why}" if why else where
