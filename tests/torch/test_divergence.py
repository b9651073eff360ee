"""Where two recordings stop agreeing: a Llama and a port of it, correct and with twenty planted bugs."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ports import BUGS, WORDS, Port, original
from torch import nn

import opscope
from opscope.analysis.diff.side_by_side import side_by_side
from opscope.analysis.values import own_figures
from opscope.errors import OpscopeError
from opscope.ir.facts import VALUES


def recorded(body: Callable[[], Any]) -> opscope.Capture:
    with torch.no_grad(), opscope.record(values="stats") as capture:
        body()
    return capture


@pytest.fixture(scope="module")
def llama() -> nn.Module:
    return original()


@pytest.fixture(scope="module")
def ids() -> torch.Tensor:
    return torch.randint(0, WORDS, (2, 7), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def truth(llama: nn.Module, ids: torch.Tensor) -> opscope.Capture:
    return recorded(lambda: llama(ids, use_cache=False))


def test_a_correct_port_agrees(llama: nn.Module, ids: torch.Tensor, truth: opscope.Capture) -> None:
    port = Port(llama)
    found = opscope.diverge(truth, recorded(lambda: port(ids)))
    assert found.first is None, found
    assert found.matched > 0.7 * found.compared
    assert found.error < 1e-6
    assert "the two agree" in str(found)


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_where_it_is(
    bug: str, llama: nn.Module, ids: torch.Tensor, truth: opscope.Capture
) -> None:
    port = Port(llama, bug)
    found = opscope.diverge(truth, recorded(lambda: port(ids)))
    assert found.first is not None
    assert found.first.a is not None
    assert BUGS[bug] in found.first.a.path, found
    assert not found.first.explained_by_inputs
    if BUGS[bug] not in ("rotary_emb", "norm") and bug != "embedding scaled":
        assert "layers/1" in found.first.a.path or bug in ("mask off by one", "no mask"), found
    assert found.first.b is not None


def test_a_recording_agrees_with_itself_and_with_another_run(llama: nn.Module, ids: torch.Tensor) -> None:
    one, two = (recorded(lambda: llama(ids, use_cache=False)) for _ in range(2))
    for other in (one, two):
        found = opscope.diverge(one, other)
        assert found.first is None
        assert found.error == 0.0


def test_another_weight_is_named_itself(llama: nn.Module, ids: torch.Tensor, truth: opscope.Capture) -> None:
    weight = llama.model.layers[1].mlp.down_proj.weight
    kept = weight.data.clone()
    weight.data[0] += 1.0
    other = recorded(lambda: llama(ids, use_cache=False))
    weight.data = kept
    found = opscope.diverge(truth, other)
    assert found.first is not None
    assert found.first.a is not None
    assert found.first.b is not None
    assert (found.first.a.op, found.first.b.op) == ("parameter", "parameter")
    assert found.first.a.name.endswith("layers.1.mlp.down_proj.weight")


def test_coarser_numbers_of_the_whole_are_no_bug(llama: nn.Module, ids: torch.Tensor, truth: opscope.Capture) -> None:
    coarse = original().bfloat16()
    found = opscope.diverge(truth, recorded(lambda: coarse(ids, use_cache=False)))
    assert found.first is None, found


class Coarse(nn.Module):
    """A linear layer that computes with float8 weights and inputs, as training in float8 does."""

    def __init__(self, theirs: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, theirs.weight.detach().abs().max() / torch.finfo(dtype).max
        self.register_buffer("weight", (theirs.weight.detach() / self.scale).to(dtype))
        self.bias = theirs.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax() / torch.finfo(self.dtype).max
        x = (x / scale).to(self.dtype).to(x.dtype) * scale
        return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)


def coarse(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, Coarse(child, dtype))
        else:
            coarse(child, dtype)
    return model


@pytest.mark.parametrize("other", [torch.float32, torch.bfloat16])
def test_what_float8_rounds_is_no_bug(
    other: torch.dtype, llama: nn.Module, ids: torch.Tensor, truth: opscope.Capture
) -> None:
    port = coarse(original().to(other), torch.float8_e4m3fn)
    found = opscope.diverge(truth, recorded(lambda: port(ids, use_cache=False)))
    assert found.first is None, found
    assert found.error > 1e-3
    port.model.layers[1].mlp.act_fn = nn.Tanh()
    found = opscope.diverge(truth, recorded(lambda: port(ids, use_cache=False)))
    assert found.first is not None
    assert found.first.a is not None
    assert "layers/1/mlp" in found.first.a.path, found


def test_models_that_can_run_again_show_their_numbers() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 4)).eval()
    x = torch.randn(4, 8)
    assert opscope.diverge(model, copy.deepcopy(model).double(), x).first is None
    exported = torch.export.export(model, (x,)).module()
    assert opscope.diverge(model, exported, x).first is None
    other = copy.deepcopy(model)
    other[1][1] = nn.GELU()
    for port in (other, torch.export.export(other, (x,)).module()):
        first = opscope.diverge(model, port, x).first
        assert first is not None
        assert first.a is not None
        assert first.b is not None
        assert (first.a.op, first.b.op) == ("aten.relu", "aten.gelu")
        assert first.numbers is not None
        assert first.numbers.size == 32
        assert first.numbers.differ > 20


def test_training_against_evaluation_is_the_dropout() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 4)).eval()
    first = opscope.diverge(model, copy.deepcopy(model).train(), torch.randn(4, 8)).first
    assert first is not None
    assert first.b is not None
    assert first.b.path.endswith("/1")


def test_what_was_compiled_is_compared_by_its_results() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4))
    x = torch.randn(4, 8)
    assert opscope.diverge(model, torch.compile(model, backend="aot_eager"), x).first is None
    other = copy.deepcopy(model)
    other[1] = nn.SiLU()
    assert opscope.diverge(model, torch.compile(other, backend="aot_eager"), x).first is not None


def test_all_numbers_of_a_chosen_part_are_kept() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    with opscope.record(model, values="full", part="scope:1") as capture:
        result = model(torch.ones(2, 4))
        result.sum().backward()
    (table,) = (table for table in capture.tables.values() if table.fact == VALUES.name)
    whole = table.columns["values"]
    kept = {
        capture.graph.value(value).producer.op: numbers
        for value, numbers, known in zip(table.index.tolist(), whole.values, whole.known, strict=True)
        if known
    }
    assert {"aten.relu", "aten.threshold_backward"} <= set(kept)
    assert "aten.addmm" in kept
    assert len(kept["aten.addmm"]) == 8  # of the second layer alone
    assert kept["aten.relu"] == pytest.approx(result.detach().reshape(-1).tolist())
    with pytest.raises(OpscopeError, match="only op:, scope: and class:"):
        opscope.record(values="full", part="nan:>0")


def test_without_statistics_it_says_what_to_do(truth: opscope.Capture) -> None:
    with opscope.record() as plain:
        torch.ones(3).sum()
    with pytest.raises(OpscopeError, match="record both with values='stats'"):
        opscope.diverge(truth, plain)


def test_the_command_line(llama: nn.Module, ids: torch.Tensor, truth: opscope.Capture, tmp_path: Path) -> None:
    port = Port(llama, "another activation")
    truth.save(tmp_path / "a.opscope")
    recorded(lambda: port(ids)).save(tmp_path / "b.opscope")
    args = [sys.executable, "-m", "opscope", "diff", "a.opscope", "b.opscope", "--values"]
    done = subprocess.run([*args, "--json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["first"]
    assert (first["a"]["op"], first["b"]["op"]) == ("aten.silu", "aten.gelu")
    page = subprocess.run(
        [*args, "--fail-on", "diverges", "--html", "ab.html"], cwd=tmp_path, capture_output=True, text=True
    )
    assert page.returncode == 1
    assert "fails: the two diverge" in page.stderr
    assert "<html" in (tmp_path / "ab.html").read_text()[:200]
    text = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "the two diverge" in text
    assert "ports.py" in text


def test_two_recordings_beside_each_other_have_their_errors(
    llama: nn.Module, ids: torch.Tensor, truth: opscope.Capture
) -> None:
    port = Port(llama, "another activation")
    other = recorded(lambda: port(ids))
    both = side_by_side((truth, truth.stages[0], "a"), (other, other.stages[0], "b"))
    for stage, op in enumerate(("aten.silu", "aten.gelu")):
        figures = own_figures(both, stage)["error"].by_node
        graph = both.stages[stage].graph
        lost = [graph.node(int(node)) for node in (figures.known & (figures.numbers == 1.0)).nonzero()[0]]
        assert lost[0].op == op
        assert figures.known.sum() > 0.7 * graph.n_nodes
        assert ((figures.numbers < 1e-5) & figures.known).sum() > len(lost)
    assert any(text.startswith("the two diverge") for text in both.warnings)
