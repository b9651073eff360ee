"""How models are counted: copies, remembered operators and masks are what they stand for."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from zoo import ZOO

import opscope
from opscope.ir.text import dump
from opscope.tracers import counting
from opscope.tracers.torch.questions.copies import copied
from opscope.tracers.torch.recorder.fakes import FakeResults
from opscope.tracers.torch.recorder.masks import shown_by


def graph_of(model: nn.Module, *args: Any, train: bool) -> str:
    return dump(counting.count(model, args, {}, train=train, fake=True).capture)


@pytest.mark.parametrize("name", sorted(ZOO))
def test_what_is_remembered_is_what_torch_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same graph, with the same memory behind every value, whether operators are run or remembered."""
    model, loss = ZOO[name]()

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self) -> Tensor:
            return loss(self.model)

    for _ in range(2):  # at first TorchScript runs other operators, and torch's own memory of results is empty
        graph_of(Loss(), train=True)
    quick = graph_of(Loss(), train=True)
    monkeypatch.setattr(FakeResults, "_is_kept", lambda self, func: False)
    assert quick == graph_of(Loss(), train=True)


class Views(nn.Module):
    """Views of views, results that are their argument, two results of one memory, writes to parts."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):  # the second time is remembered
            a, b = x.chunk(2, dim=1)
            c = a.transpose(0, 1).unsqueeze(0).expand(3, -1, -1)[1].t()
            d = x.view(-1).as_strided((2, 2), (1, 2)).contiguous().contiguous()
            e = torch.complex(a, b).conj()
            y = x + c.sum() + d.sum() + e.abs().sum() + x.to(torch.float32).sum()
            y[:, 0].mul_(2)
            q, r = torch.linalg.qr(y @ y.t())
            x = x + (q + r).sum() + torch.ones(3).sum() + torch.arange(x.shape[1]) + y.split(1, 1)[0]
        return x


def test_views_and_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(4, 6)
    quick = graph_of(Views(), x, train=False)
    monkeypatch.setattr(FakeResults, "_is_kept", lambda self, func: False)
    assert quick == graph_of(Views(), x, train=False)


class Own(nn.Linear):
    def __deepcopy__(self, memo: dict[int, Any]) -> Own:
        return Own(1, 1)  # with numbers of its own


class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sizes = [1, {"two": 2}]
        self.shared = self.sizes
        self.none: nn.Module | None = None
        self.register_module("missing", None)
        self.own = Own(2, 2)
        first = nn.Linear(3, 3)
        self.layers = nn.Sequential(first, nn.Dropout(), first, nn.BatchNorm1d(3))
        self.layers[0].register_forward_hook(lambda module, args, out: None)
        self.kept = first.weight


def test_copies_are_those_of_deepcopy() -> None:
    model = Stateful()
    one, other = copied(model, {}), copy.deepcopy(model)
    assert [(name, type(m)) for name, m in one.named_modules()] == [(n, type(m)) for n, m in other.named_modules()]
    ones, others = one.layers.state_dict().values(), other.layers.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(ones, others, strict=True))
    for new in (one, other):
        assert new is not model
        assert new.layers[0] is new.layers[2]
        assert new.kept is new.layers[0].weight
        assert new.kept is not model.kept
        assert new.sizes == model.sizes
        assert new.sizes is new.shared
        assert new.sizes is not model.sizes
        assert new.own.in_features == 1
        assert new._modules["missing"] is None
        assert len(new.layers[0]._forward_hooks) == 1
        assert new.layers[0]._forward_hooks is not model.layers[0]._forward_hooks
        assert new.layers[1]._forward_hooks is not model.layers[1]._forward_hooks
        assert set(vars(new)) == set(vars(model))


@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        (torch.ones(4, 4, dtype=torch.bool).tril(), 10),
        (torch.zeros(4, 4).masked_fill(torch.ones(4, 4, dtype=torch.bool).triu(1), float("-inf")), 10),
        (torch.full((4, 4), torch.finfo(torch.float32).min).triu(1), 10),
        (torch.ones(2, 5, dtype=torch.bool).tril(3), 9),  # with a cache of three keys
        (torch.ones(5, 2, dtype=torch.bool).tril(), 9),
        (torch.ones(4, 4, dtype=torch.bool).tril() & torch.tensor([False, True, True, True]), 10),  # and padding
        (torch.ones(4, 4, dtype=torch.bool).tril().triu(-1), 10),  # and only the neighbour
        (torch.randn(4, 4) + torch.full((4, 4), float("-inf")).triu(1), 10),  # and a bias
        (torch.ones(2, 1, 4, 4, dtype=torch.bool).tril().expand(2, 3, 4, 4), 10),
        (torch.ones(4, 4, dtype=torch.bool), 0),
        (torch.zeros(4, 4), 0),
        (torch.randn(4, 4), 0),
        (torch.stack([torch.ones(4, 4).tril(), torch.ones(4, 4)]).bool(), 0),  # padding in one of the samples
        (torch.ones(4, 4, dtype=torch.bool, device="meta"), None),
    ],
)
def test_masks(mask: Tensor, shown: int | None) -> None:
    assert shown_by(torch, mask) == shown


class Attention(nn.Module):
    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.is_causal = is_causal

    def forward(self, q: Tensor, mask: Tensor | None = None) -> Tensor:
        return F.scaled_dot_product_attention(q, q, q, mask, is_causal=self.is_causal)


def test_causal_attention_is_told_from_dense() -> None:
    q, mask = torch.randn(2, 3, 8, 4, requires_grad=True), torch.ones(8, 8, dtype=torch.bool).tril()
    dense, causal = 2 * 3 * 8 * 8 * 8, 2 * 3 * 36 * 8
    for model, args in ((Attention(True), (q,)), (Attention(False), (q, mask))):
        total = opscope.stats(model, *args).total
        assert (total.macs, total.causal_macs, total.causal_at_most) == (dense, causal, False)
        total = opscope.stats(model, *args, train=True).total
        assert (total.macs, total.causal_macs) == (dense * 7 // 2, causal * 7 // 2)
    assert opscope.stats(Attention(False), q).total.causal_macs == dense
    assert opscope.stats(Attention(False), q, torch.rand(8, 8) > 0.5).total.causal_macs == dense
    fake = opscope.stats(Attention(False), q, mask, fake=True).total  # without numbers nobody knows
    assert (fake.macs, fake.causal_macs, fake.causal_at_most) == (dense, dense, True)


def test_counting_needs_no_source_lines() -> None:
    """They take longer to find than all the rest, and no figure needs them."""
    stats = opscope.stats(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.randn(2, 3))
    assert [node.path for node in stats.graph.nodes if node.op == "aten.relu"] == ["1"]
    assert all(not node.frames for node in stats.graph.nodes)


def test_an_operator_that_fails_on_fake_tensors_fails_as_it_would() -> None:
    class Wrong(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(2, -1).view(7, 7)

    with pytest.raises(RuntimeError, match="shape '\\[7, 7\\]' is invalid"):
        opscope.stats(Wrong(), torch.randn(4, 4), fake=True)


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.eye(4).to_sparse())

    def forward(self, x: Tensor) -> Tensor:
        return torch.sparse.mm(self.matrix, x)


def test_a_sparse_buffer_is_no_obstacle() -> None:
    stats = opscope.stats(Sparse(), torch.randn(4, 2))
    assert stats.total.macs == 4 * 2  # an entry of the matrix, a row of x
    assert not stats.total.at_least
