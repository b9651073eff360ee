"""Two planted faults: a NaN, traced to where it was born, and a port that computes something else.

python examples/pytorch_numbers.py
"""

from __future__ import annotations

import copy

import torch
from torch import nn

import opscope


class Direction(nn.Module):
    """x / |x|, which is NaN where x is zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.norm(dim=-1, keepdim=True)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), Direction(), nn.Linear(8, 2))
    with torch.no_grad():
        model[0].bias.fill_(-10.0)  # nothing gets through the ReLU
    with opscope.record(model, values="stats") as capture:
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
    print("loss", loss.item())
    for origin in capture.origins():
        print(origin)

    right = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()
    port = copy.deepcopy(right)
    port[1] = nn.SiLU()
    print(opscope.diverge(right, port, torch.randn(4, 8)))


if __name__ == "__main__":
    main()
