"""Where two recordings stop agreeing: a Llama and a port of it, correct and with twenty planted bugs."""

from __future__ import annotations

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
from opscope.errors import OpscopeError


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
    text = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True).stdout
    assert "the two diverge" in text
    assert "ports.py" in text
