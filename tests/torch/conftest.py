"""Models on real torch. This folder runs in the lane `torch` only; it has no __init__.py, which would make it a
package of the name `torch`."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def left_as_it_was() -> Iterator[None]:
    """Whatever a test captures, opscope leaves torch as it found it."""

    def state():
        from torch.nn.modules import module

        hooks = [len(getattr(module, name) or ()) for name in dir(module) if re.match("_global_.*hooks$", name)]
        return torch.is_grad_enabled(), torch.is_anomaly_enabled(), torch.is_inference_mode_enabled(), hooks, sys.argv

    torch.manual_seed(0)
    random.seed(0)
    before = state()
    yield
    assert state() == before
