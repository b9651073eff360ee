"""Live capture on real Hidet 0.6.1."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import hidet
import pytest
from hidet.utils import netron
from small_models import SelfAttention, Twice

import opscope
from conftest import ROOT
from opscope.analysis.diff import stage_diffs
from opscope.compat.hidet import dump
from opscope.ir import lines_of, verify_capture
from opscope.ir.enumerations import CHANGE_CLASSES


@pytest.fixture
def inputs():
    return [hidet.randn([1, 128, 768]), hidet.ones([1, 128], dtype="int32")]


def test_a_model(inputs) -> None:
    capture = opscope.trace(SelfAttention(), *inputs)
    verify_capture(capture)
    assert (capture.origin.framework, capture.origin.version) == ("hidet", hidet.__version__)
    graph = capture.graph
    assert graph.n_nodes == 24
    matmul, add, reshape = list(graph.nodes)[:3]
    assert (matmul.op, matmul.path, matmul.scopes[0].cls) == ("Matmul", "query_layer", "Linear")
    assert add.inputs[1].name == "query_layer.bias"
    assert add.inputs[1].role == "parameter"
    assert reshape.path == ""
    assert [f.function.rpartition(".")[2] for f in reshape.frames][-2:] == ["forward", "split"]
    assert reshape.outputs[0].storage.index == add.outputs[0].index
    assert any(path.endswith("small_models.py") for path in capture.sources)
    assert not any("/hidet/graph/" in path for path in capture.sources)
    assert "matmul" in capture.stages[0].listings["code"]


def test_a_graph_prints_as_hidet_prints_it(inputs) -> None:
    graph = SelfAttention().flow_graph_for(inputs)
    capture = opscope.trace(graph)
    assert capture.stages[0].listings["native"] == str(graph)
    for line, node in lines_of(capture, 0, "native"):
        assert f" = {capture.graph.node(node).op}(" in str(graph).splitlines()[line - 1]


def test_live_and_dumped_graphs_are_the_same(inputs, tmp_path: Path) -> None:
    graph = SelfAttention().flow_graph_for(inputs)
    ours, theirs = io.StringIO(), io.StringIO()
    dump(graph, ours)
    netron.dump(graph, theirs)
    assert ours.getvalue() == theirs.getvalue()
    (tmp_path / "graph.json").write_text(theirs.getvalue())
    (tmp_path / "graph.txt").write_text(str(graph))
    live = opscope.trace(graph)
    assert opscope.diff(live, opscope.open(tmp_path / "graph.txt")).is_empty
    assert opscope.diff(live, opscope.open(tmp_path / "graph.json")).is_empty


def test_modules_that_are_called_twice() -> None:
    capture = opscope.trace(Twice(), hidet.randn([2, 4]))
    paths = [node.path for node in capture.graph.nodes]
    assert len(set(paths)) == 4
    assert any(path.endswith("#2") or "#2/" in path for path in paths)


def test_symbolic_sizes() -> None:
    x = hidet.symbol(["batch", 4], dtype="float32")
    capture = opscope.trace(Twice(), x)
    assert str(capture.graph.value(int(capture.graph.inputs[0])).type) == "float32[batch,4]"


def test_passes_are_recorded_without_files(inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = SelfAttention().flow_graph_for(inputs)
    with opscope.passes() as capture:
        optimized = hidet.graph.optimize(graph)
    assert list(tmp_path.iterdir()) == []
    verify_capture(capture)
    counts = [stage.graph.n_nodes for stage in capture.stages]
    assert (counts[0], counts[-1]) == (24, 8) == (24, len(optimized.nodes))
    assert capture.stages[0].name == "0_Origin"
    assert [stage.after for stage in capture.stages] == [None, *range(len(counts) - 1)]
    assert all(stage.seconds is not None for stage in capture.stages[1:])
    for _, _, diff in stage_diffs(capture):
        assert sum(len(c.before) for c in diff.changes) + len(diff.same) == diff.before.n_nodes
        assert sum(len(c.after) for c in diff.changes) + len(diff.same) == diff.after.n_nodes
    fuse = next(i for i, stage in enumerate(capture.stages) if "Fuse" in stage.name)
    (changes,) = capture.facts("changes", fuse)
    assert [CHANGE_CLASSES[i] for i in changes.columns["class"].values].count("fused") == 6
    assert {link.evidence for link in capture.stage_links} == {"reported", "structure"}


def test_the_folder_that_hidet_writes_says_the_same(inputs, tmp_path: Path) -> None:
    graph = SelfAttention().flow_graph_for(inputs)
    with hidet.graph.PassContext() as context, opscope.passes() as live:
        context.save_graph_instrument(out_dir=str(tmp_path / "outs"))
        context.profile_pass_instrument(log_file=str(tmp_path / "times.log"), print_stdout=False)
        hidet.graph.optimize(graph)
    read = opscope.open(tmp_path / "outs")
    assert [stage.name for stage in read.stages] == [stage.name for stage in live.stages]
    for one, other in zip(read.stages, live.stages, strict=True):
        assert opscope.diff(one, other).is_empty
        assert one.listings["native"] == other.listings["native"]
        assert (one.seconds is None) == (other.seconds is None)


def test_an_error_in_the_block_goes_through() -> None:
    with pytest.raises(ZeroDivisionError), opscope.passes() as capture:
        _ = 1 / 0
    assert capture.stages == []


def test_nothing_to_record_is_said() -> None:
    with pytest.raises(opscope.OpscopeError, match="ran no pass"), opscope.passes():
        pass
    with pytest.raises(opscope.OpscopeError, match="Hidet traces with tensors"):
        opscope.trace(Twice())


def test_a_script(tmp_path: Path) -> None:
    script = ROOT / "examples" / "hidet_passes.py"
    done = subprocess.run(
        [sys.executable, "-m", "opscope", "trace", "--framework", "hidet", "-o", "out.opscope", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    capture = opscope.open(tmp_path / "out.opscope")
    names = [stage.name for stage in capture.stages]
    assert "0_Origin" in names
    origin = capture.stage("0_Origin").graph
    assert {"widen", "gate/score", "narrow"} <= {node.path for node in origin.nodes}
    assert re.search(r"Relu", (tmp_path / "gated.json").read_text())


def test_times_and_values_of_a_graph_that_runs() -> None:
    x = hidet.randn([2, 4], device="cpu")
    graph = hidet.trace_from(hidet.ops.relu(hidet.symbol_like(x) * 2.0))
    with opscope.record(framework="hidet", times=True, values=True) as capture:
        graph(x)
        result = graph(x)
    verify_capture(capture)
    times = capture.tables["times"]
    assert times.by == "node"
    assert times.index.tolist() == list(range(capture.graph.n_nodes))
    assert (times.columns["time"].values > 0).all()
    assert times.columns["runs"].values.tolist() == [2] * capture.graph.n_nodes
    values = capture.tables["value statistics"]
    (output,) = capture.graph.outputs
    row = values.index.tolist().index(int(output))
    assert values.columns["values"].values[row] == result.numpy().ravel().tolist()


def test_the_times_of_an_optimized_graph_are_of_its_last_stage() -> None:
    x = hidet.randn([2, 4], device="cpu")
    graph = hidet.trace_from(Twice()(hidet.symbol_like(x)))
    with opscope.record(framework="hidet", times=True) as capture:
        hidet.graph.optimize(graph)(x)
    last = len(capture.stages) - 1
    assert capture.tables["times"].stage == last
    assert len(capture.tables["times"].index) == capture.stages[last].graph.n_nodes


def test_nothing_measured_is_said() -> None:
    with opscope.record(framework="hidet", times=True) as capture:
        hidet.trace_from(Twice()(hidet.symbol([2, 4])))
    assert "times" not in capture.tables
    assert any("no FlowGraph ran" in text for text in capture.warnings)
