"""What the recorder could not see or record is marked in every figure that it touches; what it can see is counted."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import opscope
from opscope.ir import verify_capture
from opscope.tracers.torch.recorder import memory as recorder_memory


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


# -- nested tensors ------------------------------------------------------------------------------------


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.m = mlp()

    def forward(self, x: Tensor) -> Tensor:
        nested = torch.nested.as_nested_tensor([x[:2], x])
        return torch.nested.to_padded_tensor(self.m(nested), 0.0)


def test_strided_nested_tensors_are_recorded() -> None:
    model, x = Nested(), torch.randn(5, 8)
    stats = opscope.stats(model, x)
    assert stats.total.macs == 7 * (8 * 16 + 16 * 4)
    assert not stats.total.at_least
    assert not stats.gaps
    assert not stats.parameters.unused
    cap = opscope.trace(model, x)
    linear = next(node for node in cap.graph.nodes if node.op == "aten.linear")
    assert linear.attrs["nested_sizes"] == {
        "arguments": {"input": [[2, 8], [5, 8]]},
        "results": {"0": [[2, 16], [5, 16]]},
    }
    assert linear.outputs[0].type.shape == (7, 16)  # as many numbers as there are


def test_a_training_step_on_nested_tensors() -> None:
    model, x = Nested(), torch.randn(5, 8)
    stats = opscope.stats(model, x, train=True)
    assert stats.phases["forward"]["macs"] == 7 * 192
    assert stats.phases["backward"]["macs"] == 7 * (8 * 16 + 2 * 16 * 4)  # the input needs no gradient
    assert not stats.total.at_least


def test_the_fast_path_of_a_transformer_counts_what_is_not_padding() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval().requires_grad_(False)
    padding = torch.tensor([[False] * 5, [False] * 2 + [True] * 3])
    stats = opscope.stats(model, torch.randn(2, 5, 8), src_key_padding_mask=padding)
    one = 7 * (4 * 8 * 8 + 2 * 8 * 16) + 2 * 8 * (5 * 5 + 2 * 2)
    assert stats.total.macs == 2 * one
    assert not stats.total.at_least
    assert not stats.parameters.unused


ATTENTION = nn.MultiheadAttention(8, 2, batch_first=True).eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("call", "macs"),
    [
        (lambda n: torch.matmul(n, n.transpose(1, 2)), 8 * (4 + 25)),
        (lambda n: torch.bmm(n, n.transpose(1, 2)), 8 * (4 + 25)),
        (lambda n: ATTENTION(n, n, n, need_weights=False), 7 * 4 * 64 + 2 * 8 * (4 + 25)),
        (lambda n: torch.softmax(n, -1) + n, 0),
    ],
)  # fmt: skip
def test_operators_on_nested_tensors(call: Any, macs: int) -> None:
    nested = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(5, 8)])
    stats = opscope.trace(call, nested).stats()
    assert stats.total.macs == macs
    assert not stats.total.at_least


def test_a_nested_tensor_among_the_variables_is_no_obstacle() -> None:
    bystander = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(5, 8)])
    assert opscope.trace(mlp(), torch.randn(4, 8)).stats().total.macs == 4 * 192
    assert bystander.size(0) == 2


# -- threads -------------------------------------------------------------------------------------------


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(mlp() for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        with ThreadPoolExecutor(3) as pool:
            return torch.stack(list(pool.map(lambda part: part(x), self.parts))).sum(0)


class Started(Pooled):
    def forward(self, x: Tensor) -> Tensor:
        results: dict[int, Tensor] = {}

        def work(place: int) -> None:
            results[place] = self.parts[place](x)

        threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum((results[place] for place in range(4)), torch.zeros(()))


class OldPool(Pooled):
    def forward(self, x: Tensor) -> Tensor:
        with ThreadPool(2) as pool:
            first = pool.map(lambda part: part(x), list(self.parts)[:3])
            return sum([*first, pool.apply(self.parts[3], (x,))], torch.zeros(()))


@pytest.mark.parametrize("kind", [Pooled, Started, OldPool])
def test_work_in_other_threads_is_recorded_with_its_modules(kind: type[Pooled]) -> None:
    before = threading.Thread.start, ThreadPoolExecutor.submit, ThreadPool.apply_async
    torch.manual_seed(0)
    model, x = kind(), torch.randn(4, 8)
    expected = model(x)
    expected.sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    with opscope.record(model) as cap:
        y = model(x)
        y.sum().backward()
    assert torch.equal(y, expected)
    assert all(torch.equal(a, p.grad) for a, p in zip(gradients, model.parameters(), strict=True) if a is not None)
    assert (threading.Thread.start, ThreadPoolExecutor.submit, ThreadPool.apply_async) == before
    verify_capture(cap)
    stats = cap.stats()
    assert stats.phases["forward"]["macs"] == 4 * 4 * 192
    assert not stats.total.at_least
    assert not stats.parameters.unused
    forward = [node.path for node in cap.graph.nodes if node.op == "aten.addmm"]
    assert sorted(forward) == sorted(f"model/parts/{part}/{layer}" for part in range(4) for layer in (0, 2))
    _gradients_are_of_their_own_part(cap)


def _gradients_are_of_their_own_part(cap: Any) -> None:
    """Every thread counts its gradient functions from 0: they must not be mixed up."""
    backward = [
        node for node in cap.graph.nodes if node.phase == "backward" and node.attrs.get("autograd") == "AddmmBackward0"
    ]
    assert backward
    links = cap.graph.links["grad"]
    forward = dict(zip(links.target.tolist(), links.source.tolist(), strict=True))
    for node in backward:
        assert node.index in forward, node.attrs.get("unpaired")
        weights = {
            value.storage.name for value in node.inputs if value is not None and value.storage.name.startswith("parts.")
        }
        weights = {name for name in weights if not name.endswith(".grad")}
        path = cap.graph.node(forward[node.index]).path.removeprefix("model/").replace("/", ".")
        assert all(name.startswith(f"{path}.") for name in weights)


def test_threads_are_as_they_were() -> None:
    thread = threading.Thread(target=lambda: torch.ones(2) + 1)
    with opscope.record() as cap:
        thread.start()
        with pytest.raises(RuntimeError):
            thread.start()
        thread.join()
    assert "run" not in vars(thread)
    assert [node.op for node in cap.graph.nodes] == ["aten.ones", "aten.add.Tensor"]


class Elsewhere(nn.Module):
    """Its first layer is called in a thread that was there before, by way of what is given."""

    def __init__(self, way: type[Any]) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.todo, self.done = way(), way()

    def work(self) -> None:
        while (x := self.todo.get()) is not None:
            self.done.put(self.first(x))

    def first(self, x: Tensor) -> Tensor:
        return self.a(x)

    def forward(self, x: Tensor) -> Tensor:
        self.todo.put(x)
        return self.b(self.done.get())


class WithoutModules(Elsewhere):
    def first(self, x: Tensor) -> Tensor:
        return x @ self.a.weight.T + self.a.bias


class Event:
    """One place for an item, with the methods of a queue."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def put(self, item: Any) -> None:
        self.item = item
        self.event.set()

    def get(self) -> Any:
        self.event.wait()
        self.event.clear()
        return self.item


class Condition(Event):
    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.items: list[Any] = []

    def put(self, item: Any) -> None:
        with self.condition:
            self.items.append(item)
            self.condition.notify_all()

    def get(self) -> Any:
        with self.condition:
            self.condition.wait_for(lambda: self.items)
            return self.items.pop()


class Polled(Condition):
    def get(self) -> Any:
        while not self.items:
            time.sleep(0.001)
        return self.items.pop()


def started(work: Callable[[], Any]) -> threading.Thread:
    """A thread that has come to where it waits."""
    thread = threading.Thread(target=work, daemon=True, name="a worker")
    thread.start()
    assert thread.ident is not None
    clock, readings = time.pthread_getcpuclockid(thread.ident), list[int]()
    while len(set(readings[-5:])) != 1 or len(readings) < 5:
        time.sleep(0.01)
        readings.append(time.clock_gettime_ns(clock))
    return thread


@pytest.mark.parametrize("way", [queue.Queue, queue.LifoQueue, Event, Condition])
@pytest.mark.parametrize("kind", [Elsewhere, WithoutModules])
def test_what_is_handed_to_a_thread_that_was_there_before_is_recorded(kind: type[Elsewhere], way: type[Any]) -> None:
    before = queue.Queue.put, queue.Queue.get, threading.Condition.notify
    model = kind(way)
    thread = started(model.work)
    for _ in range(2):
        with opscope.record(model) as cap:
            model(torch.randn(4, 8)).sum().backward()
        verify_capture(cap)
        stats = cap.stats()
        assert stats.phases["forward"]["macs"] == 2 * 256
        assert not stats.total.at_least, stats.gaps
        assert not stats.parameters.unused
    model.todo.put(None)
    thread.join()
    with opscope.record():
        torch.ones(2)
    assert (queue.Queue.put, queue.Queue.get, threading.Condition.notify) == before
    if way is Condition:
        assert model.todo.condition._acquire_restore.__qualname__.startswith("RLock")


@pytest.mark.parametrize("way", [queue.SimpleQueue, Polled])
@pytest.mark.parametrize("kind", [Elsewhere, WithoutModules])
def test_what_nobody_saw_in_another_thread_is_marked(kind: type[Elsewhere], way: type[Any]) -> None:
    model = kind(way)
    thread = threading.Thread(target=model.work, daemon=True, name="a worker")
    thread.start()
    with opscope.record(model) as cap:
        model(torch.randn(4, 8))
    model.todo.put(None)
    thread.join()
    stats = cap.stats()
    assert stats.total.macs == 256
    assert stats.total.at_least
    assert [gap.reason for gap in stats.gaps if "thread 'a worker'" in gap.reason]
    assert not stats.parameters.unused


def test_a_thread_that_only_waits_marks_nothing() -> None:
    todo: queue.SimpleQueue[Any] = queue.SimpleQueue()
    thread = started(lambda: todo.get() is torch)
    cap = opscope.trace(mlp(), torch.randn(4, 8))
    todo.put(None)
    thread.join()
    assert not cap.stats().total.at_least


# -- tensors of other classes ----------------------------------------------------------------------------


def test_what_runs_inside_of_a_tensor_class_is_counted() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    t = TwoTensor(torch.randn(4, 4), torch.randn(4, 4))
    cap = opscope.trace(lambda t: t @ t, t)
    assert cap.stats().total.macs == 2 * 4**3
    assert [node.op for node in cap.graph.nodes] == ["aten.mm", "aten.mm"]
    assert {node.attrs["inside_of"] for node in cap.graph.nodes} == {"aten.mm on TwoTensor, TwoTensor"}
    assert {value.name for node in cap.graph.nodes for value in node.inputs if value is not None} == {"t.a", "t.b"}
    assert len(cap.graph.outputs) == 2


def test_jagged_tensors_are_counted_by_what_they_hold() -> None:
    jagged = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(5, 8)], layout=torch.jagged)
    stats = opscope.trace(mlp(), jagged).stats()
    assert stats.total.macs == 7 * 192
    assert not stats.total.at_least


class Hiding(torch.Tensor):
    """Computes below every dispatch mode."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C._DisableTorchDispatch():
            return func(*args, **(kwargs or {}))


def test_a_class_that_hides_its_operators_is_marked() -> None:
    hiding = torch.randn(4, 8).as_subclass(Hiding)
    model = mlp()
    with opscope.record(model) as cap:
        torch.ones(3) + 1
        model(hiding)
    stats = cap.stats()
    assert stats.total.at_least
    assert stats.gaps
    assert not stats.parameters.unused
    assert "Hiding" in stats.gaps[0].reason


class Foreign(torch.Tensor):
    """Holds a tensor that it shows to nobody, and lets numpy multiply."""

    def __new__(cls, inner: Tensor) -> Foreign:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        held = [item.inner if isinstance(item, Foreign) else item for item in args]
        if func is torch.ops.aten.addmm.default:
            bias, a, b = (tensor.detach().numpy() for tensor in held)
            return Foreign(torch.from_numpy(bias + a @ b))
        out = func(*held, **(kwargs or {}))
        return Foreign(out) if isinstance(out, Tensor) else out


def test_a_class_that_computes_elsewhere_is_marked() -> None:
    stats = opscope.stats(mlp().requires_grad_(False), Foreign(torch.randn(4, 8)))
    assert stats.total.at_least
    assert {gap.op for gap in stats.gaps} == {"aten.addmm"}


def test_questions_to_jagged_tensors_are_no_gaps() -> None:
    model = mlp()
    jagged = torch.nested.nested_tensor([torch.randn(2, 8), torch.randn(5, 8)], layout=torch.jagged)
    with opscope.record(model) as cap:
        model(jagged).values().sum().backward()
    stats = cap.stats()
    assert (stats.total.macs, stats.total.at_least) == (3 * 7 * 192 - 7 * 128, False)
    assert not stats.gaps


class Reads(nn.Module):
    """Reads its parameters in ways that no dispatch mode sees."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.used = way, nn.Linear(8, 8)
        self.odd, self.never = nn.Linear(8, 8), nn.Linear(8, 8)
        if way == "class":
            self.odd.weight = nn.Parameter(Foreign(torch.randn(8, 8)), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.used(x)
        match self.way:
            case "list":
                return x * self.odd.weight.tolist()[0][0] + self.odd.bias
            case "class":
                return x @ self.odd.weight + self.odd.bias
            case "module":
                with torch._C._DisableTorchDispatch():
                    return self.odd(x)
            case "modes":
                with torch.utils._python_dispatch._disable_current_modes():
                    return self.odd(x)
            case _:
                return torch.cond(x.sum() == x.sum(), lambda x: self.odd(x), lambda x: x + 1, (x,))


@pytest.mark.parametrize("fake", [False, True])
@pytest.mark.parametrize("way", ["list", "class", "module", "modes", "branch"])
def test_a_parameter_that_may_be_read_unseen_is_not_called_unused(way: str, fake: bool) -> None:
    model, x = Reads(way), torch.randn(4, 8)
    plain = nn.Module.__getattr__
    if fake and way in ("list", "class"):  # which need numbers
        return
    stats = opscope.stats(model, x, fake=fake)
    assert nn.Module.__getattr__ is plain
    total = stats.totals()
    assert not [name for name in total["params_unused"] if name.startswith("odd.")]
    if way == "branch":  # what its branches hold is read by torch.cond, of which not more is known
        assert stats.unknown_ops == {"cond": 1}
        return
    assert "odd.weight" in total["params_may_be_used"]
    assert total["params_unused"] == ["never.weight", "never.bias"] or total["at_least"]
    assert "Perhaps unused" in str(stats)
    if way in ("module", "modes"):
        assert [gap.reason for gap in stats.gaps] == ["the module was called while dispatch modes were disabled"]
        assert [row["path"] for row in stats.by_module(depth=2).rows if row["unknown"]] == ["odd"]


_RANKS = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn

def run(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    import opscope
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    def made():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    x = torch.ones(4, 8)
    model = parallelize_module(made(), init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    y = model(x); y.sum().backward()
    gradients = [p.grad.to_local().clone() for p in model.parameters()]
    model.zero_grad()
    with opscope.record(model) as cap:
        z = model(x); z.sum().backward()
    assert torch.equal(y, z)
    assert all(torch.equal(g, p.grad.to_local()) for g, p in zip(gradients, model.parameters()))
    stats = cap.stats()
    assert (stats.total.macs, stats.total.at_least) == (896, False), repr(stats)
    assert stats.parameters.count == 108 and not stats.parameters.unused, stats.parameters
    placed = [n.attrs["inside_of"] for n in cap.graph.nodes if n.op == "aten.addmm"]
    assert "Shard" in placed[0] or "S(" in placed[0], placed
    counted = opscope.stats(model, x)
    assert (counted.total.macs, counted.parameters.count) == (384, 108)
    sharded = made()
    fully_shard(sharded)
    with opscope.record(sharded) as cap:
        sharded(x).sum().backward()
    stats = cap.stats()
    assert (stats.total.macs, stats.total.at_least) == (1792, False), (repr(stats), stats.unknown_ops)
    dist.destroy_process_group()
    os.write(1, f"{rank} is fine. ".encode())  # at once: the ranks write to one pipe

if __name__ == "__main__":
    mp.spawn(run, (sys.argv[1],), 2)
"""


def test_dtensors_count_what_this_rank_ran(tmp_path: Path) -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    script = tmp_path / "ranks.py"
    script.write_text(_RANKS)
    found = subprocess.run([sys.executable, str(script), port], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    assert sorted(re.findall(r"\d is fine", found.stdout)) == ["0 is fine", "1 is fine"]


# -- sparse tensors ------------------------------------------------------------------------------------


def _matrix() -> Tensor:
    dense = torch.zeros(6, 4)
    dense[0, 1], dense[2, 3], dense[5, 0] = 1, 2, 3
    return dense


SPARSE = {
    "coo": (lambda: _matrix().to_sparse(), 3),
    "csr": (lambda: _matrix().to_sparse_csr(), 3),
    "csc": (lambda: _matrix().to_sparse_csc(), 3),
    "bsr": (lambda: _matrix().to_sparse_bsr((2, 2)), 12),
}


@pytest.mark.parametrize("layout", SPARSE)
def test_sparse_products_count_by_their_entries(layout: str) -> None:
    make, entries = SPARSE[layout]
    sparse, dense, vector = make(), torch.randn(4, 5), torch.randn(4)

    def macs(call: Any, *args: Any) -> tuple[int, bool]:
        total = opscope.trace(call, *args).stats().total
        return total.macs, total.at_least

    assert macs(lambda s, d: s @ d, sparse, dense) == (5 * entries, False)
    assert macs(lambda s, v: s @ v, sparse, vector) == (entries, False)
    assert macs(lambda s, d: torch.addmm(torch.zeros(6, 5), s, d), sparse, dense) == (5 * entries, False)
    assert macs(lambda s, d: torch.sparse.mm(s, d), sparse, dense) == (5 * entries, False)


def test_other_sparse_products() -> None:
    csr, batch = _matrix().to_sparse_csr(), torch.stack([_matrix(), _matrix()]).to_sparse()

    def stats(call: Any, *args: Any) -> opscope.Stats:
        return opscope.trace(call, *args).stats()

    assert stats(lambda s: torch.randn(2, 6) @ s, csr).total.macs == 2 * 3
    assert stats(lambda s: torch.bmm(s, torch.randn(2, 4, 5)), batch).total.macs == 6 * 5
    sampled = stats(lambda s: torch.sparse.sampled_addmm(s, torch.randn(6, 7), torch.randn(7, 4)), csr)
    assert sampled.total.macs == 3 * 7
    both = stats(lambda s: torch.sparse.mm(s, s.t()), _matrix().to_sparse())
    assert both.total.at_least
    assert both.unknown_ops
    assert stats(lambda s: torch.relu(s) * 2, csr).total.other_flops == 2 * 3
    assert stats(lambda s: torch.relu(s) * 2, csr).total.estimated == 2


def test_values_of_sparse_tensors_do_no_harm() -> None:
    with opscope.record(values=True) as cap:
        csr = torch.eye(4).to_sparse_csr()
        csr @ torch.ones(4, 2)
        torch._efficientzerotensor(3) * torch.ones(3)
    assert not cap.stats().gaps
    assert not cap.all_warnings()


# -- other products that depend on numbers -----------------------------------------------------------------


def test_groups_count_the_rows_that_are_in_them() -> None:
    a, b = torch.randn(16, 16).bfloat16(), torch.randn(2, 16, 8).bfloat16()
    ends = torch.tensor([4, 8], dtype=torch.int32)
    total = opscope.trace(lambda a, b, ends: torch._grouped_mm(a, b, offs=ends), a, b, ends).stats().total
    assert (total.macs, total.estimated, total.at_least) == (8 * 16 * 8, 0, False)


def test_distances_of_many_rows_are_a_product() -> None:
    many = opscope.trace(torch.cdist, torch.randn(40, 8), torch.randn(50, 8)).stats().total
    assert many.macs == 40 * 50 * (8 + 2)
    few = opscope.trace(torch.cdist, torch.randn(4, 8), torch.randn(5, 8)).stats().total
    assert (few.macs, few.other_flops) == (0, 3 * 4 * 5 * 8)


def test_questions_make_no_total_a_lower_bound() -> None:
    import torch.autograd.forward_ad as forward_ad

    def derivative(x: Tensor) -> Tensor:
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(forward_ad.make_dual(x, x) * 2)[1]

    stats = opscope.trace(derivative, torch.randn(3)).stats()
    assert not stats.unknown_ops
    assert not stats.total.at_least
    cap = opscope.trace(lambda x: (x * 2, torch.ops.aten.is_same_size(x, x)), torch.randn(3))
    assert [node.op for node in cap.graph.nodes] == ["aten.mul.Tensor"]


# -- what could not be recorded -----------------------------------------------------------------------------


def test_a_lost_operator_is_marked_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fault of our own: the operator runs, and every figure says that it is missing."""
    new_storage = recorder_memory.Memory.new_storage
    failed: set[int] = set()

    def fails(self: Any, tensor: Tensor, held: Any, address: int) -> int:
        if tuple(tensor.shape) == (4, 16) and not isinstance(tensor, nn.Parameter) and address not in failed:
            failed.add(address)  # where it is made, but not where it is read
            raise RuntimeError("no room\nfor this")
        return new_storage(self, tensor, held, address)

    monkeypatch.setattr(recorder_memory.Memory, "new_storage", fails)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    x = torch.ones(4, 8)
    with torch.no_grad(), opscope.record(model) as cap:
        y = model(x)
    verify_capture(cap)
    assert torch.equal(y, model(x))
    assert [node.op for node in cap.graph.nodes] == ["aten.t", "aten.t", "aten.addmm"]
    stats = cap.stats()
    assert {gap.op for gap in stats.gaps} == {"aten.addmm", "aten.tanh"}
    assert all(gap.count == 1 and "no room for this" in gap.reason for gap in stats.gaps)
    total = stats.total
    assert total.at_least
    assert total.bytes_at_least
    assert total.activations_at_least
    assert total.params_at_least
    rows = {row["path"]: row for row in stats.by_module(depth=3, fold=False).rows}
    assert rows["model/0"]["unknown"]
    assert rows["model/1"]["unknown"]
    assert not rows["model/2"]["unknown"]
    assert all(row["unknown"] for row in stats.by_phase().rows)
    by_op = {row["name"]: row["unknown"] for row in stats.by_op().rows}
    assert by_op["aten.addmm"] == 1
    assert by_op["aten.t"] == 0
    assert "not in the graph" in str(stats)
    assert "≥" in repr(stats)
    cap.save(tmp_path / "lost.opscope")
    again = opscope.open(tmp_path / "lost.opscope")
    assert again.stats().gaps == stats.gaps
    assert json.loads(json.dumps(again.stats().to_dict()))["total"]["gaps"][0]["module"] == "model/0"
    assert all(any(gap.sentence(cap.pools) in text for text in again.all_warnings()) for gap in stats.gaps)


def test_a_lost_operator_keeps_no_tensor_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    import weakref

    def fails(self: Any, tensor: Tensor) -> tuple[int, int]:
        raise RuntimeError("no room")

    with opscope.record() as cap:
        torch.ones(2) + 1
        with monkeypatch.context() as patch:
            patch.setattr(recorder_memory.Memory, "_located", fails)
            x = torch.ones(3)
            alive = weakref.ref(x)
            del x
            assert alive() is None
    assert cap.stats().gaps
