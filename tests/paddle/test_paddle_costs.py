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


class Recurrent(nn.Layer):
    def __init__(self, cell: str, **options: object) -> None:
        super().__init__()
        self.cell = getattr(nn, cell)(8, 16, **options)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.cell(x)[0]


@pytest.mark.parametrize(("cell", "gates"), [("LSTM", 4), ("GRU", 3), ("SimpleRNN", 1)])
@pytest.mark.parametrize("wants_input", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
def test_recurrent_layers_count_both_ways(cell: str, gates: int, wants_input: bool, directions: int):
    x = paddle.randn([2, 5, 8])
    x.stop_gradient = not wants_input
    model = Recurrent(cell, num_layers=2, direction="bidirect" if directions == 2 else "forward")
    stats = opscope.trace(model, x).stats()
    assert not stats.unknown_ops
    first, rest, hidden = gates * 16 * 8, gates * 16 * 16 * directions, gates * 16 * 16
    # Ten samples in five steps: forward, the gradients of weights, and of what the weights are multiplied with.
    forward = directions * (first + rest + 2 * hidden)
    assert stats.total.macs == 10 * (3 * forward - (0 if wants_input else directions * first))


def test_a_transposed_convolution_counts_both_ways():
    x = paddle.randn([2, 4, 6, 6])
    x.stop_gradient = False
    stats = opscope.trace(nn.Conv2DTranspose(4, 3, 3), x).stats()
    assert not stats.unknown_ops
    assert stats.total.macs == 3 * (2 * 4 * 6 * 6) * 3 * 3 * 3


def test_gradients_of_gradients_have_costs():
    x = paddle.randn([3, 4])
    x.stop_gradient = False
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    with opscope.record(model) as capture:
        (grad,) = paddle.grad(model(x).sum(), x, create_graph=True)
        (grad * grad).sum().backward()
    assert any("DoubleGradNode" in node.op for node in capture.graph.nodes)
    stats = capture.stats()
    assert not stats.unknown_ops
    first, last = 3 * 4 * 8, 3 * 8
    # Forward; both gradients of both products; then, of the gradient of x, those of what it was multiplied from:
    # two products for each layer, and the first layer's ordinary gradients once more.
    assert stats.total.macs == first + last + 2 * (first + last) + 2 * (first + last) + 2 * first


LAYERS = {
    "group norm": lambda: nn.GroupNorm(2, 4),
    "instance norm": lambda: nn.InstanceNorm2D(4),
    "up": lambda: nn.Upsample(scale_factor=2),
    "smooth up": lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    "shuffle": lambda: nn.PixelShuffle(2),
    "pad": lambda: nn.ZeroPad2D(1),
    "windows": lambda: nn.Unfold([2, 2]),
    "prelu": nn.PReLU,
    "softsign": nn.Softsign,
    "log of sigmoid": nn.LogSigmoid,
}


@pytest.mark.parametrize("name", LAYERS)
def test_no_layer_that_is_common_is_unknown(name: str):
    x = paddle.randn([2, 4, 6, 6])
    x.stop_gradient = False
    assert not opscope.trace(LAYERS[name](), x).stats().unknown_ops
