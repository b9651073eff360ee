"""Makes `times_<framework>.opscope` beside it, in the lane of that framework: `python tests/data/page/make_times.py torch`.

A small model runs once with `times=True` (and `values=True`, where the framework can do that): the page's tests read it.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent


def torch() -> None:
    import torch
    from torch import nn

    import opscope

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with opscope.record(model, optimizer=optimizer, times=True, values=True) as capture:
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()
    capture.save(HERE / "times_torch.opscope")


def paddle() -> None:
    import paddle
    from paddle import nn

    import opscope

    paddle.seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    with opscope.record(model, times=True, values=True) as capture:
        model(paddle.randn([32, 64])).sum().backward()
    capture.save(HERE / "times_paddle.opscope")


def jittor() -> None:
    import jittor
    from jittor import nn

    import opscope

    class Net(nn.Module):
        def __init__(self):
            self.first = nn.Linear(16, 32)
            self.last = nn.Linear(32, 4)

        def execute(self, x):
            return self.last(nn.relu(self.first(x)))

    model = Net()
    x = jittor.ones((8, 16)).sync()
    with opscope.record(model, times=True, values=True) as capture:
        model(x).sync()
    capture.save(HERE / "times_jittor.opscope")


def hidet() -> None:
    import hidet
    from hidet.graph import nn

    import opscope

    x = hidet.randn([32, 64], device="cpu")
    model = nn.Sequential(nn.Linear(64, 256), nn.Relu(), nn.Linear(256, 8))
    graph = hidet.trace_from(model(hidet.symbol_like(x)))
    with opscope.record(framework="hidet", times=True, values=True) as capture:
        graph(x)
    capture.save(HERE / "times_hidet.opscope")


def megengine() -> None:
    import megengine
    import numpy as np
    from megengine import functional
    from megengine import module as nn
    from megengine.autodiff import GradManager

    import opscope

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(64, 256)
            self.last = nn.Linear(256, 8)

        def forward(self, x):
            return self.last(functional.relu(self.first(x)))

    model = Net()
    manager = GradManager().attach(model.parameters())
    with opscope.record(model, times=True) as capture, manager:
        manager.backward(model(megengine.Tensor(np.ones((32, 64), dtype="float32"))).sum())
    capture.save(HERE / "times_megengine.opscope")


if __name__ == "__main__":
    {make.__name__: make for make in (torch, paddle, jittor, hidet, megengine)}[sys.argv[1]]()
