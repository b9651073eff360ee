"""opscope.open: any known file or folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from opscope.capture import Capture

StrPath = str | os.PathLike[str]


def open(
    path: StrPath,
    *,
    sources: Iterable[StrPath] = (),
    profile: StrPath | None = None,
    sizes: Mapping[str, int] | None = None,
    weights: bool = False,
) -> Capture:
    """Open a file that opscope knows. The format is recognised by its content.

    `sources` are folders in which to look for the Python files and the generated code that the capture
    names; their text goes into the capture. `profile` is a measured profile of the same program: a Chrome trace of
    `torch.profiler` (see `Capture.join`), or a report of Jittor's `jt.profile_scope`, as JSON. `sizes` are numbers
    for open sizes: `{"s77": 4}`, see `Capture.bind`. `weights=True` reads the weights in the file, a piece at a time, and
    keeps statistics of each (NaN, infinite and zero numbers, min, max, mean, rms, how the exponents are distributed).
    """
    from opscope.ir.facts import VALUES
    from opscope.readers import profiles, registry
    from opscope.readers.source import Options, Source
    from opscope.sources import embed, in_folders

    folders = [Path(folder) for folder in sources]
    report = Path(profile) if profile is not None else None
    held = profiles.allocations_of(report) if report is not None else None
    measured = profiles.profile_of(report) if report is not None and held is None else None
    is_joined = held is not None or measured is not None
    capture = registry.read(Source.of(path), Options(profile=None if is_joined else report, weights=weights))
    if weights and not any(capture.facts(VALUES.name, stage) for stage in range(len(capture.stages))):
        capture.warnings.append(f"no statistics of weights: {capture.origin.format} files hold none that can be read")
    if held is not None:
        from opscope.analysis.joining.by_size import join_memory

        capture = join_memory(capture, held, str(profile))
    elif measured is not None:
        from opscope.analysis.joining import join

        capture = join(capture, measured, str(profile))
    elif report is not None and capture.origin.format not in profiles.REPORTED:
        raise profiles.not_taken(report, capture.origin.format)
    if folders:
        embed(capture, in_folders(folders))
    return Capture.of(capture).bind(sizes or {})


def from_bytes(name: str, data: bytes) -> Capture:
    """Open a file of which there are only the bytes: one that was dropped on the page."""
    from opscope.readers import registry
    from opscope.readers.source import Options, Source

    return Capture.of(registry.read(Source(name, data=data), Options()))
