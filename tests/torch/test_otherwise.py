"""What PyTorch runs in another way because a recorder is active: marked in the capture, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import opscope
from opscope.ir.attributes import WITHOUT_RECORDER


def leaf(*shape: int) -> Tensor:
    return torch.rand(shape).add(0.1).requires_grad_()


def summed(make: Callable[[Tensor], Tensor]) -> Callable[[], Any]:
    return lambda: make(leaf(4, 5)).sum().backward()


def without_vectors(of: Callable[[Tensor], Any]) -> Callable[[], Any]:
    return lambda: of(torch.eye(3) + torch.ones(3, 3))


# What runs, an operator that runs so without a recorder alone, and how it is marked.
CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "sum of gradients": (summed(lambda x: x.sin() + x.cos()), "add_", "aten.add_, where nothing else"),
    "sort": (summed(lambda x: x.sort(1).values), "scatter_", "aten.scatter_"),
    "max": (summed(lambda x: x.max(1).values), "scatter_", "aten.scatter_"),
    "topk": (summed(lambda x: x.topk(2).values), "scatter_", "aten.scatter_"),
    "kthvalue": (summed(lambda x: x.kthvalue(2).values), "scatter_", "aten.scatter_"),
    "gather": (summed(lambda x: x.gather(1, torch.zeros(4, 2).long())), "scatter_add_", "aten.scatter_add_"),
    "cummax": (summed(lambda x: x.cummax(1).values), "scatter_add_", "aten.scatter_add_"),
    "index_select": (summed(lambda x: x.index_select(0, torch.tensor([1, 1]))), "index_add_", "aten.index_add_"),
    "largest of all": (summed(lambda x: x.max()), "masked_fill_", "another formula for MaxBackward1, with the same"),
    "cumprod": (summed(lambda x: x.cumprod(1)), "any", "another formula for CumprodBackward0, with the same"),
    "prod": (summed(lambda x: x.prod(1)), "item", "another formula for ProdBackward1, whose last digits"),
    "masked_fill": (
        lambda: torch.ones(4, 5).masked_fill(torch.ones(4, 5) > 0, leaf()).sum().backward(),
        "masked_select",
        "another formula for MaskedFillBackward1, whose last digits",
    ),
    "binary cross-entropy": (
        lambda: F.binary_cross_entropy_with_logits(torch.zeros(3), leaf(3)).backward(),
        "mul_",
        "aten.mul_",
    ),
}


def ran(work: Callable[[], Any]) -> set[str]:
    """Every operator that the profiler sees."""
    with torch.autograd.profiler.profile() as profile:
        work()
    return {event.name.removeprefix("aten::") for event in profile.function_events}


@pytest.mark.parametrize("case", CASES)
def test_what_a_recorder_changes_is_marked(case: str) -> None:
    work, alone, mark = CASES[case]
    plain = ran(work)
    with opscope.record() as cap:
        work()
    marks = {str(node.attrs.get(WITHOUT_RECORDER, "")) for node in cap.graph.nodes}
    assert alone in plain
    assert any(text.startswith(mark) for text in marks), marks
    assert alone not in {node.op.split(".")[1] for node in cap.graph.nodes}
    stats = cap.stats()
    assert stats.otherwise == json.loads(json.dumps(stats.to_dict()))["total"]["otherwise"]
    assert any(text.startswith(mark) for text in stats.otherwise)
    assert "Recorder: some operators run only because of it" in str(stats)
    assert any("last digits" in text for text in cap.all_warnings()) == ("digits" in mark)


@pytest.mark.parametrize("function", ["prod", "svdvals", "eigvalsh"])
def test_other_numbers_are_told(function: str) -> None:
    """Numbers that are not the same to the bit under any dispatch mode are never without a warning."""
    torch.manual_seed(0)
    matrix = torch.randn(7, 7)

    def work() -> Tensor:
        if function != "prod":
            return getattr(torch.linalg, function)(matrix + matrix.T)
        x = matrix.clone().requires_grad_()
        x.prod(1).sum().backward()
        assert x.grad is not None
        return x.grad

    plain = work()
    with opscope.record() as cap:
        recorded = work()
    torch.testing.assert_close(recorded, plain, rtol=1e-4, atol=1e-5)
    if not torch.equal(plain, recorded):
        assert any("last digits may differ" in text for text in cap.all_warnings())


def test_nothing_else_is_marked() -> None:
    model, matrix = torch.nn.Linear(4, 4), torch.randn(4, 4)
    with opscope.record(model) as cap:
        model(torch.randn(3, 4)).relu().sum().backward()
        torch.linalg.svd(matrix).U.sum()
        torch.linalg.eigh(matrix @ matrix.T).eigenvectors.sum()
        torch.linalg.pinv(matrix)
        matrix.prod()
    assert not cap.stats().otherwise
    assert not cap.all_warnings()
    assert "Recorder:" not in str(cap.stats())


def test_the_rank_is_written() -> None:
    """PyTorch's own `matrix_rank(out=…)` leaves it as it was under a dispatch mode."""
    before = torch.linalg.matrix_rank
    out, batch = torch.full((), -7), torch.empty(0, dtype=torch.long)
    with opscope.record():
        torch.linalg.matrix_rank(torch.eye(3), out=out)
        with opscope.record():
            torch.linalg.matrix_rank(torch.eye(3).expand(2, 3, 3), out=batch)
        assert torch.linalg.matrix_rank is not before
    assert (out.item(), batch.tolist()) == (3, [3, 3])
    assert torch.linalg.matrix_rank is before
