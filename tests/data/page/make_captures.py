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


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Blocks(nn.Module):
    """Blocks that repeat, positions, a head that shares the weight of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.place = nn.Embedding(6, 4)
        self.h = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        at = torch.arange(ids.shape[1]) + 0
        at = at.clamp(max=5)
        x = self.embed(ids) + self.place(at)
        for block in self.h:
            x = block(x)
        return self.head(x)


class Skips(nn.Module):
    """Lists whose modules run in turns with other operators, and a layer that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.up = nn.ModuleList(nn.Linear(8, 4) for _ in range(3))
        self.down[0].requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for layer in self.down:
            x = layer(x).relu()
            kept.append(x)
        for layer in self.up:
            x = layer(torch.cat([x, kept.pop()], 1)).relu()
        return x


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
    blocks = Blocks()
    ids = torch.randint(0, 10, (2, 5))
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1, foreach=False)
    with opscope.record(blocks, optimizer=optimizer) as capture:
        nn.functional.cross_entropy(blocks(ids).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
    capture.save(HERE / "blocks.opscope")
    skips = Skips()
    optimizer = torch.optim.SGD([p for p in skips.parameters() if p.requires_grad], lr=0.1, foreach=False)
    with opscope.record(skips, optimizer=optimizer) as capture:
        for _ in range(2):
            skips(torch.randn(2, 4)).square().mean().backward()
        optimizer.step()
    capture.save(HERE / "turns.opscope")
    from opscope.export.page import capture_bytes  # here: the line numbers above are in tests

    passes = opscope.open(HERE.parent / "hidet" / "0.2.1" / "outs")
    (HERE / "passes.opscope").write_bytes(capture_bytes(passes, costs=False))  # with what each pass changed


if __name__ == "__main__":
    main()
