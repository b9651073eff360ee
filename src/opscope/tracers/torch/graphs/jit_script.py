"""how="jit-script": TorchScript by reading the source, with its branches and loops."""

from __future__ import annotations

from types import FrameType
from typing import Any

from opscope.ir import Capture
from opscope.tracers.torch.private import the_torch

from .errors import cannot
from .guard import unchanged
from .script import of_script


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None) -> Capture:
    """The arguments are not needed: nothing is run."""
    torch = the_torch()

    with unchanged(target):
        try:
            script = torch.jit.script(target)
        except Exception as error:
            raise cannot("jit-script", error, caller) from error
    return of_script(script, how="jit-script")
