"""TensorBoard: a log folder whose graph page shows the capture. Writing it needs neither TensorBoard nor TensorFlow.

    tensorboard --logdir DIR

A capture with several stages becomes as many runs, in folders below DIR.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from opscope.analysis.times import node_times
from opscope.analysis.values import value_figures
from opscope.errors import OpscopeError
from opscope.export.registry import Options
from opscope.files import replacing
from opscope.ir import Capture, Stage

from .graphdef import GraphDef
from .names import safe
from .wire import double, head, message, record, text

_TAG = "opscope"
_LARGEST = 2**31 - 1  # protobuf's readers take no message that is longer


def export(capture: Capture, path: Path, options: Options) -> None:
    """Write one event file for each stage, or for the one that is named; `path` is the log folder."""
    stages = capture.stages if options.stage is None else [capture.stage(options.stage)]
    if not stages:
        capture.stage()  # says why there is none
    known: dict[Any, bytes] = {}
    for stage, folder in zip(stages, _folders(path, stages), strict=True):
        write(capture, stage, folder, known)


def write(capture: Capture, stage: Stage, folder: Path, known: dict[Any, bytes] | None = None) -> Path:
    """One stage as an event file in this folder. `known` is for all stages of one capture: see GraphDef."""
    number = capture.stages.index(stage)
    graph = GraphDef(stage.graph, capture.origin.framework, value_figures(capture, number), known)
    now = time.time()
    pieces = _checked(graph.encoded(), stage)
    records = [_event(now, text(3, "brain.Event:2")), _event(now, head(4, sum(map(len, pieces))), *pieces)]
    pieces.clear()  # hundreds of megabytes, which are in the record now
    times = node_times(capture, number)
    if times is not None:
        measured = graph.run_metadata(times.seconds * 1e9, times.known)
        records.append(_event(now, message(8, text(1, _TAG), message(2, measured))))
    return save(folder, now, records)


def save(folder: Path, now: float, records: list[bytes]) -> Path:
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OpscopeError(f"{folder}: cannot write here ({error.strerror})") from None
    path = folder / f"events.out.tfevents.{int(now)}.opscope"
    try:
        with replacing(path) as file:
            for data in records:
                file.writelines(record(data))
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise
    # TensorBoard shows the last graph that it finds in a folder: an older one of ours is replaced.
    for old in () if is_new else folder.glob("events.out.tfevents.*.opscope"):
        if old.name < path.name:
            old.unlink(missing_ok=True)
    return path


def _event(now: float, *parts: bytes) -> bytes:
    return b"".join((double(1, now), *parts))


def _checked(encoded: list[bytes], stage: Stage) -> list[bytes]:
    size = sum(map(len, encoded))
    if size > _LARGEST:
        raise OpscopeError(
            f"the graph of the stage {stage.name!r} takes {size:,} bytes as a GraphDef, and TensorBoard reads "
            f"at most {_LARGEST:,}: view it with `opscope view`"
        )
    return encoded


def _folders(path: Path, stages: list[Stage]) -> list[Path]:
    """The log folder itself for one stage; for several one below it for each."""
    if len(stages) == 1:
        return [path]
    found: dict[str, Path] = {}
    for i, stage in enumerate(stages):
        name = safe(stage.name)
        while name in found:
            name = f"{name}_{i}"
        found[name] = path / name
    return list(found.values())
