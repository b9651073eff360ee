"""Statistics of every tensor, and where a NaN was born."""

from __future__ import annotations

import paddle
import pytest

import opscope
from opscope.errors import OpscopeError


class Net(paddle.nn.Layer):
    """Divides by a sum that is zero once nothing is positive."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Linear(4, 8), paddle.nn.Linear(8, 2)

    def forward(self, x):
        positive = paddle.nn.functional.relu(self.first(x))
        return self.last(positive / positive.sum(axis=1, keepdim=True))


def recorded(net: Net, x) -> opscope.Capture:
    optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    with opscope.record(net, optimizer=optimizer, values="stats") as capture:
        net(x).mean().backward()
        optimizer.step()
    return capture


def test_figures_of_inputs_parameters_results_and_gradients() -> None:
    paddle.seed(0)
    net, x = Net(), paddle.randn([3, 4])
    before = net.first.weight.numpy().copy()
    capture = recorded(net, x)
    names = capture.graph.pools.strings
    (table,) = capture.facts("values", 0)
    assert "values" not in table.columns
    rows: dict[str, list[int]] = {}
    for row, value in enumerate(table.index.tolist()):
        rows.setdefault(names[int(capture.graph.value_name[value])], []).append(row)
    largest = table.columns["max"].values
    assert largest[rows["first.weight"][0]] == before.max()
    assert largest[rows["first.weight"][-1]] == net.first.weight.numpy().max()  # after the step
    assert largest[rows["x"][0]] == x.numpy().max()
    assert {"first.weight.grad", "last.bias.grad"} <= set(rows)
    assert not capture.origins()


def test_the_division_is_the_origin() -> None:
    net = Net()
    net.first.bias.set_value(paddle.full([8], -100.0))
    first, *_ = recorded(net, paddle.randn([3, 4])).origins()
    assert (first.op, first.phase, first.kind) == ("divide", "forward", "nan")
    assert first.file.endswith("test_numbers.py")
    assert [seen.figures["max"] for seen in first.inputs] == [0.0, 0.0]


def test_a_gradient_that_nobody_is_seen_to_make_is_no_origin() -> None:
    """Paddle's engine puts gradients into parameters by itself; the forward pass comes first all the same."""

    class Log(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.layer = paddle.nn.Linear(4, 2)

        def forward(self, x):
            made = self.layer(x)
            return paddle.log(made - made)

    found = recorded(Log(), paddle.randn([3, 4])).origins()
    assert [(origin.op, origin.phase) for origin in found] == [("log", "forward"), ("LogGradNode", "backward")]


def test_a_parameter_that_holds_nan_is_named() -> None:
    net = Net()
    weight = net.last.weight.numpy()
    weight[0, 0] = float("nan")
    net.last.weight.set_value(paddle.to_tensor(weight))
    first, *_ = recorded(net, paddle.randn([3, 4])).origins()
    assert (first.op, first.name) == ("parameter", "last.weight")


def test_what_it_cannot_do_it_says() -> None:
    said = pytest.raises(OpscopeError, match="values='full' is not supported for PaddlePaddle")
    with said, opscope.record(Net(), values="full"):
        pass
