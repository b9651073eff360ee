"""torch.compile from the model to its kernels: a training step, and what one careless line does to it.

python examples/torch_compile.py             prints, and writes step.opscope and careless.opscope (one minute)
opscope view step.opscope                    the stages, the kernels by module, and why they are not one
opscope diff step.opscope careless.opscope   which kernel was split, where, and why
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

import opscope


class Block(nn.Module):
    """x + down(gelu(up(norm(x)))); a careless one looks at a number on the way."""

    def __init__(self, width: int, careless: bool) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.careless = careless

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.up(self.norm(x)))
        if self.careless:
            h = torch.sort(h, dim=-1).values  # a call of a library: nothing is fused with it
        return x + self.down(torch.sigmoid(h) * h)


def model(careless: bool = False) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(Block(16, False), Block(16, careless), nn.Linear(16, 4))


def step(net: nn.Module) -> opscope.Capture:
    """One training step of a compiled model, as it ran."""
    compiled = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with opscope.record(net, optimizer=optimizer) as capture:
        loss = F.cross_entropy(compiled(torch.randn(8, 16)), torch.randint(4, (8,)))
        loss.backward()
        optimizer.step()
    return capture


def kernels(capture: opscope.Capture, word: str) -> None:
    """Every launch, with the module and the operators that it computes."""
    for launch in capture.stage(f"kernels {word}").graph.nodes:
        computes = ", ".join(launch.attrs["operators"])
        print(f"  {launch.op:48} {launch.path:24} {computes[:60]}")


def main() -> None:
    capture, careless = step(model()), step(model(careless=True))
    for stage in capture.stages:
        print(f"{stage.name:40} {stage.graph.n_nodes:4} operators")
    print("forward:")
    kernels(capture, "forward")
    print("backward:")
    kernels(capture, "backward")
    capture.save("step.opscope")
    careless.save("careless.opscope")


if __name__ == "__main__":
    main()
