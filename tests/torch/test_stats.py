"""opscope.stats on live models: what it counts, and that nothing is different afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from zoo import GPT, ZOO, ResNet

import opscope


class Output(NamedTuple):
    loss: Tensor
    logits: Tensor


class Net(nn.Module):
    """Batch norm, dropout, tied and unused parameters; takes a dict, returns a named tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.norm = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight
        self.never = nn.Linear(3, 3)
        self.frozen = nn.Parameter(torch.ones(6), requires_grad=False)

    def forward(self, batch: dict[str, Tensor], *, scale: float = 1.0) -> Output:
        h = self.embed(batch["ids"]).mean(1) * self.frozen
        logits = self.head(self.drop(self.norm(h))) * scale
        return Output(F.cross_entropy(logits, batch["ids"][:, 0]), logits)


def batch() -> dict[str, Tensor]:
    return {"ids": torch.randint(0, 11, (4, 5))}


def state(model: nn.Module) -> Any:
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules()]
    grads = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    return (
        {name: tensor.clone() for name, tensor in model.state_dict().items()},
        [m.training for m in model.modules()],
        hooks,
        grads,
        torch.random.get_rng_state(),
        [p._version for p in model.parameters()],
    )


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("fake", [False, True])
@pytest.mark.parametrize("mode", [True, False])
def test_the_model_is_left_as_it_was(train: bool, fake: bool, mode: bool) -> None:
    model = Net().train(mode)
    model(batch()).loss.backward()  # gradients that must stay
    given = batch()
    before = state(model)
    first = opscope.stats(model, given, scale=2.0, train=train, fake=fake)
    assert same(state(model), before)
    second = opscope.stats(model, given, scale=2.0, train=train, fake=fake)
    assert first.to_dict() == second.to_dict()
    assert not first.total.at_least


class Failing(Net):
    def forward(self, batch: dict[str, Tensor], *, scale: float = 1.0) -> Output:
        super().forward(batch, scale=scale)
        raise RuntimeError("on purpose")


@pytest.mark.parametrize("fake", [False, True])
def test_also_after_an_exception(fake: bool) -> None:
    model, given = Failing(), batch()
    before = state(model)
    with pytest.raises(RuntimeError, match="on purpose"):
        opscope.stats(model, given, train=True, fake=fake)
    assert same(state(model), before)
    assert opscope.stats(Net(), batch()).total.macs == 4 * 6 * 11


def test_parameters_with_all_their_names() -> None:
    found = opscope.stats(Net(), batch()).parameters
    assert found.count == 11 * 6 + 6 + 6 + 12 + 6
    assert found.frozen == 6
    assert found.tied == [("embed.weight", "head.weight")]
    assert found.unused == ["never.weight", "never.bias"]


class Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        both = torch.randn(20)
        self.a, self.b = nn.Parameter(both[:10].view(2, 5)), nn.Parameter(both[10:].view(2, 5))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.a.t() + x @ self.b.t()


@pytest.mark.parametrize("fake", [False, True])
def test_parts_of_a_flat_buffer_are_not_tied(fake: bool) -> None:
    stats = opscope.stats(Flat(), torch.randn(3, 5), fake=fake)
    assert (stats.total.params, stats.parameters.tied, stats.parameters.unused) == (20, [], [])
    assert stats.total.macs == 60
    assert sum(row["params"] for row in stats.by_module(depth=1).rows) == 20


def test_a_backward_pass_is_counted_from_what_ran() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    stats = opscope.stats(model, torch.randn(3, 8), train=True)
    # The first layer's input needs no gradient.
    assert stats.phases["forward"]["macs"] == 3 * (8 * 16 + 16 * 4)
    assert stats.phases["backward"]["macs"] == 3 * (8 * 16 + 2 * 16 * 4)


@pytest.mark.parametrize("name", ["resnet18", "gpt", "lstm", "diffusion_unet"])
def test_fake_tensors_count_the_same(name: str) -> None:
    model, loss = ZOO[name]()

    class Loss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self) -> Tensor:
            return loss(self.model)

    torch.manual_seed(0)
    real = opscope.stats(Loss(), train=True, fake=False)
    fake = opscope.stats(Loss(), train=True, fake=True)
    for phase in ("forward", "backward"):
        for figure in ("macs", "other", "unknown"):
            assert fake.phases[phase][figure] == real.phases[phase][figure]
    if name != "lstm":  # its real kernel has a workspace
        assert fake.phases == real.phases
        assert fake.total.peak_bytes == real.total.peak_bytes


class Routed(nn.Module):
    """How many rows go through depends on the numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x[x[:, 0] > 0])


def test_where_shapes_depend_on_data_real_tensors_are_used() -> None:
    x = torch.tensor([[1.0] * 4, [-1.0] * 4, [2.0] * 4])
    stats = opscope.stats(Routed(), x, fake=True)
    assert stats.total.macs == 2 * 4 * 4
    assert stats.guesses == ()


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.fc(x) if mask.all() else x


def test_a_guessed_branch_is_listed() -> None:
    with torch.device("meta"):
        model, x, mask = Branching(), torch.randn(2, 4), torch.ones(2, dtype=torch.bool)
    stats = opscope.stats(model, x, mask)
    assert stats.total.macs == 2 * 4 * 4
    (guess,) = stats.guesses
    assert "test_stats.py:" in guess
    assert "taken as True" in guess
    assert "Guessed: " in str(stats)


def test_a_model_without_numbers_is_counted() -> None:
    with torch.device("meta"):
        model = GPT(width=1024, layers=4, heads=16, words=50257, length=64)
    stats = opscope.stats(model, torch.randint(0, 50257, (2, 64)), train=True)
    assert stats.total.params == sum(p.numel() for p in model.parameters())
    once_more = 4 * 2 * 64 * 64 * 1024  # attention multiplies queries by keys again on its way back
    assert stats.phases["backward"]["macs"] == 2 * stats.phases["forward"]["macs"] + once_more
    assert all(p.is_meta for p in model.parameters())
    assert (stats.total.samples, stats.total.tokens) == (2, 128)


def test_a_formula_of_ones_own() -> None:
    model, loss = ZOO["custom_operator"]()
    with opscope.record(model) as cap:
        loss(model)
    (op,) = cap.stats().unknown_ops
    assert op.endswith(".scaled")
    try:

        @opscope.formula(op, framework="torch")
        def scaled(inputs: Any, outputs: Any, attrs: Any) -> opscope.ops.Cost:
            return opscope.ops.Cost(other=outputs[0].elements)

        assert not cap.stats().total.at_least
    finally:
        opscope.ops.cost.registered.clear()


def _step(model: nn.Module, loss: Callable[[], Tensor]) -> int:
    """Peak of what the profiler says is allocated in a training step, over what was there before."""
    model.zero_grad(set_to_none=True)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        loss().backward()
    events = sorted(
        (e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()
    )
    live = peak = 0
    for event in events:
        live += event.nbytes()
        peak = max(peak, live)
    model.zero_grad(set_to_none=True)
    return peak


@pytest.mark.parametrize("name", ["gpt", "resnet"])
def test_peak_memory_is_that_of_the_profiler(name: str) -> None:
    if name == "gpt":
        model, x = GPT(width=128, layers=4, heads=4, words=1000, length=64), torch.randint(0, 1000, (4, 65))
        loss = lambda: F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())  # noqa: E731
    else:
        model, x, y = ResNet(), torch.randn(4, 3, 96, 96), torch.randint(0, 1000, (4,))
        loss = lambda: F.cross_entropy(model(x), y)  # noqa: E731
    loss().backward()
    truth = _step(model, loss)
    with opscope.record(model) as cap:
        loss().backward()
    memory = cap.stats().memory
    outside = sum(
        int(size) for size, owner in zip(memory.size, memory.owner, strict=True) if cap.graph.value_producer[owner] < 0
    )
    assert (memory.peak_bytes - outside) / truth == pytest.approx(1, abs=0.03)
