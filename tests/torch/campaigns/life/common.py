"""What all scenarios share: how one is declared, and the small models in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Scenario = Callable[[], Any]
SCENARIOS: dict[str, tuple[Scenario, int | None]] = {}


def scenario(macs: int | None = None) -> Callable[[Scenario], Scenario]:
    def keep(run: Scenario) -> Scenario:
        SCENARIOS[run.__name__] = run, macs
        return run

    return keep


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))  # 192 products a row


def batch() -> Tensor:
    return torch.randn(4, 8)


def state(*modules: nn.Module) -> list[Any]:
    return [(t.detach().clone(), t.grad) for m in modules for t in [*m.parameters(), *m.buffers()]]


def trained(model: nn.Module, loss: Callable[[], Tensor], optimizer: Any = None, steps: int = 2) -> list[Any]:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return [losses, state(model)]
