"""The example captures one ResNet-18 in every way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import opscope
from opscope.ir import verify

EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorch_resnet18.py"

# The stages of each way, and the operators of the first where they say something: fx sees 69 calls (20 convolutions
# and batch norms, 17 relus, 8 additions, pooling, mean, flatten, linear), export also counts 20 `num_batches_tracked`.
EXPECTED = {
    "step": (["recorded"], None),
    "record": (["recorded"], None),
    "export": (["export"], 89),
    "fx": (["fx"], 69),
    "jit-trace": (["hierarchical", "inlined"], 9),
    "jit-script": (["hierarchical", "inlined"], 9),
    "dynamo": (["graph 1"], 89),
    "joint": (["joint", "forward", "backward"], None),
    "autograd": (["backward"], None),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    ran = subprocess.run([sys.executable, str(EXAMPLE), str(folder), "--size", "32"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return folder


@pytest.mark.parametrize("way", EXPECTED)
def test_each_way(folder: Path, way: str) -> None:
    capture = opscope.open(folder / f"resnet18-{way}.opscope")
    stages, operators = EXPECTED[way]
    assert [stage.name for stage in capture.stages] == stages
    for stage in capture.stages:
        verify(stage.graph)
    if operators is not None:
        assert capture.graph.n_nodes == operators
    parameters = {value.name for stage in capture.stages for value in stage.graph.values if value.role == "parameter"}
    assert {"stem.0.weight", "fc.bias"} <= parameters


def test_the_training_step_has_every_phase_and_every_pair(folder: Path) -> None:
    graph = opscope.open(folder / "resnet18-step.opscope").graph
    assert {node.phase for node in graph.nodes} == {"forward", "backward", "optimizer"}
    backward = [node for node in graph.nodes if node.op == "aten.convolution_backward"]
    assert len(backward) == 20
    linked = dict(zip(graph.links_of("grad").target.tolist(), graph.links_of("grad").source.tolist(), strict=True))
    assert {graph.node(linked[node.index]).op for node in backward} == {"aten.convolution"}


def test_the_measured_example(tmp_path: Path) -> None:
    example = EXAMPLE.with_name("torch_profile.py")
    ran = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "step 1 warms up" in ran.stdout
    times = opscope.open(tmp_path / "measured.opscope").tables["times"]
    assert set(times.columns) >= {"time", "cpu", "median", "least", "most", "runs"}


def test_the_planted_faults_are_named() -> None:
    example = EXAMPLE.with_name("pytorch_numbers.py")
    ran = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "nan: aten.div.Tensor in model/2 (forward)" in ran.stdout
    assert "a: aten.gelu" in ran.stdout
    assert "b: aten.silu" in ran.stdout
    assert "64 numbers differ" in ran.stdout
