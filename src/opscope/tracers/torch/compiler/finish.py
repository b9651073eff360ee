"""The capture of what was watched."""

from __future__ import annotations

import os

from opscope.errors import BadInput
from opscope.ir import Capture, Origin
from opscope.readers.torch.compiler import capture_of
from opscope.sources import embed, exact
from opscope.tracers.torch.private import the_torch

from .watch import Watch


def finished(watch: Watch, origin: Origin) -> Capture | None:
    """What the records say; None where nothing was compiled."""
    try:
        capture = capture_of(watch.stream.lines(), origin)
    except BadInput:
        return None
    capture.warnings += [f"not everything could be watched: {said}" for said in watch.trouble]
    root = os.path.dirname(the_torch().__file__) + os.sep
    embed(capture, lambda path: None if path.startswith(root) else exact(path))
    return capture
