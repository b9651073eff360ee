"""Operators that let ranks communicate: their groups, what they write, what they send."""

from __future__ import annotations

from collections.abc import Generator

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.testing._internal.distributed.fake_pg import FakeStore

import opscope
from opscope.ops.table import entry

RANKS, RANK = 8, 3
NAMESPACES = ("fsdp", "c10d", "_c10d_functional", "_dtensor", "c10d_functional", "_c10d_functional_autograd")


@pytest.fixture
def world() -> Generator[None, None, None]:
    dist.init_process_group("fake", store=FakeStore(), rank=RANK, world_size=RANKS)
    yield
    dist.destroy_process_group()


def test_every_operator_of_torchs_own_has_a_formula():
    import torch.distributed.fsdp
    import torch.distributed.nn
    import torch.distributed.pipelining
    import torch.distributed.tensor.parallel

    names = {schema.name.replace("::", ".") for schema in torch._C._jit_get_all_schemas()}
    known = [name for name in names if name.split(".")[0] in NAMESPACES]
    assert len(known) > 50
    assert not [name for name in known if entry("torch", name) is None]


COLLECTIVES = {
    # what one rank brings is 4 numbers of 4 bytes, unless it says otherwise
    "all_reduce": (lambda x: dist.all_reduce(x), 2 * 7 / 8 * 16),
    "functional all_reduce": (lambda x: functional.all_reduce(x, "sum", dist.group.WORLD).wait(), 2 * 7 / 8 * 16),
    "all_gather": (lambda x: dist.all_gather([torch.empty(4) for _ in range(8)], x), 7 * 16),
    "all_gather_into": (lambda x: dist.all_gather_into_tensor(torch.empty(32), x), 7 * 16),
    "functional all_gather": (lambda x: functional.all_gather_tensor(x, 0, dist.group.WORLD), 7 * 16),
    "reduce_scatter": (
        lambda x: dist.reduce_scatter(x, [torch.ones(4) for _ in range(8)]),
        7 / 8 * 8 * 16,
    ),
    "functional reduce_scatter": (
        lambda x: functional.reduce_scatter_tensor(torch.ones(32), "sum", 0, dist.group.WORLD),
        7 / 8 * 8 * 16,
    ),
    "all_to_all": (lambda x: dist.all_to_all_single(torch.empty(32), torch.ones(32)), 7 / 8 * 8 * 16),
    "all_to_all of lists": (
        lambda x: dist.all_to_all([torch.empty(4) for _ in range(8)], [torch.ones(4) for _ in range(8)]),
        7 / 8 * 8 * 16,
    ),
    "uneven all_to_all": (
        # of 16 rows, rank 3 keeps 9
        lambda x: dist.all_to_all_single(torch.empty(8), torch.ones(16), [1] * 8, [1, 1, 1, 9, 1, 1, 1, 1]),
        7 * 4,
    ),
    "broadcast": (lambda x: dist.broadcast(x, 0), 7 / 8 * 16),
    "reduce": (lambda x: dist.reduce(x, 0), 7 / 8 * 16),
    "gather": (lambda x: dist.gather(x, None, 0), 7 / 8 * 16),
    "scatter": (lambda x: dist.scatter(x, None, 0), 7 / 8 * 16),
    "send": (lambda x: dist.send(x, 4), 16),
    "receive": (lambda x: dist.recv(x, 2), 0),
    "barrier": (lambda x: dist.barrier(), 0),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_what_a_rank_sends(name: str, world: None):
    run, sent = COLLECTIVES[name]
    x = torch.ones(4)
    with opscope.record() as cap:
        run(x)
        x.sum()
    total = cap.stats().totals()
    assert total["wire_bytes"] == sent
    assert not total["wire_at_least"]
    assert not total["unknown_ops"]
    assert total["wire_by_dimension"] == {"world": sent}
    group = next(node.attrs["rank_group"] for node in cap.graph.nodes if "rank_group" in node.attrs)
    assert group == {"dimension": "world", "size": RANKS, "index": RANK, "ranks": "0-7"}


def test_what_is_received_is_made_there(world: None):
    x = torch.zeros(4)
    with opscope.record() as cap:
        dist.recv(x, 2)
        y = x * 2
    receive, times = cap.graph.node(0), cap.graph.node(1)
    assert (receive.op, times.op) == ("c10d.recv_", "aten.mul.Tensor")
    assert times.uses[0].value.producer == receive
    assert y.shape == (4,)


def test_a_group_is_called_what_the_program_calls_it(world: None):
    mesh = dist.init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    own = dist.new_group([1, 3, 5], group_desc="odd")
    unnamed = dist.new_group([3, 7])
    x = torch.ones(4)
    with opscope.record() as cap:
        for group in (mesh.get_group("tp"), mesh.get_group("dp"), own, unnamed):
            dist.all_reduce(x, op=dist.ReduceOp.MAX, group=group)
    found = [node.attrs["rank_group"] for node in cap.graph.nodes]
    assert [(g["dimension"], g["ranks"], g["index"]) for g in found] == [
        ("tp", "0-3", 3),
        ("dp", "3,7", 0),
        ("odd", "1-5:2", 1),
        ("dp", "3,7", 0),  # the same ranks as a group that has a name
    ]
    assert {node.attrs["reduce_op"] for node in cap.graph.nodes} == {"max"}


def test_a_group_that_is_gone_is_still_known(world: None):
    group = dist.new_group([3, 4])
    x = torch.ones(4)
    with opscope.record() as cap:
        dist.all_reduce(x, group=group)
        dist.destroy_process_group(group)
    assert cap.graph.node(0).attrs["rank_group"]["ranks"] == "3-4"


def test_without_a_group_the_bytes_are_not_known():
    from opscope.ir import Capture, GraphBuilder, Pools, Stage
    from opscope.statistics import of_capture

    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (4,)), name="x")
    b.output(b.node("_c10d_functional.all_reduce", [x], args=["input"]), b.pools.type("float32", (4,)))
    capture = Capture(b.pools, [Stage("graph", b.freeze())])
    capture = opscope.Capture.of(capture)
    capture.origin = type(capture.origin)("made", "torch")
    total = of_capture(capture).totals()
    assert total["wire_at_least"]
    assert total["wire_bytes"] == 0
