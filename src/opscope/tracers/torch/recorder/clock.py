"""The clock of `times=True`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def clock(torch: Any) -> Callable[[], float]:
    """Seconds. On a GPU, work that was launched is waited for, so that the time of an operator is that of its kernels
    and not of their launch."""
    cuda = torch.cuda
    if not cuda.is_available():
        return time.perf_counter

    def after_all_work() -> float:
        # Waiting while a CUDA graph is captured would break the capture; before the first use there is no work.
        if cuda.is_initialized() and not cuda.is_current_stream_capturing():
            cuda.synchronize()
        return time.perf_counter()

    return after_all_work
