"""Gradient nodes have costs, the first of a backward pass too."""

from __future__ import annotations

import paddle
import pytest
from paddle import nn

import opscope

MODELS = {
    "one layer": lambda: nn.Linear(4, 4),
    "functions": lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU6(), nn.ELU(), nn.Softplus(), nn.Linear(4, 4)),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_gradient_of_a_common_layer_is_unknown(name: str):
    stats = opscope.trace(MODELS[name](), paddle.randn([2, 4])).stats()
    assert not stats.unknown_ops
    assert not stats.total.at_least
    linears = 1 if name == "one layer" else 2
    # Forward, the gradient of the weight, and that of the input, which the first layer does not need.
    assert stats.total.macs == 2 * 4 * 4 * (3 * linears - 1)


def test_powers_and_roots():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    stats = opscope.trace(lambda x: (x**3).sum() + paddle.rsqrt(x + 1).sum(), x).stats()
    assert not stats.unknown_ops
