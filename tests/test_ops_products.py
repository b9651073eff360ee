"""Jittor's products, found in the graph: real traces, and chains that only look like one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope.ir import Graph, GraphBuilder, Pools
from opscope.ops import Argument, Cost, cost_of
from opscope.ops.aliases.jittor.products import products

DATA = Path(__file__).parent / "data" / "jittor"


def macs_by_phase(graph: Graph) -> Counter[str]:
    found, macs = products(graph), Counter[str]()
    for node in graph.nodes:
        part = found.get(node.index)
        if part is not None:
            cost = part.cost
        else:
            inputs = [Argument(use.arg, use.value.type if use.value else None) for use in node.uses]
            cost = cost_of("jittor", node.op, inputs, [value.type for value in node.outputs], node.attrs)
        macs[node.phase] += cost.macs
    return +macs


def test_resnet18_is_the_resnet18_of_pytorch():
    """2 × 3 × 224 × 224: 1,814,073,344 for each sample, as in torchvision's."""
    assert macs_by_phase(opscope.open(DATA / "resnet.pkl").graph) == {"forward": 2 * 1_814_073_344}


def test_training_computes_two_gradients_for_each_product_but_the_images():
    first = 2 * 64 * 112 * 112 * 3 * 7 * 7  # nobody needs the gradient of the images
    forward = 2 * 1_814_073_344
    found = macs_by_phase(opscope.open(DATA / "resnet_train.pkl").graph)
    assert found == {"forward": forward, "backward": 2 * forward - first}


def test_every_part_of_a_product_is_counted_once():
    graph = opscope.open(DATA / "simple_model_train.pkl").graph
    found = {node: part.cost for node, part in products(graph).items()}
    assert Counter(graph.node(i).op for i, cost in found.items() if cost.macs) == {"reduce.add": 5}
    parts = Counter(graph.node(i).op for i, cost in found.items() if not cost.macs)
    assert parts == {"binary.multiply": 5, "broadcast_to": 6}
    assert all(cost[:4] == (0, 0, 0, 0) and cost.how == "zero" for cost in found.values() if not cost.macs)
    linear = next(cost for i, cost in found.items() if graph.node(i).op == "reduce.add")
    assert linear == Cost(macs=100, read=4 * (10 + 10))  # [10, 1] @ [1, 10]


def test_a_chain_is_found_by_the_kind_of_its_product():
    """Jittor has no operator that is called so; the sum, which carries the cost, carries the kind."""
    capture = opscope.open(DATA / "resnet_train.pkl")
    kinds = Counter(
        (part.kind, capture.graph.node(i).phase) for i, part in products(capture.graph).items() if part.kind
    )
    assert kinds == {
        ("conv", "forward"): 20, ("conv_backward", "backward"): 39, ("matmul", "forward"): 1, ("matmul", "backward"): 2,
    }  # fmt: skip
    assert len(capture.find("kind:/^conv$/")) == 20
    assert len(capture.find("kind:/^matmul$/")) == 3
    rows = {row["name"]: row for row in capture.stats().to_dict("kind")["rows"]}
    assert rows["conv"]["ops"] == 20
    assert rows["conv"]["macs"] + rows["matmul"]["macs"] // 3 == 2 * 1_814_073_344
    by_op = {row["name"]: row["kind"] for row in capture.stats().to_dict("op")["rows"]}
    assert by_op["reindex_reduce.add"] == "conv_backward"


class Chain:
    """`a[n, k] · b[k, m]`, and what else one may want to write."""

    def __init__(self) -> None:
        self.pools = Pools()
        self.b = GraphBuilder(self.pools)

    def type(self, *shape: int) -> int:
        return self.pools.type("float32", shape)

    def op(self, name: str, inputs: list[int], shape: tuple[int, ...], **attrs: Any) -> int:
        node = self.b.node(name, inputs, attrs=self.pools.attrs(attrs))
        return self.b.output(node, self.type(*shape))

    def input(self, *shape: int) -> int:
        return self.b.input(self.type(*shape))

    def spread(self, value: int, dims: list[int]) -> int:
        return self.op("broadcast_to", [value], (2, 3, 4), broadcast_dims=dims)

    def summed(self, value: int, dims: list[int]) -> int:
        return self.op("reduce.add", [value], (2, 4), reduce_dims=dims)


def count(chain: Chain) -> int:
    return sum(part.cost.macs for part in products(chain.b.freeze()).values())


def test_a_product():
    c = Chain()
    a, b = c.spread(c.input(2, 3), [2]), c.spread(c.input(3, 4), [0])
    c.summed(c.op("binary.multiply", [a, b], (2, 3, 4)), [1])
    assert count(c) == 24


@pytest.mark.parametrize("case", ["a scaling", "a scalar", "another axis", "no sum", "no multiply"])
def test_what_is_not_a_product(case: str):
    c = Chain()
    a, b = c.spread(c.input(2, 3), [2]), c.spread(c.input(3, 4), [0])
    if case == "a scaling":  # one operand has every axis
        a = c.input(2, 3, 4)
    elif case == "a scalar":
        a = c.spread(c.input(1), [0, 1, 2])
    elif case == "another axis":  # the sum over what only one of them has is a scaling too
        c.summed(c.op("binary.multiply", [a, b], (2, 3, 4)), [0])
        assert count(c) == 0
        return
    made = c.op("binary.add" if case == "no multiply" else "binary.multiply", [a, b], (2, 3, 4))
    if case != "no sum":
        c.summed(made, [1])
    assert count(c) == 0


def test_what_others_read_keeps_its_cost():
    c = Chain()
    a, b = c.spread(c.input(2, 3), [2]), c.spread(c.input(3, 4), [0])
    made = c.op("binary.multiply", [a, b], (2, 3, 4))
    c.summed(made, [1])
    c.op("unary.exp", [a], (2, 3, 4))
    graph = c.b.freeze()
    kept = {graph.node(i).op for i in range(graph.n_nodes) if i not in products(graph)}
    assert kept == {"broadcast_to", "unary.exp"}
    assert len(products(graph)) == 3


def test_libraries_have_formulas():
    def macs(op: str, out: tuple[int, ...], *inputs: tuple[int, ...]) -> int:
        from opscope.ir.pools import Type

        given = [Argument(str(i), Type("float32", shape)) for i, shape in enumerate(inputs)]
        return cost_of("jittor", op, given, [Type("float32", out)], {}).macs

    assert macs("cublas_matmul", (2, 5), (2, 3), (3, 5)) == 30
    assert macs("cublas_matmul", (2, 5), (3, 2), (5, 3)) == 30
    assert macs("cublas_batched_matmul", (7, 2, 5), (7, 2, 3), (7, 3, 5)) == 210
    x, w, y = (2, 4, 8, 8), (6, 2, 3, 3), (2, 6, 6, 6)
    one = 2 * 6 * 36 * 18
    assert macs("mkl_conv", y, x, w) == one
    assert macs("cudnn_conv_backward_x", x, w, y) == one
    assert macs("cudnn_conv_backward_w", w, x, y) == one
