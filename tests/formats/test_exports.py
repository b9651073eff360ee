"""Models of PyTorch's exporters: modules, lines, costs, and what became what."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from models import MODELS, Made

import opscope
from opscope.ir import Graph

# The old exporter has no words for these, or writes a size that nobody can infer.
NOT_BY_THE_OLD_ONE = {"causal": "RMSNorm", "unet": "the shape behind a group norm"}


@pytest.fixture(params=list(MODELS))
def made(request: pytest.FixtureRequest) -> Made:
    torch.manual_seed(0)
    model, inputs = MODELS[request.param]()
    return model.eval(), inputs


def exported(made: Made, path: Path) -> Path:
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        program = torch.onnx.export(*made, dynamo=True)
    assert program is not None
    program.save(path)
    return path


def test_costs_are_those_of_the_live_model(made: Made, tmp_path: Path) -> None:
    live = opscope.stats(made[0], *made[1]).total
    total = opscope.open(exported(made, tmp_path / "m.onnx")).stats().total
    assert total.macs == live.macs
    assert not total.at_least


def test_every_node_has_the_module_and_line_that_the_file_says(made: Made, tmp_path: Path) -> None:
    path = exported(made, tmp_path / "m.onnx")
    graph = opscope.open(path).graph
    for node, proto in zip(graph.nodes, onnx.load(path).graph.node, strict=True):
        said = {entry.key: entry.value for entry in proto.metadata_props}
        modules = eval(said.get("pkg.torch.onnx.name_scopes", "['', '']"))
        assert node.path.replace("/", ".") == modules[-2]
        if "pkg.torch.onnx.stack_trace" in said:
            assert len(node.frames) == said["pkg.torch.onnx.stack_trace"].count('File "')
            assert f"line {node.frames[-1].line}" in said["pkg.torch.onnx.stack_trace"]


def test_a_diff_explains_what_became_of_every_operator(made: Made, tmp_path: Path) -> None:
    torch.export.save(torch.export.export(*made), tmp_path / "m.pt2")
    before, after = opscope.open(tmp_path / "m.pt2"), opscope.open(exported(made, tmp_path / "m.onnx"))
    for found in (opscope.diff(before, after), opscope.diff(after, before)):
        assert not {change.kind for change in found.changes} & {"added", "removed"}  # each became something
        assert all(len(change.before) + len(change.after) < 20 for change in found.changes)


def test_models_of_the_old_exporter(made: Made, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["made"]
    if name in NOT_BY_THE_OLD_ONE:
        pytest.skip(NOT_BY_THE_OLD_ONE[name])
    out = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(made[0], made[1], out, dynamo=False, opset_version=17)
    capture = opscope.opening.from_bytes("old.onnx", out.getvalue())
    assert capture.stats().total.macs == opscope.stats(made[0], *made[1]).total.macs
    modules = {name.replace(".", "/") for name, module in made[0].named_modules() if not list(module.children())}
    paths = {node.path for node in capture.graph.nodes if node.op in ("Conv", "Gemm", "LSTM")}
    own = {path.removesuffix("_1") for path in paths}  # as it calls the second call of a module
    assert own <= modules | {"", *(path.rpartition("/")[0] for path in modules)}


@pytest.mark.parametrize("name", ["resnet", "attention"])
def test_onnx_runtime_optimizes_without_changing_the_count(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    path = exported((MODELS[name]()[0].eval(), MODELS[name]()[1]), tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "fast.onnx")
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed: dict[str, Any] = {
        one.name: np.zeros(one.shape, np.int64 if "int" in one.type else np.float32) for one in session.get_inputs()
    }
    session.run(None, feed)
    fast = opscope.open(tmp_path / "fast.onnx", profile=session.end_profiling())
    assert fast.stats().total.macs == opscope.open(path).stats().total.macs
    assert fast.graph.n_nodes < opscope.open(path).graph.n_nodes
    (times,) = fast.facts("times", 0)
    assert len(times.index) > 0.9 * fast.graph.n_nodes


# -- ONNX's own tests ---------------------------------------------------------------------------------


def counts(graph: Any) -> tuple[int, int]:
    return len(graph.node), sum(1 for node in graph.node for name in node.input if name)


def ours(graph: Graph) -> tuple[int, int]:
    return graph.n_nodes, int((graph.use_value >= 0).sum())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_model_of_onnx_own_backend_tests_is_read() -> None:
    from onnx.backend.test.case.node import collect_testcases

    cases = collect_testcases(None)
    assert len(cases) > 1500
    for case in cases:
        capture = opscope.opening.from_bytes(f"{case.name}.onnx", case.model.SerializeToString())
        assert ours(capture.graph) == counts(case.model.graph), case.name
        capture.stats()


def test_every_file_of_onnx_own_backend_tests_is_read() -> None:
    files = sorted(Path(onnx.__file__).parent.glob("backend/test/data/**/*.onnx"))
    assert len(files) > 100
    for file in files:
        graph = onnx.load(file, load_external_data=False).graph
        assert ours(opscope.open(file).graph) == counts(graph), file
