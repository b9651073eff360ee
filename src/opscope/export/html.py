"""One HTML file with the page and the capture in it: works from disk, offline, with no server."""

from __future__ import annotations

from pathlib import Path

from opscope.analysis.annotate import annotate
from opscope.analysis.diff.side_by_side import side_by_side
from opscope.files import replacing
from opscope.ir import Capture, Stage

from . import page
from .registry import Options


def export(capture: Capture, path: Path, options: Options) -> None:
    """The whole capture: stage and depth do not apply, the reader chooses them in the page."""
    text = render(capture, path.stem)
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def render(capture: Capture, name: str) -> str:
    return page.one_file([(name, page.capture_bytes(annotate(capture)))], f"{name} – opscope")


def render_compared(before: tuple[Capture, Stage, str], after: tuple[Capture, Stage, str], name: str) -> str:
    """The page with two graphs, each given with its capture and the name to show, and what is different."""
    return render(side_by_side(before, after), name)
