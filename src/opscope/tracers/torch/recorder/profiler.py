"""PyTorch's profiler beside the recorder (`times="device"`): every operator is marked with its number while it runs."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture
from opscope.ir.measurements import RUN_MARK
from opscope.readers.source import Options, Source
from opscope.readers.torch import kineto
from opscope.tracers.torch import private

from .log import Log


class Profiler:
    """The profiler of one recording, which runs from now on until `stop`."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        kinds = torch.profiler.ProfilerActivity
        self.is_on = False
        self._profile = torch.profiler.profile(
            activities=[kinds.CPU, kinds.CUDA] if torch.cuda.is_available() else [kinds.CPU], acc_events=True
        )
        try:
            self._profile.__enter__()
        except RuntimeError as error:  # it says so in many lines
            reason = str(error).strip().splitlines()[0]
            raise OpscopeError(f'times="device": the profiler does not start ({reason}). Is another one on?') from None
        self.is_on = True

    def stop(self) -> None:
        if self.is_on:
            self.is_on = False
            if self._torch.cuda.is_available():
                with contextlib.suppress(RuntimeError):  # a failing kernel is the program's own error
                    self._torch.cuda.synchronize()
            self._profile.__exit__(None, None, None)

    def measured(self, warnings: list[str]) -> Capture | None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.json")
            try:
                self._profile.export_chrome_trace(str(path))
                return kineto.read(Source.of(path), Options())
            except (RuntimeError, AssertionError, OpscopeError) as error:
                warnings.append(f"the profiler measured nothing: {' '.join(str(error).split())[:200]}")
                return None


def marked_run(log: Log) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
    """What runs an operator under a mark with the number that it will have."""
    mark = private.profiler_mark()

    def run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with mark(f"{RUN_MARK}{log.count}"):
            return func(*args, **kwargs)

    return run
