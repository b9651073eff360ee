"""Statistics of the tensors that Jittor keeps, and where a NaN was born."""

from __future__ import annotations

import jittor as jt

import opscope


class Net(jt.Module):
    """Divides by a sum that is zero once nothing is positive."""

    def __init__(self) -> None:
        self.first, self.last = jt.nn.Linear(4, 8), jt.nn.Linear(8, 2)

    def execute(self, x):
        positive = jt.nn.relu(self.first(x))
        return self.last(positive / positive.sum(1, keepdims=True))


def test_the_division_is_the_origin() -> None:
    jt.set_global_seed(0)
    net, x = Net(), jt.randn(3, 4)
    for bias, expected in ((5.0, []), (-100.0, [("binary.divide", "forward", "nan")])):
        net.first.bias.assign(jt.full((8,), bias))
        with opscope.record(net, values="stats") as capture:
            y = net(x)
            y.sync()
        (table,) = capture.facts("values", 0)
        assert "values" not in table.columns
        assert any(table.columns["exponents"].known)
        found = capture.origins()
        assert [(one.op, one.phase, one.kind) for one in found] == expected
        if found:
            assert found[0].file.endswith("test_numbers.py")
