"""The .opscope file."""

from __future__ import annotations

from pathlib import Path

from opscope import wire
from opscope.analysis.annotate import annotate
from opscope.files import replacing
from opscope.ir import Capture

from .registry import Options


def export(capture: Capture, path: Path, options: Options) -> None:
    """The whole capture, annotated: stage and depth do not apply."""
    with replacing(path) as file:
        wire.write(annotate(capture), file)
