"""Statistics of the weights in files, against the tensors that were saved."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import opscope
from opscope.analysis.weights import weights
from opscope.ir.facts import VALUES


class Odd(nn.Module):
    """Weights of several types, tied, transposed, parts of others, and one with NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 300)
        self.narrow = nn.Linear(300, 8).half()
        self.turned = nn.Linear(8, 8)
        self.turned.weight = nn.Parameter(torch.arange(64.0).reshape(8, 8).t())
        self.tied = self.turned
        self.register_buffer("part", torch.arange(100.0)[10:18])
        self.register_buffer("short", torch.randn(8).bfloat16())
        self.register_buffer("count", torch.arange(5))
        self.first.weight.data[3, 3] = float("nan")

    def forward(self, x: Tensor) -> Tensor:
        x = self.narrow(self.first(x).half()).float()
        return self.tied(self.turned(x)) + self.part + self.short.float() + self.count.sum()


@pytest.fixture(scope="module")
def model() -> Odd:
    torch.manual_seed(0)
    return Odd().eval()


def saved(model: Odd, kind: str, folder: Path) -> Path:
    x = torch.randn(4, 8)
    path = folder / f"model.{kind}"
    if kind == "pt2":
        torch.export.save(torch.export.export(model, (x,)), str(path))
    else:
        torch.jit.trace(model, x).save(str(path))
    return path


@pytest.mark.parametrize("kind", ["pt2", "pt"])
def test_the_statistics_are_those_of_the_tensors(model: Odd, kind: str, tmp_path: Path) -> None:
    capture = opscope.open(saved(model, kind, tmp_path), weights=True)
    found = {one.name: one for one in weights(capture)}
    assert not capture.all_warnings()
    own = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("tied")}
    assert set(own) <= {name.replace("tied", "turned") for name in found}
    for name, tensor in own.items():
        figures = (found.get(name) or found[name.replace("turned", "tied")]).figures
        numbers = tensor.double()
        numbers = numbers[numbers.isfinite()]
        assert figures["nan"] == int(tensor.isnan().sum()), name
        assert (figures["min"], figures["max"]) == (float(numbers.min()), float(numbers.max())), name
        assert figures["rms"] == pytest.approx(float(numbers.square().mean().sqrt())), name


def test_a_weight_has_the_hash_of_the_recorded_parameter(model: Odd, tmp_path: Path) -> None:
    read = opscope.open(saved(model, "pt2", tmp_path), weights=True)
    with opscope.record(model, values="stats") as live:
        model(torch.randn(4, 8))
    assert _hashes(read)["narrow.weight"] == _hashes(live)["narrow.weight"]


def _hashes(capture: opscope.Capture) -> dict[str, str]:
    names = capture.graph.pools.strings
    return {
        names[int(capture.graph.value_name[value])]: table.columns["hash"].values[row]
        for table in capture.facts(VALUES.name, 0)
        for row, value in enumerate(table.index.tolist())
    }


def test_without_asking_no_weight_is_read(model: Odd, tmp_path: Path) -> None:
    assert not any(opscope.open(saved(model, "pt2", tmp_path)).facts(VALUES.name, 0))


def test_the_command_line_names_the_bad_weight(model: Odd, tmp_path: Path) -> None:
    path = saved(model, "pt", tmp_path)
    told = _told("info", "--weights", path)
    lines = told[told.index("Weights") :].splitlines()
    assert "first.weight" in lines[2]
    assert "1 nan" in lines[2]
    rows = json.loads(_told("info", "--weights", "--json", path))
    first = next(one for one in rows["stages"][0]["weights"] if one["name"] == "first.weight")
    assert first["nan"] == 1
    assert first["elements"] == 2400


def _told(*arguments: str | Path) -> str:
    args = [sys.executable, "-m", "opscope", *map(str, arguments)]
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_without_weights_says_so(tmp_path: Path) -> None:
    path = tmp_path / "plain.opscope"
    opscope.trace(nn.ReLU(), torch.ones(3)).save(path)
    assert any("no statistics of weights" in text for text in opscope.open(path, weights=True).all_warnings())
