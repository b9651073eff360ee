"""The example makes the four graphs of the specification, operator for operator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import opscope
from opscope.ir import verify

EXAMPLE = Path(__file__).parents[2] / "examples" / "jittor_models.py"

# Operators, kernels and links from gradients, as in the sample files that Jittor's authors describe.
EXPECTED = {
    "simple_model": (37, 14, 0),
    "simple_model_train": (123, 41, 14),
    "resnet": (1134, 206, 0),
    "resnet_train": (3502, 797, 1007),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    # Small pictures: the same operators as at 224 x 224, in a tenth of the time.
    ran = subprocess.run([sys.executable, str(EXAMPLE), str(folder), "--size", "64"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return folder


@pytest.mark.parametrize("name", EXPECTED)
def test_the_four_models(folder, name):
    capture = opscope.open(folder / f"{name}.opscope")
    graph = capture.graph
    verify(graph)
    nodes, kernels, links = EXPECTED[name]
    assert graph.n_nodes == nodes
    assert len(graph.groups["kernel"]) == kernels
    assert len(graph.links_of("grad")) == links


def test_the_modules_of_resnet(folder):
    graph = opscope.open(folder / "resnet_train.opscope").graph
    paths = {node.path for node in graph.nodes}
    assert {"model/layer1/0/bn1", "model/layer4/1/conv2", "model/fc", "opt"} <= paths
    parameters = {value.name for value in graph.values if value.role == "parameter"}
    assert {"conv1.weight", "layer4.1.bn2.weight", "fc.bias"} <= parameters
    assert len(parameters) == 62
    assert all(node.frames for node in graph.nodes)
