"""Measured profiles of any framework: the formats that can be joined to the graph of another capture."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir import Capture
from opscope.ir.allocations import Allocations

from .registry import BUILT_IN, Reader, read
from .source import Options, Source

PROFILES = ("kineto", "nsight")
SNAPSHOTS = "opscope.readers.torch.snapshot"
# Readers that take a report of their own framework's profiler (`Options.profile`).
REPORTED = ("jittor-trace", "hidet", "hidet-output", "onnx", "xla")


def profile_of(path: Path) -> Capture | None:
    """What a profile holds, as a capture of its own; None: it is none of these formats."""
    source = Source.of(path)
    opened = source.unpacked()
    for name in PROFILES:
        if cast("Reader", importlib.import_module(BUILT_IN[name])).match(opened):
            return read(source, Options())
    return None


def allocations_of(path: Path) -> Allocations | None:
    """The history of a device's memory, where a file is a snapshot of it."""
    reader: Any = importlib.import_module(SNAPSHOTS)
    source = Source.of(path).unpacked()
    return reader.allocations(source) if reader.match(source) else None


def not_taken(path: Path, format: str) -> BadInput:
    """What to say of a profile that a capture of this format has no use for."""
    return BadInput(
        f"{path}: not a profile that can be joined to this capture ({format}): opscope reads Chrome traces of "
        "torch.profiler (Kineto), SQLite exports of Nsight Systems and snapshots of torch.cuda.memory. Jittor's, "
        "Hidet's and ONNX Runtime's reports belong to captures of these frameworks"
    )
