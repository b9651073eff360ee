"""The numbers of Paddle's tensors, and the clock of `times=True`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import private


def numbers_of(tensor: Any) -> Any:
    """As a numpy array; None where they cannot be read (sparse rows, no memory)."""
    try:
        if str(tensor.dtype).endswith(("bfloat16", "float8_e4m3fn", "float8_e5m2")):
            tensor = tensor.detach().astype("float32")
        return np.asarray(tensor.numpy())
    except Exception:
        return None


def clock() -> Callable[[], float]:
    """Seconds. On a GPU, work that was launched is waited for; on a CPU there is none left to wait for."""
    paddle = private.the_paddle()
    if not str(paddle.device.get_device()).startswith("gpu"):
        return time.perf_counter

    def after_all_work() -> float:
        paddle.device.synchronize()
        return time.perf_counter()

    return after_all_work
