"""opscope.ways: which way works on a model, what each loses, and that trying them changes nothing."""

from __future__ import annotations

import inspect
import logging
import random
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from models import GPT, Branching, Choosing, Inner, ResNet18, Tagger
from torch import nn
from zoo import ZOO

import opscope
from opscope.tracers.torch.questions.ways import ORDER

MODELS = Path(inspect.getsourcefile(Branching))


def line_of(text: str, file: Path = MODELS) -> int:
    (found,) = [i for i, line in enumerate(file.read_text("utf-8").splitlines(), start=1) if text in line]
    return found


def ends_with(where: str, file: Path, line: int) -> bool:
    return where.endswith(f"{file.name}:{line}")


def test_what_works_on_a_resnet():
    ways = opscope.ways(ResNet18(), torch.randn(2, 3, 32, 32))
    assert [way.how for way in ways] == list(ORDER)
    assert [way.how for way in ways if not way.works] == []
    assert [way.how for way in ways if way.baked] == []
    assert ways.captures == {}
    assert ways["dynamo"].note == "1 graph, no break; the backward pass"
    assert "the optimizer" in ways["joint"].lost
    assert ways["export"].operators == ways["export-strict"].operators
    with pytest.raises(KeyError, match=r"no way 'tea' \(there are: record, export"):
        ways["tea"]


def test_operators_are_those_of_the_captures():
    x = torch.randint(0, 32, (2, 8))
    ways = opscope.ways(GPT(), x)
    for how in ("record", "export", "fx", "dynamo", "autograd"):
        assert ways[how].operators == opscope.trace(GPT(), x, how=how).graph.n_nodes
    assert ways["jit-trace"].operators == opscope.trace(GPT(), x, how="jit-trace").stage("inlined").graph.n_nodes
    assert ways["joint"].operators == opscope.trace(GPT(), x, how="joint").stage("joint").graph.n_nodes


def test_a_branch_that_is_baked_in_is_found_with_its_line():
    ways = opscope.ways(Branching(), torch.randn(3, 4).abs())
    line = line_of("if x.sum() > 0:")
    traced = ways["jit-trace"]
    assert (traced.works, traced.verdict, traced.baked) == (True, "yes, but", "bakes in a branch")
    assert ends_with(traced.where, MODELS, line)
    assert f"another input goes another way: {traced.where}" in ways["record"].note
    for how in ("export", "export-strict", "fx"):
        assert not ways[how].works
        assert ways[how].operators is None
        assert ends_with(ways[how].where, MODELS, line), how
    assert ways["jit-script"].verdict == "yes"  # it reads the branch
    assert re.search(rf"\d graphs, \d breaks?: what runs in between \(.*models.py:{line}\)", ways["dynamo"].note)


def test_two_branches_of_the_same_operators():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.a(x) if bool(x.sum() > 0) else self.b(x)  # the branch

    traced = opscope.ways(Net(), torch.randn(3, 4))["jit-trace"]
    assert traced.baked == "bakes in a branch"
    assert ends_with(traced.where, Path(__file__), line_of("# the " + "branch", Path(__file__)))


def test_a_number_that_is_baked_in():
    class Net(nn.Module):
        def forward(self, x):
            return x * float(x.sum())  # the number

    class Unseen(nn.Module):
        def forward(self, x):
            return x * float(x.numpy().sum())

    here = Path(__file__)
    traced = opscope.ways(Net(), torch.randn(3, 4))["jit-trace"]
    assert traced.baked == "bakes in a number that Python reads"
    assert ends_with(traced.where, here, line_of("# the " + "number", here))
    assert opscope.ways(Unseen(), torch.randn(3, 4))["jit-trace"].verdict == "yes, but"


def test_whole_numbers_stay_in_their_range():
    seen = []

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(5, 3)

        def forward(self, x):
            seen.append((int(x.min()), int(x.max())))
            return self.words(x) if x[0] < 3 else -self.words(x)

    traced = opscope.ways(Net(), torch.tensor([0, 1, 4, 2]))["jit-trace"]
    assert traced.baked == "bakes in a branch"
    assert set(seen) == {(0, 4)}


@pytest.mark.parametrize("model", ["dropout", "cond", "lstm", "gru", "counter"])
def test_what_is_not_baked_in(model: str):
    """Random numbers, higher-order operators and state that changes from call to call are not mistaken for it."""
    made = {
        "dropout": lambda: (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), torch.randn(3, 4)),
        "cond": lambda: (Choosing(), torch.randn(3, 4)),
        "lstm": lambda: (Tagger(), torch.randn(2, 5, 4)),
        "gru": lambda: (ZOO["gru_cells"]()[0], torch.randn(5, 2, 4)),
        "counter": lambda: (ZOO["views_and_writes"]()[0], torch.randn(3, 6)),
    }[model]
    ways = opscope.ways(*made())
    assert [way.how for way in ways if way.baked] == []
    assert ways["record"].works


def test_a_detector():
    model, _ = ZOO["detector"]()
    ways = opscope.ways(model, torch.randn(2, 3, 16, 16))
    assert ways["record"].works
    assert not ways["fx"].works
    assert ways["jit-trace"].verdict == "yes, but"
    assert "zoo.py:" in ways["jit-trace"].where


def test_an_lstm_says_why_dynamo_has_no_graph():
    ways = opscope.ways(Tagger(), torch.randn(2, 5, 4))
    assert not ways["dynamo"].works
    assert "LSTM" in ways["dynamo"].reason
    assert ends_with(ways["dynamo"].where, MODELS, line_of("states, _ = self.lstm(x)"))


class Restless(nn.Module):
    """Changes everything that a call can change."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        with torch.no_grad():
            self.norm.weight.mul_(1.01)
        random.random()
        np.random.rand()
        logging.getLogger("restless").error("loud")
        print("loud")
        warnings.warn("loud", stacklevel=1)
        torch._dynamo.config.suppress_errors = True
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        x += 1
        return self.drop(self.norm(x))


def test_nothing_is_changed(capfd):
    import torch._dynamo

    model, x = Restless(), torch.randn(3, 4)
    model.drop.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    given, training = x.clone(), [module.training for module in model.modules()]
    settings = torch._dynamo.config.get_config_copy()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ways = opscope.ways(model, x)
    assert ways["record"].works
    assert model.calls == 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(x, given)
    assert [module.training for module in model.modules()] == training
    assert torch._dynamo.config.get_config_copy() == settings
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states[1:]
    assert torch.get_default_dtype() is torch.float32
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not logging.root.manager.disable
    assert capfd.readouterr() == ("", "")


def test_a_model_that_cannot_be_copied():
    model = Inner()
    model.kept = model.fc(torch.ones(1, 4))  # a result, which deepcopy refuses
    model.norm = nn.BatchNorm1d(4)
    model.forward = lambda x: model.norm(model.fc(x))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    version = model.fc.weight._version
    assert opscope.ways(model, torch.randn(3, 4))["record"].works
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.fc.weight._version == version
    model.kept.sum().backward()  # what the user had not run yet still runs


def test_a_function():
    layer = Inner()

    def call(x, *, scale):
        return layer(x) * scale

    ways = opscope.ways(call, torch.randn(3, 4), scale=torch.tensor(2.0))
    assert ways["record"].works
    assert ways["export"].works
    assert ways["autograd"].works


def test_a_model_on_meta_tensors_is_not_compared():
    with torch.device("meta"):
        ways = opscope.ways(Inner(), torch.randn(3, 4))
    assert ways["record"].works
    assert ways["export"].works


def test_a_model_that_fails_is_told_as_such():
    with pytest.raises(opscope.OpscopeError, match=r"^the model fails on these arguments at .*models.py:\d+: Runt"):
        opscope.ways(Inner(), torch.randn(3, 5))


def test_table_html_and_rows():
    ways = opscope.ways(Branching(), torch.randn(3, 4).abs())
    lines = str(ways).splitlines()
    assert len(lines) == 1 + len(ORDER)
    assert str(ways) == repr(ways)
    column = lines[0].index("what is lost")
    assert all(line[column - 1] == " " != line[column] for line in lines)
    narrow = ways.table(width=90).splitlines()
    assert max(map(len, narrow)) <= 90
    assert " ".join(" ".join(narrow).split()) == " ".join(str(ways).split())
    page = ways._repr_html_()
    assert page.count("<tr>") == len(lines)
    assert "&gt; 0" in page  # torch's own words hold `x.sum() > 0`
    rows = ways.to_dict()
    assert list(rows) == list(ORDER)
    assert rows["jit-trace"]["where"] == ways["jit-trace"].where
    assert rows["fx"]["works"] is False
