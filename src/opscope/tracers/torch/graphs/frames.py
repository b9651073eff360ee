"""Lines of the user's code out of the stack texts that torch keeps."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from opscope.ir import Pools
from opscope.ir.pools import Frame
from opscope.tracers.frames import OWN
from opscope.tracers.torch.private import the_torch

_PYTHON = re.compile(r'File "(.+?)", line (\d+)(?:, in ([^\n]+))?')
_TRACED = re.compile(r"^(.+)\((\d+)\): (.*)$", re.MULTILINE)
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")  # what follows a graph break, as Dynamo calls it
_STDLIB = sysconfig.get_path("stdlib") + os.sep


def python_frames(text: str) -> list[Frame]:
    """`File "x.py", line 3, in f`, outermost first, as Python and fx write it. TorchScript leaves the function out."""
    return [
        Frame(file, int(line), _RESUMED.sub(r"\1", function or "")) for file, line, function in _PYTHON.findall(text)
    ]


def traced_frames(text: str) -> list[Frame]:
    """`x.py(3): f`, innermost first, as torch.jit.trace keeps it."""
    return [Frame(file, int(line), function) for file, line, function in _TRACED.findall(text)][::-1]


def users_frames(frames: Sequence[Frame]) -> list[Frame]:
    """Without torch's own frames and without those outside the captured call. A model of torch's own has only
    torch's frames: they are better than none."""
    last = max((i for i, frame in enumerate(frames) if frame.file.startswith(OWN)), default=-1)
    inside = frames[last + 1 :]
    return [frame for frame in inside if is_users(frame.file)] or [f for f in inside if not f.file.startswith("<")]


def stack_id(pools: Pools, frames: Iterable[Frame]) -> int:
    return pools.stack(users_frames(list(frames)))


def is_users(file: str) -> bool:
    """Neither torch's, nor opscope's, nor Python's own; other packages are the user's choice and count as his."""
    if not file or file.startswith(("<", OWN, torch_folder())):
        return False
    return not file.startswith(_STDLIB) or "-packages" in file


@lru_cache(maxsize=1)
def torch_folder() -> str:
    torch = the_torch()

    return str(Path(torch.__file__).parent) + os.sep
