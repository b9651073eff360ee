"""Softmax and layer norm that a framework writes as several operators."""

from __future__ import annotations

from collections import Counter

import pytest

import opscope
from conftest import DATA
from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage
from opscope.ops import kinds_of


class Writer:
    """A graph in Jittor's operators, with a broadcast wherever shapes differ."""

    def __init__(self) -> None:
        self.b = GraphBuilder(Pools())
        self.shapes: dict[int, tuple[int, ...]] = {}

    def input(self, *shape: int) -> int:
        value = self.b.input(self.b.pools.type("float32", shape))
        self.shapes[value] = shape
        return value

    def op(self, name: str, *inputs: int, shape: tuple[int, ...] = ()) -> int:
        shape = shape or max((self.shapes[value] for value in inputs), key=lambda one: (len(one), one))
        spread = [value if self.shapes[value] == shape or "." not in name or name.startswith(("unary", "reduce"))
                  else self.op("broadcast_to", value, shape=shape) for value in inputs]  # fmt: skip
        value = self.b.output(self.b.node(name, spread, phase="forward"), self.b.pools.type("float32", shape))
        self.shapes[value] = shape
        return value

    def kinds(self) -> Counter[str]:
        graph = self.b.freeze()
        capture = Capture(graph.pools, [Stage("graph", graph)], origin=Origin("test", "jittor"))
        return Counter(kinds_of(capture.origin.framework, graph).by_node.values())


def softmax(w: Writer, x: int, reduced: tuple[int, ...]) -> int:
    shifted = w.op("binary.subtract", x, w.op("reduce.maximum", x, shape=reduced))
    e = w.op("unary.exp", shifted)
    return w.op("binary.divide", e, w.op("reduce.add", e, shape=reduced))


def norm(w: Writer, x: int, reduced: tuple[int, ...], weight: int, bias: int, spread: tuple[int, ...]) -> int:
    """What `nn.LayerNorm` of Jittor 1.3.11 computes; its other norms reduce over other axes."""
    mean = w.op("reduce.mean", x, shape=reduced)
    of_squares = w.op("reduce.mean", w.op("binary.multiply", x, x), shape=reduced)
    variance = w.op("binary.subtract", of_squares, w.op("binary.multiply", mean, mean))
    positive = w.op("binary.maximum", variance, w.op("array", shape=(1,)))
    root = w.op("unary.sqrt", w.op("binary.add", positive, w.op("array", shape=(1,))))
    scale = w.op("binary.divide", w.op("broadcast_to", weight, shape=spread), w.op("broadcast_to", root, shape=spread))
    moved = w.op("binary.subtract", w.op("broadcast_to", bias, shape=spread), w.op("binary.multiply", mean, scale))
    return w.op("binary.add", w.op("binary.multiply", x, scale), moved)


def test_softmax() -> None:
    w = Writer()
    softmax(w, w.input(2, 5, 7), (2, 5, 1))
    assert w.kinds() == {"softmax": 5}


def test_log_softmax_past_casts() -> None:
    w = Writer()
    x = w.op("unary.float32", w.input(5, 7))
    a = w.op("binary.subtract", x, w.op("reduce.maximum", x, shape=(5, 1)))
    total = w.op("reduce.add", w.op("unary.exp", a), shape=(5, 1))
    w.op("binary.subtract", a, w.op("unary.log", total))
    assert w.kinds() == {"log_softmax": 6}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_only_an_exponential_by_its_own_sum_is_a_softmax(order: tuple[int, int]) -> None:
    w = Writer()
    e, f = (w.op("unary.exp", w.input(5, 7)) for _ in range(2))
    sums = [w.op("reduce.add", value, shape=(5, 1)) for value in (e, f)]
    w.op("binary.divide", e, sums[order[0]])
    w.op("binary.divide", sums[order[1]], f)
    assert w.kinds() == ({"softmax": 3} if order[0] == 0 else {})


def test_layer_norm() -> None:
    w = Writer()
    norm(w, w.input(4, 6, 8), (4, 6, 1), w.input(8), w.input(8), (4, 6, 8))
    assert w.kinds() == {"layer_norm": 13}


def test_layer_norm_of_centred_numbers() -> None:
    w = Writer()
    x, weight, bias = w.input(6, 8), w.input(8), w.input(8)
    centred = w.op("binary.subtract", x, w.op("reduce.mean", x, shape=(6, 1)))
    variance = w.op("reduce.mean", w.op("binary.multiply", centred, centred), shape=(6, 1))
    root = w.op("unary.sqrt", w.op("binary.add", variance, w.op("array", shape=(1,))))
    w.op("binary.add", w.op("binary.multiply", w.op("binary.divide", centred, root), weight), bias)
    assert w.kinds() == {"layer_norm": 9}


@pytest.mark.parametrize(
    ("reduced", "channels"),
    [
        pytest.param((1, 5, 1, 1), (5, 1, 1), id="batch norm"),
        pytest.param((4, 5, 1, 1), (5, 1, 1), id="instance norm"),
    ],
)
def test_other_norms_are_not_layer_norms(reduced: tuple[int, ...], channels: tuple[int, ...]) -> None:
    w = Writer()
    norm(w, w.input(4, 5, 6, 7), reduced, w.input(*channels), w.input(*channels), (4, 5, 1, 1))
    assert w.kinds() == {}


def test_two_dialects_of_hidet_say_the_same_of_one_graph() -> None:
    """Version 0.6 writes the softmax as five operators, 0.2 as one; it costs the same."""
    found = []
    for version in ("0.2.1", "0.6.1"):
        capture = opscope.open(DATA / "hidet" / version / "attention-graph.json")
        rows = {row["name"]: row for row in capture.stats().to_dict("kind")["rows"]}
        assert len(capture.find("kind:softmax")) == rows["softmax"]["ops"]
        found.append({name: (row["macs"], row["other"]) for name, row in rows.items()})
    assert found[0] == found[1]
