"""What torch.compile did: `TORCH_TRACE` logs, `torch_compile_debug` folders, Inductor's output codes.

`TORCH_TRACE=folder python train.py` makes torch write every graph on the way from Dynamo to Inductor's kernels into one
log for each rank. `TORCH_COMPILE_DEBUG=1` makes Inductor write a folder for each graph. The text is taken apart and
never executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from opscope.errors import BadInput
from opscope.ir import Capture, Origin, Pools
from opscope.readers.source import Options, Source
from opscope.readers.torch.archive import reading

from . import files
from .files import Found
from .outcome import add_outcome
from .stages import Stages

NAME = "torch-trace"
_HEAD = re.compile(rb"^(?:[VDIWEF]\d{4} [0-9:.]+ +\d+ [^\]\n]{1,400}\] )?\{\"")
_KEYS = (
    b'"chromium_event"', b'"str": [', b'"dynamo_start"', b'"torch_version"', b'"compilation_metrics"', b'"artifact"',
    b'"describe_',
)  # fmt: skip
_LARGEST = 1 << 31


def match(source: Source) -> bool:
    return (
        _is_log(source)
        or files.is_output_code(source)
        or files.is_folder_of_logs(source)
        or files.is_debug_folder(source)
    )


def _is_log(source: Source) -> bool:
    head = source.head
    return _HEAD.match(head) is not None and b"] {" in head[:600] and any(key in head for key in _KEYS)


def read(source: Source, options: Options) -> Capture:
    if source.is_folder:
        if files.is_folder_of_logs(source):
            return reading(source, "not a folder of TORCH_TRACE logs", lambda: _capture(files.of_folder(source)))
        return reading(source, "not a torch_compile_debug folder", lambda: _capture(files.of_debug_folder(source)))
    if not _is_log(source):
        return reading(source, "not an output code of Inductor", lambda: _capture(files.of_output_code(source)))
    return reading(source, "not a TORCH_TRACE log", lambda: _read_log(source))


def _read_log(source: Source) -> Capture:
    if source.size > _LARGEST:
        raise BadInput(f"{source.size:,} bytes; {_LARGEST:,} are the most")
    with source.open() as file:
        return capture_of(file)


def capture_of(lines: Iterable[bytes], origin: Origin | None = None) -> Capture:
    """What the lines of a log say. Live capture hands over the same lines, from its own process."""
    return _capture(files.of_log(lines), origin)


def _capture(found: Found, origin: Origin | None = None) -> Capture:
    compiled = [entry for entry in found.compilations if not entry.is_empty]
    if not compiled:
        raise BadInput(f"it has no graph ({found.entries:,} entries): nothing was compiled while it was written")
    version = next((str(m["pytorch_version"]) for e in compiled for m in e.metrics if m.get("pytorch_version")), "")
    capture = Capture(Pools(), origin=origin or Origin(NAME, "torch", version, how="compile"))
    stages = Stages(capture, suffixes=len(compiled) > 1)
    for entry in compiled:
        entry.name_models()
        stages.classes.update(entry.classes)
    for entry in compiled:
        stages.add(entry)
    if not capture.stages:
        raise BadInput(
            "none of its graphs can be read: it may be damaged, or of a version that prints them in another way"
        )
    add_outcome(capture, found.compilations, suffixes=len(compiled) > 1)
    capture.warnings += found.warnings
    return capture
