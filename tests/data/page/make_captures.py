"""Makes the captures beside it, with torch: `python tests/data/page/make_captures.py`.

The page's tests read them, and have no torch.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

import opscope

HERE = Path(__file__).parent


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sigmoid(self.first(x))
        return self.second(x)


class Breaks(Net):
    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        if x.sum() > 0:
            x = x * 2
        return self.second(x)


class Branches(Net):
    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        if bool(x.sum() > 0):
            x = x.relu()
        else:
            x = x.tanh()
        return self.second(x)


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4)
    opscope.trace(Net(), x, how="joint").save(HERE / "joint.opscope")
    opscope.trace(Breaks(), x, how="dynamo").save(HERE / "breaks.opscope")
    opscope.trace(Branches(), x, how="jit-script").save(HERE / "branches.opscope")
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with opscope.record(net, optimizer=optimizer) as capture:
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
    capture.save(HERE / "step.opscope")
    from opscope.export.page import capture_bytes  # here: the line numbers above are in tests

    passes = opscope.open(HERE.parent / "hidet" / "0.2.1" / "outs")
    (HERE / "passes.opscope").write_bytes(capture_bytes(passes, costs=False))  # with what each pass changed


if __name__ == "__main__":
    main()
