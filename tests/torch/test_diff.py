"""A model before and after an edit: the diff names the layer that was edited, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

import opscope
from opscope.cli import cli


def network(kernel: int = 3, activation: type[nn.Module] = nn.ReLU, width: int = 16, layers: int = 4) -> nn.Module:
    blocks = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()) for _ in range(layers)]
    blocks[1][0] = nn.Conv2d(8, 8, kernel, padding=kernel // 2)
    blocks[2][2] = activation()
    head = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)


def traced(**edit: object) -> opscope.Capture:
    with torch.no_grad():
        return opscope.trace(network(**edit).eval(), torch.randn(2, 3, 16, 16))


def touched(diff: object) -> set[str]:
    nodes = [diff.before.node(n) for c in diff.changes for n in c.before]
    nodes += [diff.after.node(n) for c in diff.changes for n in c.after]
    return {node.path for node in nodes}


def test_the_same_model_twice() -> None:
    assert opscope.diff(traced(), traced()).is_empty


@pytest.mark.parametrize(
    ("edit", "place", "kind", "detail"),
    [
        ({"kernel": 5}, {"2/0"}, "changed", "float32[8,8,3,3] → float32[8,8,5,5]"),
        ({"activation": nn.GELU}, {"3/2"}, "changed", "aten.relu → aten.gelu"),
        ({"activation": nn.Identity}, {"3/2"}, "removed", "aten.relu"),
    ],
)
def test_one_edited_layer(edit: dict[str, object], place: set[str], kind: str, detail: str) -> None:
    diff = opscope.diff(traced(), traced(**edit))
    assert touched(diff) == place
    assert {change.kind for change in diff.changes} == {kind}
    assert detail in diff.changes[0].detail


def test_a_wider_layer_names_what_became_wider() -> None:
    diff = opscope.diff(traced(), traced(width=32))
    assert all(path.startswith("7") for path in touched(diff))
    assert {change.kind for change in diff.changes} == {"changed"}


def test_one_more_block_is_added() -> None:
    diff = opscope.diff(traced(layers=4), traced(layers=5))
    assert {change.kind for change in diff.changes} == {"added"}
    added = [diff.after.node(n).op for change in diff.changes for n in change.after]
    assert len(added) == diff.after.n_nodes - diff.before.n_nodes
    assert {"aten.convolution", "aten.native_batch_norm", "aten.relu"} <= set(added)


def test_training_of_an_edited_model() -> None:
    def step(activation: type[nn.Module]) -> opscope.Capture:
        torch.manual_seed(0)
        model = network(activation=activation)
        with opscope.record(model) as capture:
            model(torch.randn(2, 3, 16, 16)).sum().backward()
        return capture

    diff = opscope.diff(step(nn.ReLU), step(nn.Sigmoid))
    assert touched(diff) == {"model/3/2"}
    assert len(diff.changes) <= 4


@pytest.mark.parametrize(("condition", "code"), [("macs>+5%", 1), ("macs>+500%", 0), ("params>0", 1), ("nodes>0", 0)])
def test_conditions(condition: str, code: int, tmp_path: Path) -> None:
    traced().save(tmp_path / "a.opscope")
    traced(kernel=7).save(tmp_path / "b.opscope")
    files = [str(tmp_path / "a.opscope"), str(tmp_path / "b.opscope")]
    done = CliRunner().invoke(cli, ["diff", *files, "--fail-on", condition, "--json"])
    assert done.exit_code == code, done.output
    assert len(json.loads(done.stdout)["changes"]) == 1
