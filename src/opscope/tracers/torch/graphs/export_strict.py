"""how="export-strict": torch.export through Dynamo, which reads the Python bytecode instead of running it."""

from __future__ import annotations

from types import FrameType
from typing import Any

from opscope.ir import Capture

from . import export


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None) -> Capture:
    return export.capture(target, args, kwargs, caller=caller, strict=True, how="export-strict")
