"""Where the captures of this package come from."""

from __future__ import annotations

from opscope.ir.capture import Origin
from opscope.tracers.torch.private import the_torch


def origin(how: str) -> Origin:
    torch = the_torch()

    return Origin(format="live", framework="torch", version=str(torch.__version__), how=how)
