"""The recorder on every model of the zoo: nothing fails, nothing changes, nothing is left without a word."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from zoo import ZOO

import opscope


def seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def made(name: str) -> Any:
    """A new model and its loss, the same every time."""
    seed()
    return ZOO[name]()


def train(model: Any, loss: Any, optimizer: Any) -> torch.Tensor:
    seed()  # dropout
    value = loss(model)
    value.backward()
    optimizer.step()
    return value


@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_training_step_is_captured_and_unchanged(name: str) -> None:
    model, loss = made(name)
    twin, _ = made(name)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, twin)]

    expected = train(twin, loss, optimizers[1])
    with opscope.record(model, optimizer=optimizers[0]) as cap:
        value = train(model, loss, optimizers[0])

    assert_same(value, expected)
    for (path, ours), theirs in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert_same(ours, theirs, path)
        assert (ours.grad is None) == (theirs.grad is None), path
        if ours.grad is not None:
            assert_same(ours.grad, theirs.grad, path)
    for (path, ours), theirs in zip(model.named_buffers(), twin.buffers(), strict=True):
        assert_same(ours, theirs, path)

    graph = cap.graph
    assert not [warning for warning in cap.all_warnings() if "could not be" in warning]
    linked = set(graph.links_of("grad").target.tolist()) | set(graph.links_of("recompute").target.tolist())
    phases: set[str] = set()
    for node in graph.nodes:
        phases.add(node.phase)
        if node.phase in ("backward", "recompute"):
            assert node.index in linked or node.attrs.get("unpaired"), node
            assert "before the recording" not in node.attrs.get("unpaired", ""), node
    assert phases >= {"forward", "backward", "optimizer"}
    for value_ in graph.values:
        if value_.producer is None:
            assert value_.name, f"{value_}, read by {value_.users}"
    parameters = {v.name for v in graph.values if v.role == "parameter" and v.producer is None}
    known = {path for path, _ in model.named_parameters(remove_duplicate=False)}
    assert parameters <= known
    assert {path for path, p in model.named_parameters() if p.grad is not None} <= parameters


@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_forward_pass_is_captured_and_unchanged(name: str) -> None:
    model, loss = made(name)
    twin, _ = made(name)
    model.eval(), twin.eval()
    seed()
    expected = loss(twin)
    seed()
    with opscope.record(model) as cap:
        value = loss(model)
    assert_same(value, expected)
    assert cap.graph.n_nodes > 0
    assert not [warning for warning in cap.all_warnings() if "could not be" in warning]


def assert_same(ours: torch.Tensor, theirs: torch.Tensor, where: str = "") -> None:
    """Bitwise, also where numbers are not numbers."""
    if ours.is_sparse:
        ours, theirs = ours.coalesce(), theirs.coalesce()
        assert torch.equal(ours.indices(), theirs.indices()), where
        ours, theirs = ours.values(), theirs.values()
    assert ours.detach().numpy().tobytes() == theirs.detach().numpy().tobytes(), where
