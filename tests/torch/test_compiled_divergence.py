"""Eager against compiled: a correct compiler is told correct, one with a planted fault is found at its operator."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from compiled_faults import Faulty
from torch import nn

import opscope


class Net(nn.Module):
    """A convolution, normalisations, and an activation that faults can change."""

    def __init__(self, activation: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.first, self.second, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        self.before, self.after = nn.LayerNorm(8), nn.LayerNorm(16)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.activation(self.norm(self.conv(x))).mean((2, 3))
        x = self.activation(self.first(self.before(x)))
        return self.last(self.after(x + self.activation(self.second(x))))


def programs(model: nn.Module) -> Callable[[Any], Callable[[], None]]:
    torch.manual_seed(1)
    x, y = torch.randn(4, 3, 6, 6), torch.tensor([0, 1, 2, 3])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state = copy.deepcopy(model.state_dict())

    def program(called: Any) -> Callable[[], None]:
        def step() -> None:
            with torch.no_grad():
                model.load_state_dict(state)
            model.zero_grad()
            F.cross_entropy(called(x), y).backward()
            optimizer.step()

        return step

    return program


def compared(activation: Callable[[torch.Tensor], torch.Tensor], compiler: Faulty) -> Any:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = Net(activation)
    program = programs(model)
    compiled = torch.compile(model, backend=compiler.backend)
    program(compiled)()
    return opscope.diverge(program(model), program(compiled))


@pytest.mark.parametrize("activation", [F.gelu, F.relu])
def test_a_training_step_that_was_compiled_right_agrees(activation: Any) -> None:
    found = compared(activation, Faulty())
    assert found.first is None, found
    assert found.matched > 0.9 * found.compared


@pytest.mark.parametrize(
    ("fault", "activation", "op"),
    [
        ("gelu is silu", F.gelu, "aten.gelu"),
        ("relu leaks", F.relu, "aten.relu"),
        ("epsilon of a layer norm", F.gelu, "aten.native_layer_norm"),
        ("tanh is a sigmoid", torch.tanh, "aten.tanh"),
    ],
)
def test_a_fault_of_the_compiler_is_found_at_its_operator(fault: str, activation: Any, op: str) -> None:
    compiler = Faulty(fault)
    found = compared(activation, compiler)
    assert compiler.hit
    assert found.first is not None
    assert found.first.a is not None
    assert found.first.a.op == op, found
    assert found.first.a.phase == "forward"
