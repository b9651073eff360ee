"""opscope.trace on modules and functions."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jittor as jt
import numpy as np
import pytest
from jittor import nn
from small_models import MLP, inputs, line, numbers, paths

import opscope
from opscope.ir import verify

PACKAGE = str(Path(opscope.__file__).parent)


def test_a_module(x):
    net = MLP()
    capture = opscope.trace(net, x)
    verify(capture.graph)
    assert paths(capture) == {"net/fc1", "net/relu", "net/fc2"}
    assert inputs(capture) == {
        "fc1.weight": ("parameter", "float32[8,4]"),
        "fc1.bias": ("parameter", "float32[8]"),
        "fc2.weight": ("parameter", "float32[1,8]"),
        "fc2.bias": ("parameter", "float32[1]"),
        "x": ("input", "float32[5,4]"),
    }
    assert {node.phase for node in capture.graph.nodes} == {"forward"}
    (output,) = capture.graph.outputs
    assert str(capture.graph.value(int(output)).type) == "float32[5,1]"
    assert (capture.origin.framework, capture.origin.version) == ("jittor", jt.__version__)


def test_every_operator_knows_its_line_and_opscope_is_not_in_it(x):
    net = MLP()
    capture = opscope.trace(net, x)
    for node in capture.graph.nodes:
        assert not [frame for frame in node.frames if frame.file.startswith(PACKAGE)]
        outer, inner = node.frames[0], node.frames[-1]
        assert line(capture, outer) == "capture = opscope.trace(net, x)"
        assert inner.function
        assert line(capture, inner)
        if node.path == "net/fc2":
            assert "self.fc2(hidden)" in {line(capture, frame).removeprefix("return ") for frame in node.frames}


def test_generated_code_is_in_the_capture(x):
    net = MLP()
    graph = opscope.trace(net, x).graph
    texts = [graph.pools.strings[int(code)] for code in graph.groups["kernel"].code]
    assert any("jit_run" in text for text in texts)


def test_a_model_without_a_variable_is_named_after_its_class(x):
    assert paths(opscope.trace(MLP(), x)) == {"MLP/fc1", "MLP/relu", "MLP/fc2"}


def test_a_function(x):
    def scaled(value, factor=2.0):
        return (value * factor).sum()

    capture = opscope.trace(scaled, x, factor=3.0)
    assert [node.op for node in capture.graph.nodes if "array" not in node.op][-2:] == ["binary.multiply", "reduce.add"]
    assert paths(capture) == {""}
    assert inputs(capture) == {"value": ("input", "float32[5,4]")}


def test_a_method_of_a_module_is_in_its_scope(x):
    class Encoder(MLP):
        def encode(self, value):
            return self.fc1(value) * 0.25

    net = Encoder()
    assert paths(opscope.trace(net.encode, x)) == {"net", "net/fc1"}


def test_a_function_that_only_names_jittor_in_its_code():
    def made(array):
        return jt.array(array).exp()

    assert "unary.exp" in {node.op for node in opscope.trace(made, numbers(3)).graph.nodes}


def test_everything_in_a_nested_result_is_computed(x):
    def nested(value):
        return {"a": [jt.exp(value), (jt.sin(value), None)], "b": {"c": jt.cos(value)}}, "text"

    ops = {node.op for node in opscope.trace(nested, x).graph.nodes}
    assert {"unary.exp", "unary.sin", "unary.cos"} <= ops


def test_nested_arguments_have_names(x):
    y = jt.array(numbers(5, 4)).sync()

    def combine(pair, scale):
        return pair[0] + pair[1]["right"] * scale["by"]

    capture = opscope.trace(combine, (x, {"right": y}), scale={"by": jt.array(numbers(5, 4)).sync()})
    assert set(inputs(capture)) == {"pair[0]", "pair[1].right", "scale.by"}


def test_a_fresh_model_is_traced_without_its_initialisation(x):
    net = MLP()  # nothing is computed yet: Jittor is lazy
    capture = opscope.trace(net, x)
    assert not {node.op for node in capture.graph.nodes} & {"random"}
    assert [text for text in capture.all_warnings() if "created before the recording" in text]
    assert set(inputs(capture)) == {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "x"}


# Where Jittor's own tracer goes wrong


def test_a_function_whose_first_argument_is_the_model_is_not_the_model(x):
    net = MLP()

    def loss_of(model, value):
        return (model(value) ** 2).mean() * 0.125

    capture = opscope.trace(loss_of, net, x)
    assert {
        node.path for node in capture.graph.nodes if line(capture, node.frames[-1]).startswith("return (model")
    } == {""}
    assert paths(capture) == {"", "net/fc1", "net/relu", "net/fc2"}


def test_nor_is_one_that_has_the_name_of_a_method(x):
    net = MLP()

    def train(model, value):  # Module has a method `train`
        return (model(value) ** 2).mean()

    assert paths(opscope.trace(train, net, x)) == {"", "net/fc1", "net/relu", "net/fc2"}


def test_a_module_with_a_mixin_is_seen(x):
    class Extra:
        pass

    class Mixed(nn.Linear, Extra):
        pass

    net = nn.Sequential(Mixed(4, 4), nn.Linear(4, 4))
    assert paths(opscope.trace(net, x)) == {"net/0", "net/1"}


def test_calls_of_one_module_are_told_apart(x):
    class Twice(nn.Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(4, 4)

        def execute(self, value):
            return self.fc(self.fc(value))

    net = Twice()
    assert paths(opscope.trace(net, x)) == {"net/fc", "net/fc#2"}


def test_the_list_that_holds_a_module_is_a_scope(x):
    class Blocks(nn.Module):
        def __init__(self) -> None:
            self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

        def execute(self, value):
            for block in self.blocks:
                value = block(value)
            return value

    net = Blocks()
    assert paths(opscope.trace(net, x)) == {"net/blocks/0", "net/blocks/1"}


def test_a_module_inside_a_function_inside_a_module(x):
    norm = nn.LayerNorm(4)  # its execute() calls functions that take tensors first: Jittor lists it twice
    assert paths(opscope.trace(norm, x)) == {"norm"}


# What must not change


def test_results_and_objects_stay_as_they_were(x):
    jt.set_global_seed(3)
    plain = MLP()
    expected = plain(x).numpy()
    jt.set_global_seed(3)
    net = MLP()
    before = {name: sorted(vars(module)) for name, module in net.named_modules()}
    held = jt.number_of_hold_vars()
    opscope.trace(net, x)
    assert jt.number_of_hold_vars() == held
    assert {name: sorted(vars(module)) for name, module in net.named_modules()} == before
    assert np.array_equal(net(x).numpy(), expected)
    for one, other in zip(plain.parameters(), net.parameters(), strict=True):
        assert np.array_equal(one.numpy(), other.numpy())


def test_an_error_in_the_model_goes_through(x):
    def broken(value):
        jt.exp(value).sync()
        raise ZeroDivisionError("in the model")

    with pytest.raises(ZeroDivisionError, match="in the model"):
        opscope.trace(broken, x)


def test_an_error_that_only_comes_when_it_is_computed(x):
    def broken(value):
        return jt.code((1,), "float32", [value], cpu_src="this is not C++")

    with pytest.raises(RuntimeError):
        opscope.trace(broken, x)


def test_under_a_profiler_in_c_there_are_lines_but_no_modules(x):
    net = MLP()
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        capture = opscope.trace(net, x)
    finally:
        profiler.disable()
    assert [text for text in capture.all_warnings() if "another profiler" in text]
    assert paths(capture) == {""}
    assert {node.phase for node in capture.graph.nodes} == {"forward"}
    assert {line(capture, node.frames[0]) for node in capture.graph.nodes} == {"capture = opscope.trace(net, x)"}


# Errors


def test_what_cannot_be_traced_says_what_it_is():
    with pytest.raises(
        opscope.OpscopeError, match=r"how='fx' is not a way to capture Jittor \(there are: auto, record\)"
    ):
        opscope.trace(MLP(), jt.array(numbers(5, 4)), how="fx")


def test_nothing_computed_is_an_error():
    def nothing(value):
        return 3

    with pytest.raises(opscope.OpscopeError, match="ran no operator"):
        opscope.trace(nothing, jt.array(numbers(2)).sync())


@pytest.mark.parametrize(
    ("kind", "run"),
    [
        ("softmax", lambda x: nn.softmax(x, dim=-1)),
        ("softmax", lambda x: nn.softmax(x.float16(), dim=1)),
        ("log_softmax", lambda x: nn.log_softmax(x, dim=-1)),
        ("layer_norm", nn.LayerNorm(8)),
        ("layer_norm", nn.LayerNorm((6, 8), elementwise_affine=False)),
    ],
)
def test_softmax_and_layer_norm_have_one_kind(kind: str, run: Callable[[Any], Any]) -> None:
    """Jittor writes them as five to thirteen operators."""
    capture = opscope.trace(run, jt.randn(4, 6, 8))
    found = capture.find(f"kind:/^{kind}$/")
    assert len(found) >= 5
    rows = {row["name"]: row for row in capture.stats().to_dict("kind")["rows"]}
    assert rows[kind]["ops"] == len(found)
    assert sum(row["other"] for row in rows.values()) == capture.stats().to_dict()["total"]["other_flops"]


@pytest.mark.parametrize("norm", [nn.BatchNorm(6), nn.InstanceNorm2d(6), nn.GroupNorm(2, 6)])
def test_other_norms_are_no_layer_norms(norm: Any) -> None:
    assert not opscope.trace(norm, jt.randn(4, 6, 5, 7)).find("kind:layer_norm")
