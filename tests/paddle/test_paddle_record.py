"""What a model and a training step run: operators, layers, gradients, optimizers."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import paddle
import paddle.nn.functional as F
import pytest
from nets import NETS, Again, Custom, Example, Shared, small

import opscope
from opscope.analysis.costs.operators import node_costs
from opscope.ir import verify_capture
from opscope.tracers.script import run_script


def pairs(graph: Any, kind: str = "grad") -> Counter[tuple[str, str]]:
    links = graph.links_of(kind)
    return Counter((graph.node(a).op, graph.node(b).op) for a, b in zip(links.source, links.target, strict=True))


def phases(graph: Any) -> Counter[str]:
    return Counter(node.phase for node in graph.nodes)


@pytest.mark.parametrize("name", NETS)
def test_trace_has_forward_and_backward_linked(name: str):
    make, inputs = NETS[name]
    capture = opscope.trace(make(), inputs())
    verify_capture(capture)
    graph = capture.graph
    assert phases(graph)["forward"]
    backward = [node for node in graph.nodes if node.phase == "backward" and node.op != "GradNodeAccumulation"]
    linked = set(graph.links_of("grad").target.tolist())
    unlinked = [node.op for node in backward if node.index not in linked]
    assert not unlinked
    for node in graph.nodes:
        if node.phase == "forward":
            assert node.frames, node.op


def test_the_example():
    model, x = Example(), paddle.randn([1, 3, 32, 32])
    graph = opscope.trace(model, x).graph
    assert phases(graph) == {"forward": 16, "backward": 29}
    assert pairs(graph)[("linear", "MatmulGradNode")] == 3
    assert pairs(graph)[("linear", "AddGradNode")] == 3
    conv = graph.node(0)
    assert (conv.op, conv.path, conv.attrs["strides"]) == ("conv2d", "conv/0", [1, 1])
    assert [use.value.name for use in conv.uses if use.value] == ["img", "conv.0.weight"]
    (gradient,) = [n for n in graph.nodes if n.op == "Conv2dGradNodeFinal" and n.path == "conv/0"]
    assert [use.arg for use in gradient.uses] == ["grad[0]", "input", "filter"]
    assert gradient.frames == conv.frames
    assert all(p.grad is None for p in model.parameters())


def test_a_training_step():
    model, x = Example(), paddle.randn([1, 3, 32, 32])
    optimizer = paddle.optimizer.Adam(parameters=model.parameters())
    for _ in range(2):
        with opscope.record(model, optimizer=optimizer) as capture:
            F.cross_entropy(model(x), paddle.to_tensor([3])).backward()
            optimizer.step()
            optimizer.clear_grad()
    graph = capture.graph
    updates = [node for node in graph.nodes if node.op == "adam_"]
    assert {node.phase for node in updates} == {"optimizer"}
    assert len(updates) == 10
    for node in updates:
        values = {use.arg: use.value for use in node.uses}
        assert values["param"].role == "parameter"
        assert values["grad"].name == f"{values['param'].name}.grad"
        assert values["grad"].producer.op == "GradNodeAccumulation"
        assert values["moment1"].role == "state"
    assert not capture.all_warnings()


def test_pylayer_says_what_was_not_seen():
    capture = opscope.trace(Custom(), small())
    assert pairs(capture.graph)[("Twice", "GradNodePyLayer_Twice")] == 1
    (text,) = [text for text in capture.all_warnings() if "GradNodePyLayer_Twice" in text]
    assert "is not measured" in text
    (node,) = [node for node in capture.graph.nodes if node.op == "GradNodePyLayer_Twice"]
    assert node.outputs[0].type.shape == (3, 4)


def test_recompute_is_linked_to_what_ran_first():
    model = Again()
    with opscope.record(model) as capture:
        model(small()).sum().backward()
    graph = capture.graph
    assert pairs(graph, "recompute") == {("linear", "linear"): 2, ("relu", "relu"): 1}
    again = [node for node in graph.nodes if node.phase == "recompute"]
    assert [node.path for node in again] == [f"model/RecomputeFunction/second/{i}" for i in range(3)]
    names = [node.name for node in graph.nodes if node.op == "GradNodeAccumulation"]
    assert set(names) >= {name for name, _ in model.named_parameters()}


def test_shared_layers_are_two_calls():
    graph = opscope.trace(Shared(), small()).graph
    paths = [node.path for node in graph.nodes if node.op == "linear"]
    assert paths == ["inner", "inner#2", "frozen"]
    (weight,) = [node for node in graph.nodes if node.name == "inner.weight"]
    assert len(weight.uses) == 2


def test_double_grad():
    x = small()
    x.stop_gradient = False
    with opscope.record() as capture:
        y = (x**3).sum()
        (gradient,) = paddle.grad(y, [x], create_graph=True)
        (gradient * gradient).sum().backward()
    found = pairs(capture.graph)
    assert found[("PowGradNode", "PowDoubleGradNode")] == 1, found
    assert phases(capture.graph)["backward"] > 6


def test_paddle_grad():
    model = paddle.nn.Linear(4, 4)
    x = small()
    x.stop_gradient = False
    with opscope.record(model) as capture:
        (gradient,) = paddle.grad(model(x).sum(), [x])
    assert gradient.shape == [3, 4]
    assert model.weight.grad is None
    assert pairs(capture.graph)[("linear", "MatmulGradNode")] == 1


def test_casts_and_auto_cast():
    """On a CPU auto_cast leaves float32 as it is; casts of the model's own are operators like any other."""
    model = paddle.nn.Linear(4, 4)
    with opscope.record(model) as capture, paddle.amp.auto_cast(dtype="bfloat16", level="O1"):
        (model(small()).astype("float64") * 2).sum().backward()
    graph = capture.graph
    assert pairs(graph)[("cast", "CastGradNode")] == 1
    (scale,) = [node for node in graph.nodes if node.op == "ScaleGradNode"]
    (cast,) = [node for node in graph.nodes if node.op == "CastGradNode"]
    assert [node.outputs[0].type.dtype for node in (scale, cast)] == ["float64", "float32"]


def test_to_static_is_one_operator():
    model = paddle.nn.Linear(4, 4)

    def forward(x: Any) -> Any:
        return F.relu(model(x)).sum()

    function = paddle.jit.to_static(forward, full_graph=True)
    with opscope.record(model) as capture:
        function(small()).backward()
    assert any("Dy2St" in node.op for node in capture.graph.nodes)
    assert any("Dy2St" in text for text in capture.all_warnings())


def test_the_program_has_saved_tensors():
    capture = opscope.trace(Example(), paddle.randn([1, 3, 32, 32]), how="program")
    graph = capture.graph
    assert phases(graph)["backward"] == 19
    assert len(graph.links_of("grad")) == 19
    assert "native" in capture.stages[0].listings
    assert capture.origin.how == "program"


def test_autograd_of_a_model_has_scopes_and_lines():
    graph = opscope.trace(Example(), paddle.randn([1, 3, 32, 32]), how="autograd").graph
    assert (graph.n_nodes, graph.n_edges) == (29, 28)
    (node,) = [n for n in graph.nodes if n.op == "Conv2dGradNodeFinal" and n.path == "conv/0"]
    assert any(frame.file.endswith("nets.py") for frame in node.frames)


def test_an_exception_goes_through():
    with pytest.raises(ZeroDivisionError), opscope.record():
        paddle.ones([2]) / (1 // 0)


def test_costs_of_resnet18():
    model, x = paddle.vision.models.resnet18(), paddle.randn([1, 3, 224, 224])
    with paddle.no_grad():
        recorded = opscope.trace(model, x).graph
    program = opscope.trace(model.eval() or model, x, how="program").graph
    for graph in (recorded, program):
        found = node_costs(graph, "paddle")
        assert int(found.macs.sum()) == 1_814_073_344
        assert not found.unknown_ops


def test_forward_only():
    with paddle.no_grad():
        graph = opscope.trace(Example(), paddle.randn([1, 3, 32, 32])).graph
    assert phases(graph) == {"forward": 16}


def test_a_script(tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text(
        "import paddle\n"
        "model = paddle.nn.Linear(3, 2)\n"
        "opt = paddle.optimizer.SGD(parameters=model.parameters())\n"
        "for _ in range(3):\n"
        "    model(paddle.ones([1, 3])).sum().backward()\n"
        "    opt.step(); opt.clear_grad()\n"
    )
    capture = run_script(str(script), framework="paddle")
    assert phases(capture.graph)["init"] > 0
    assert sum(node.op == "sgd_" for node in capture.graph.nodes) == 6
    (first, *_) = [node for node in capture.graph.nodes if node.op == "linear"]
    assert first.path == "step 1/model"
    assert first.frames[0] == (str(script), 5, "<module>")
    two = run_script(str(script), framework="paddle", steps=2)
    assert sum(node.op == "sgd_" for node in two.graph.nodes) == 4
    assert "torch" not in sys.modules


def test_times_and_values():
    model, x = Example(), paddle.randn([1, 3, 32, 32])
    with opscope.record(model, times=True, values=True) as capture:
        y = model(x)
        y.sum().backward()
    verify_capture(capture)
    graph = capture.graph
    times = capture.tables["times"]
    assert times.by == "node"
    assert len(times.index) == graph.n_nodes
    known = times.columns["time"].known
    assert (times.columns["time"].values[known] > 0).all()
    # Paddle lets nobody see when it adds to a parameter's gradient.
    assert {graph.node(int(i)).op for i in times.index[~known]} == {"GradNodeAccumulation"}
    values = capture.tables["value statistics"]
    result = next(node.inputs[0] for node in graph.nodes if node.op == "sum")
    row = values.index.tolist().index(result.index)
    assert values.columns["values"].values[row] == pytest.approx(y.numpy().ravel().tolist())
    assert values.columns["mean"].values[row] == pytest.approx(float(y.mean()))
    roles = Counter(graph.value(int(i)).role for i in values.index)
    assert roles["activation"] == sum(node.phase == "forward" for node in graph.nodes)
    assert roles["gradient"] > 10


def test_the_time_of_a_layer_is_not_counted_twice():
    """What runs inside of a PyLayer is not part of its own time."""
    model, x = Custom(), paddle.randn([256, 4])
    with opscope.record(model, times=True) as capture:
        began = time.perf_counter()
        model(x)
        whole = time.perf_counter() - began
    seconds = capture.tables["times"].columns["time"].values.sum() / 1e9
    assert 0 < seconds < whole
