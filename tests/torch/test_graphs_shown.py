"""The classic graphs as a user meets them: opscope.trace, a file, `opscope ir`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from models import Branching, Inner, Shared

import opscope
from opscope.cli import cli

X = torch.arange(12.0).view(3, 4) / 12


def shown(path: Path, *options: str) -> str:
    done = CliRunner().invoke(cli, ["ir", str(path), *options])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.opscope"
    opscope.trace(Branching(), X, how="jit-script").save(path)
    return path


def test_table_is_the_one_of_fx(tmp_path: Path):
    path = tmp_path / "fx.opscope"
    opscope.trace(Shared(), X, how="fx").save(path)
    lines = shown(path).splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert lines[2].split() == ["placeholder", "x", "x", "()", "{}"]
    assert "call_module" in lines[3]
    assert "def forward(self, x):" in shown(path, "--style", "code")
    assert shown(path, "--style", "native").startswith("graph():")


def test_script_code_and_schemas(script: Path):
    assert "# inner.fc (Linear)" in shown(script, "--style", "code")
    native = shown(script, "--style", "native", "--stage", "inlined")
    assert "prim::Loop" in native
    assert "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor" in native
    assert shown(script, "--stage", "hierarchical").splitlines()[0].split()[:3] == ["kind", "name", "op"]


def test_what_a_stage_does_not_have_is_said_without_our_own_lists(tmp_path: Path):
    path = tmp_path / "autograd.opscope"
    opscope.trace(Inner(), X, how="autograd").save(path)
    done = CliRunner().invoke(cli, ["ir", str(path), "--style", "code"])
    assert done.exit_code != 0
    assert ".nodes" not in f"{done.output}{done.exception}"


def test_statistics_on_request():
    w = torch.ones(3, requires_grad=True)
    found = opscope.trace((w * 2).sum(), how="autograd", statistics=True)
    assert "gradients" in found.tables
    assert "w" in {value.name for value in found.graph.values}
    assert w.grad is None


def test_existing_graphs_are_taken_as_they_are():
    program = torch.export.export(Inner(), (X,))
    assert opscope.trace(program).origin.how == "export"
    assert opscope.trace(torch.fx.symbolic_trace(Inner())).origin.how == "fx"
