"""Measured time on the graph of a training step: which module and which line took it.

python examples/torch_profile.py        (needs torch; on a GPU it measures kernels, otherwise calls on the CPU)
"""

from __future__ import annotations

import torch
from torch import nn

import opscope

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(64, 256, device=device)

with opscope.record(model, optimizer=optimizer, times="device") as cap:
    for _ in range(4):  # the first one warms up
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

print(cap.stats())
print(*cap.warnings, sep="\n")
cap.save("measured.opscope")  # opscope view measured.opscope
