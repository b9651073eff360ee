"""Live capture of MegEngine: modules, functions, training steps, traced functions, Networks, scripts."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
import pytest
from megengine.autodiff import GradManager
from megengine.core._imperative_rt import core2
from megengine.optimizer import SGD
from megengine.traced_module import expr, trace_module
from megengine.utils.network import Network
from models import OwnWeight, ResNet18, Tiny, dump

import opscope
from opscope.cli import main
from opscope.ir import verify_capture

HOOK = expr.Apply.apply_module_trace_hook.__func__.__code__


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Any:
    methods = [M.Module.__call__, GradManager.backward, SGD.step]
    yield
    assert [M.Module.__call__, GradManager.backward, SGD.step] == methods
    assert expr.Apply.apply_module_trace_hook.__func__.__code__ is HOOK
    assert not core2.is_tracing_module()


def image(*shape: int) -> Any:
    return mge.tensor(np.random.rand(*(shape or (1, 3, 8, 8))).astype("float32"))


def test_a_module_with_its_functional_operators() -> None:
    model = Tiny()
    model.eval()
    capture = opscope.trace(model, image())
    verify_capture(capture)
    graph = capture.graph
    assert capture.origin.framework == "megengine"
    assert [node.op for node in graph.nodes] == [
        "Convolution",
        "Elemwise.ADD",
        "BatchNorm",
        "Elemwise.RELU",  # functional: module_stats does not see it
        "Pooling.AVERAGE_COUNT_EXCLUDE_PADDING",
        "Reshape",
        "MatrixMul",
        "Elemwise.ADD",
    ]
    conv = graph.node(0)
    assert conv.path == "conv"
    assert conv.scopes[0].cls == "Conv2d"
    assert [value.name for value in conv.inputs if value] == ["x", "conv.weight"]
    assert conv.attrs["pad_h"] == 1
    assert str(conv.outputs[0].type) == "float32[1,4,8,8]"
    assert conv.frames[-1].file.endswith("models.py")
    assert [graph.value(int(v)).name for v in graph.inputs] == ["x"]
    assert graph.node(2).inputs[3].role == "buffer"
    assert len(graph.outputs) == 1
    assert any(path.endswith("models.py") for path in capture.sources)


def test_the_same_operators_as_its_dump(tmp_path: Path) -> None:
    """What is recorded is what MegEngine itself dumps, apart from how shapes are computed there."""
    model = ResNet18(8, 10)
    model.eval()
    x = image(1, 3, 64, 64)
    dump(model, str(tmp_path / "m.mge"), (1, 3, 64, 64))
    shapes = {"GetVarShape", "Subtensor", "Concat", "Identity", "Copy"}

    def ops(capture: Any) -> list[tuple[str, str]]:
        return [(n.op, str(n.outputs[-1].type)) for n in capture.graph.nodes if n.op not in shapes]

    recorded, dumped = ops(opscope.trace(model, x)), ops(opscope.open(tmp_path / "m.mge"))
    assert recorded == dumped
    assert ops(opscope.trace(model, x, how="dump")) == dumped
    assert len(recorded) == 70


def test_two_calls_of_one_module_and_containers() -> None:
    class Twice(M.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seq = M.Sequential(M.Linear(3, 3), M.ReLU())

        def forward(self, x: Any) -> Any:
            return self.seq(self.seq(x))

    graph = opscope.trace(Twice(), image(2, 3)).graph
    assert [node.path for node in graph.nodes if node.op == "MatrixMul"] == ["seq/0", "seq#2/0"]
    weights = [node.inputs[1].index for node in graph.nodes if node.op == "MatrixMul"]
    assert weights[0] == weights[1]


def test_a_function_and_its_data_flow() -> None:
    def mix(a: Any, b: dict[str, Any]) -> Any:
        c = a + b["x"]
        c[0] = 1
        return F.softmax(c * 2), c

    capture = opscope.trace(mix, image(2, 3), {"x": image(2, 3)})
    graph = capture.graph
    assert [graph.value(int(v)).name for v in graph.inputs] == ["a", "b.x"]
    assert {"SetSubtensor", "SoftmaxForward"} <= {node.op for node in graph.nodes}
    assert len(graph.outputs) == 2
    # Everything that is computed hangs together.
    made = [v for v in graph.values if v.producer is not None]
    assert all(v.users or v.index in graph.outputs for v in made if v.producer.op != "Subtensor")


def test_a_training_step() -> None:
    model = Tiny()
    manager = GradManager().attach(model.parameters())
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = image(2, 3, 8, 8)
    with opscope.record(model, times=True) as capture:
        for _ in range(2):
            with manager:
                loss = model(data).sum()
                manager.backward(loss)
            optimizer.step().clear_grad()
    verify_capture(capture)
    graph = capture.graph
    phases = [node.phase for node in graph.nodes]
    assert phases.count("optimizer") == 2 * 6 * 4  # 6 parameters: momentum, gradient, rate, update
    assert any("gradients are not seen" in text for text in capture.all_warnings())
    roles = {value.role for value in graph.values}
    assert {"parameter", "buffer", "gradient", "state", "input"} <= roles
    convolutions = [node for node in graph.nodes if node.op == "Convolution"]
    first, second = (node.inputs[1] for node in convolutions)
    assert first.name == "conv.weight"
    assert second.producer.op == "Elemwise.SUB"  # what the first step made of it
    assert second.storage.index == first.index
    table = capture.tables["times"]
    assert len(table.index) == graph.n_nodes


def test_an_error_in_the_model_goes_through() -> None:
    def broken(x: Any) -> Any:
        y = x + 1
        raise KeyError("mine")
        return y

    with pytest.raises(KeyError, match="mine"):
        opscope.trace(broken, image(2))
    with pytest.raises(RuntimeError):
        opscope.trace(lambda x: F.matmul(x, x), image(2, 3))


def test_nothing_recorded() -> None:
    with pytest.raises(opscope.OpscopeError, match="ran no operator"):
        opscope.trace(lambda x: x, image(2))


def test_traced_functions_and_networks(tmp_path: Path) -> None:
    model = Tiny()
    model.eval()
    traced = mge.jit.trace(model, symbolic=True, capture_as_const=True)
    capture = opscope.trace(traced, image())
    assert capture.origin.how == "jit.trace"
    assert "Convolution" in {node.op for node in capture.graph.nodes}
    recorded = opscope.trace(traced, image(), how="record")
    assert recorded.origin.how == "recorded live"
    assert recorded.graph.n_nodes == 8
    with pytest.raises(opscope.OpscopeError, match="capture_as_const=True"):
        opscope.trace(mge.jit.trace(model), image())

    dump(model, str(tmp_path / "m.mge"), (1, 3, 8, 8))
    network = opscope.trace(Network.load(str(tmp_path / "m.mge")))
    assert network.origin.how == "Network"
    assert [n.op for n in network.graph.nodes] == [n.op for n in opscope.open(tmp_path / "m.mge").graph.nodes]


def test_megengines_own_tracing_goes_on() -> None:
    """trace_module uses the same hook: during a recording, and after it."""
    model = Tiny()
    model.eval()
    before = len(trace_module(model, image()).graph.exprs(recursive=True).as_list())
    with opscope.record() as capture:
        during = trace_module(model, image())
        model(image())
    assert len(during.graph.exprs(recursive=True).as_list()) == before
    assert [n.op for n in capture.graph.nodes][-8:] == [n.op for n in opscope.trace(model, image()).graph.nodes]
    assert len(trace_module(model, image()).graph.exprs(recursive=True).as_list()) == before


def test_modules_that_are_hard() -> None:
    for model, args in [
        (OwnWeight(), (image(2, 3),)),
        (M.LSTM(3, 4), (image(5, 2, 3),)),
        (M.Conv2d(3, 4, 3), (image(1, 3, 8, 8),)),
    ]:
        model.eval()
        capture = opscope.trace(model, *args)
        verify_capture(capture)
        assert capture.graph.n_nodes > 0
        assert not capture.all_warnings()


def test_quantized() -> None:
    from megengine.quantization import ema_fakequant_qconfig, quantize, quantize_qat

    class Small(M.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant = M.QuantStub()
            self.conv = M.ConvRelu2d(4, 8, 3)
            self.dequant = M.DequantStub()

        def forward(self, x: Any) -> Any:
            return self.dequant(self.conv(self.quant(x)))

    model = quantize_qat(Small(), ema_fakequant_qconfig)
    x = image(1, 4, 8, 8)
    model.train()
    model(x)
    model.eval()
    capture = opscope.trace(model, x)
    assert "FakeQuant" in {node.op for node in capture.graph.nodes}
    model = quantize(model)
    model.eval()
    capture = opscope.trace(model, x)
    dtypes = {value.name: value.type.dtype for value in capture.graph.values if value.name}
    assert dtypes["conv.weight"] == "qint8"
    file = io.BytesIO()
    traced = mge.jit.trace(model, symbolic=True, capture_as_const=True)
    traced(x)
    traced.dump(file, keep_opr_name=True, keep_var_name=2, optimize_for_inference=False)
    from opscope.readers.registry import read
    from opscope.readers.source import Options, Source

    read_back = read(Source("q.mge", data=file.getvalue()), Options())
    kinds = {value.type.dtype for value in read_back.graph.values}
    assert "qint8" in kinds
    assert "quantization" in read_back.tables


def test_a_script(tmp_path: Path, capsys: Any) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np, megengine as mge, megengine.module as M, megengine.functional as F\n"
        "from megengine.autodiff import GradManager\n"
        "from megengine.optimizer import SGD\n"
        "net = M.Linear(4, 2)\n"
        "gm = GradManager().attach(net.parameters())\n"
        "opt = SGD(net.parameters(), lr=0.1)\n"
        "for step in range(3):\n"
        "    data = mge.tensor(np.ones((2, 4), 'float32'))\n"
        "    with gm:\n"
        "        loss = F.relu(net(data)).mean()\n"
        "        gm.backward(loss)\n"
        "    opt.step().clear_grad()\n",
        encoding="utf-8",
    )
    out = tmp_path / "out.opscope"
    with pytest.raises(SystemExit) as stop:
        main(["trace", str(script), "-o", str(out), "--framework", "megengine"])
    assert stop.value.code == 0, capsys.readouterr().err
    capture = opscope.open(out)
    products = [n for n in capture.graph.nodes if n.op == "MatrixMul"]
    assert len(products) == 3
    assert products[0].inputs[0].name == "data"
    assert products[0].path == "net"
    assert products[0].frames[-1].line == 10
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["info", str(out), "--json"])
    assert json.loads(capsys.readouterr().out)["framework"] == "megengine"


def test_the_example(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "megengine_stats.py"
    done = subprocess.run(
        [sys.executable, str(example), str(tmp_path), "--size", "64"], capture_output=True, text=True, check=True
    )
    assert "params 11689512" in done.stdout
    assert list((tmp_path / "log").glob("events.out.tfevents.*"))
    assert opscope.open(tmp_path / "resnet18.opscope").graph.n_nodes > 70


def test_a_model_on_the_command_line(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    out = tmp_path / "tiny.opscope"
    with pytest.raises(SystemExit) as stop:
        main(["trace", "models:Tiny", "--input", "1x3x8x8", "-o", str(out)])
    assert stop.value.code == 0, capsys.readouterr().err
    assert opscope.open(out).graph.n_nodes >= 8
