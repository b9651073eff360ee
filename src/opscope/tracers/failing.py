"""An exception of the user's program: where it happened, and what to say of it."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

from . import registry
from .frames import OWN

_LONGEST = 500


def ended_by(error: BaseException, where: str) -> str:
    """The warning of a capture that an exception ended. `where` is that of `report_of`."""
    text = " ".join(str(error).split())[:_LONGEST]
    return (
        f"{type(error).__name__}{where} ended the program: {text or 'no text'}. What would have come after is missing"
    )


def report_of(error: BaseException) -> tuple[str, str]:
    """The traceback without opscope's own part, and where in the user's code it happened (` at train.py:12`)."""
    start: TracebackType | None = error.__traceback__
    while start is not None and start.tb_frame.f_code.co_filename.startswith((OWN, "<frozen ")):
        start = start.tb_next
    report = traceback.TracebackException(type(error), error, start)
    frames = [frame for frame in report.stack if not frame.filename.startswith(OWN)]
    report.stack = traceback.StackSummary.from_list(frames)
    files = [getattr(sys.modules.get(name), "__file__", None) for name in registry.FRAMEWORKS]
    folders = tuple(f"{Path(file).parent}{os.sep}" for file in files if file)
    users = [frame for frame in frames if not frame.filename.startswith(folders)] or frames
    return "".join(report.format()), f" at {users[-1].filename}:{users[-1].lineno}" if users else ""
