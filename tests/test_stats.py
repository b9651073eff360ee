"""What things cost, from graphs to tables. Formulas have tests of their own: here most operators are made up."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opscope
import strategies
from commands import bad, good
from conftest import DATA, TESTS
from opscope import ops
from opscope.analysis.costs.columns import AVAILABLE, BY
from opscope.analysis.costs.devices import DEVICES, device
from opscope.analysis.costs.memory import memory
from opscope.analysis.costs.operators import node_costs, sum_by
from opscope.analysis.costs.parameters import parameters
from opscope.analysis.costs.report import report
from opscope.analysis.costs.rollup import by_kernel, by_scope
from opscope.analysis.costs.roofline import roofline
from opscope.analysis.costs.signatures import signatures
from opscope.analysis.costs.stats import GraphStats
from opscope.errors import OpscopeError
from opscope.export import cost_tables
from opscope.ir import Capture, Graph, GraphBuilder, Origin, Pools, Stage
from opscope.ops.cost import Cost, registered

TRAIN = DATA / "jittor" / "resnet_train.pkl"
JOINT = DATA / "torch" / "joint.pt2"


@pytest.fixture
def made_up() -> Iterator[None]:
    """Operators `t.work` (100 MACs), `t.view`, `t.copy`, `t.write_`."""
    before = dict(registered)
    ops.formula("t.work")(lambda inputs, outputs, attrs: Cost(macs=100 * attrs.get("times", 1), other=7))
    ops.formula("t.view")(lambda inputs, outputs, attrs: Cost(read=0, written=0, how="zero"))
    ops.formula("t.copy")(lambda inputs, outputs, attrs: Cost(how="zero"))
    ops.formula("t.write_")(lambda inputs, outputs, attrs: Cost(other=1))
    yield
    registered.clear()
    registered.update(before)


class Small:
    """A builder with one type of 40 bytes."""

    def __init__(self) -> None:
        self.b = GraphBuilder(Pools())
        self.type = self.b.pools.type("float32", (2, 5))

    def node(self, op: str, *inputs: int, role: str = "activation", name: str = "", **more: object) -> int:
        """Appends a node with one result and gives that."""
        storage = more.pop("storage", None)
        node = self.b.node(op, inputs, **more)  # type: ignore[arg-type]
        return self.b.output(node, self.type, role=role, name=name, storage=storage)  # type: ignore[arg-type]


# -- by node -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("made_up")
def test_every_value_is_read_once_and_views_move_nothing() -> None:
    s = Small()
    x = s.b.input(s.type, name="x")
    y = s.node("t.work", x, x)
    z = s.node("t.view", y, storage=y)
    s.node("t.write_", z, storage=y)
    s.node("t.copy", z)
    costs = node_costs(s.b.freeze())
    assert costs.read.tolist() == [40, 0, 40, 40]
    assert costs.written.tolist() == [40, 0, 40, 40]
    assert costs.macs.tolist() == [100, 0, 0, 0]
    assert costs.view.tolist() == [False, True, False, False]
    assert not costs.lower.any()


@pytest.mark.usefixtures("made_up")
def test_what_expands_reads_no_more_than_there_is() -> None:
    s = Small()
    x = s.b.input(s.type)
    wide = s.b.pools.type("float32", (1000, 2, 5))
    node = s.b.node("t.view", [x])
    y = s.b.output(node, wide)  # a file that says nothing of storages
    s.node("t.work", y)
    assert node_costs(s.b.freeze()).read.tolist() == [0, 40]


def test_unknown_is_never_zero() -> None:
    s = Small()
    x = s.b.input(s.type)
    s.node("nobody.knows", x)
    stats = GraphStats(s.b.freeze())
    assert stats.total.at_least
    assert stats.unknown_ops == {"nobody.knows": 1}
    assert "≥ 0 MACs" in cost_tables.summary(stats)[0]
    assert "nobody.knows" in "\n".join(cost_tables.summary(stats))
    (row,) = report(stats).rows
    assert cost_tables.cell(row, "macs") == "?"


@pytest.mark.usefixtures("made_up")
def test_sizes_that_are_not_known_make_bytes_at_least() -> None:
    s = Small()
    x = s.b.input(s.b.pools.type("float32", ("batch", 5)))
    s.node("t.work", x)
    total = GraphStats(s.b.freeze()).total
    assert total.bytes_at_least
    assert not total.at_least
    assert total.read == 0


@pytest.mark.usefixtures("made_up")
def test_a_formula_of_the_users_that_fails_says_which() -> None:
    ops.formula("t.bad")(lambda inputs, outputs, attrs: Cost(macs=attrs["missing"]))
    s = Small()
    s.node("t.bad")
    with pytest.raises(OpscopeError, match=r"the formula registered for t\.bad fails on node 0: KeyError: 'missing'"):
        node_costs(s.b.freeze())


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("wrong", [Cost(macs=-1), Cost(macs=1 << 70), Cost(how="maybe"), Cost(read=-5)])
def test_an_answer_that_makes_no_sense_is_none(wrong: Cost) -> None:
    ops.formula("t.wrong")(lambda inputs, outputs, attrs: wrong)
    s = Small()
    s.node("t.wrong")
    costs = node_costs(s.b.freeze())
    assert costs.unknown.tolist() == [True]
    assert costs.macs.tolist() == [0]


def _with_bodies(op: str, bodies: int, **attrs: object) -> Graph:
    pools = Pools()
    type_ = pools.type("float32", (2, 5))
    outer = GraphBuilder(pools)
    node = outer.node(op, [], attrs=attrs)
    outer.output(node, type_)
    for i in range(bodies):
        inner = GraphBuilder(pools)
        for _ in range(i + 1):
            inner.output(inner.node("t.work", []), type_)
        outer.body(node, f"body{i}", inner.freeze())
    return outer.freeze()


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(
    ("op", "bodies", "attrs", "macs", "how", "lower"),
    [
        ("x.fused", 2, {}, 300, "exact", False),
        ("prim.If", 2, {}, 200, "estimated", False),  # one of them runs: the larger
        ("prim.Loop", 1, {"max_trip_count": 7}, 700, "exact", False),
        ("prim.Loop", 1, {"max_trip_count": 2**63 - 1}, 100, "estimated", True),
        ("higher_order.while_loop", 2, {}, 300, "estimated", True),
    ],
)
def test_an_operator_costs_what_is_inside(
    op: str, bodies: int, attrs: dict[str, object], macs: int, how: str, lower: bool
) -> None:
    costs = node_costs(_with_bodies(op, bodies, **attrs))
    assert (costs.total.macs, costs.total.how, bool(costs.lower[0])) == (macs, how, lower)


# -- signatures ----------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_only_equal_operators_share_a_signature(data: st.DataObject) -> None:
    graph = data.draw(strategies.graphs(Pools()))
    found = signatures(graph)

    def words(node: opscope.Node) -> object:
        uses = [(use.arg, use.value.type if use.value else None) for use in node.uses]
        return node.op, int(graph.node_attrs[node.index]), uses, [value.type for value in node.outputs]

    for node in graph.nodes:
        for other in graph.nodes:
            same = found.of_node[node.index] == found.of_node[other.index]
            assert same == (words(node) == words(other))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1 << 58)), max_size=20))
def test_sums_are_exact(rows: list[tuple[int, int]]) -> None:
    found = sum_by(np.array([r for r, _ in rows], dtype=int), np.array([n for _, n in rows], dtype=np.int64), 4)
    assert found.tolist() == [sum(n for r, n in rows if r == row) for row in range(4)]


# -- any graph -----------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_columns_add_up_in_every_graph(data: st.DataObject) -> None:
    graph = data.draw(strategies.graphs(Pools()))
    stats = GraphStats(graph)
    for by in BY:
        if by == "kernel" and not len(graph.groups.get("kernel") or ()):
            continue
        found = report(stats, by, depth=1 if by == "module" else None)
        for column in ("macs", "causal", "other", "read", "written", "params", "activation_bytes", "ops"):
            if column in AVAILABLE[by] and not (by == "module" and column == "ops"):
                assert sum(row.get(column) or 0 for row in found.rows) == (found.total.get(column) or 0), (by, column)
        for write in (cost_tables.plain, cost_tables.markdown, cost_tables.comma_separated):
            assert write(found)
        assert cost_tables.html_table(found, stats)
    live = stats.memory
    assert live.total.tolist() == [
        int(live.size[(live.born <= t) & (t <= live.dies)].sum()) for t in range(graph.n_nodes)
    ]


# -- modules, kernels ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("made_up")
def test_modules_have_their_own_cost_and_that_of_those_inside() -> None:
    s = Small()
    outer = s.b.pools.scope(0, "net", "Net")
    inner = s.b.pools.scope(outer, "fc", "Linear")
    s.node("t.work", scope=outer)
    s.node("t.work", scope=inner, attrs={"times": 3})
    graph = s.b.freeze()
    found = by_scope(graph, node_costs(graph))
    assert found.own.macs[[outer, inner]].tolist() == [100, 300]
    assert found.inside.macs[[0, outer, inner]].tolist() == [400, 400, 300]


@pytest.mark.usefixtures("made_up")
def test_equal_neighbours_are_folded_with_what_is_inside() -> None:
    s = Small()
    for i in range(4):
        block = s.b.pools.scope(0, str(i), "Block")
        for name in ("a", "b"):
            times = 5 if (i, name) == (3, "b") else 1
            s.node("t.work", scope=s.b.pools.scope(block, name, "Linear"), attrs={"times": times})
    stats = GraphStats(s.b.freeze())
    found = report(stats)
    assert [(row["name"], row["times"], row["macs"]) for row in found.rows] == [
        ("0 … 2", 3, 600),
        ("a", 1, 300),
        ("b", 1, 300),
        ("3", 1, 600),
        ("a", 1, 100),
        ("b", 1, 500),
    ]
    assert len(report(stats, fold=False).rows) == 12
    assert [row["name"] for row in report(stats, sort="macs", depth=1).rows] == ["3", "0 … 2"]


@pytest.mark.usefixtures("made_up")
def test_what_a_kernel_makes_for_itself_is_not_in_memory() -> None:
    s = Small()
    x = s.b.input(s.type)
    a = s.node("t.work", x)
    b = s.node("t.work", a, x)
    c = s.node("t.work", b)
    s.b.outputs.append(c)
    s.b.group("kernel", [0, 1], name="fused")
    s.b.group("kernel", [2], name="alone")
    graph = s.b.freeze()
    costs = node_costs(graph)
    assert costs.inside.tolist() == [False, True, False, False]
    kernels = by_kernel(graph, costs)
    assert kernels is not None
    assert kernels.macs.tolist() == [200, 100]
    assert (kernels.read.tolist(), kernels.written.tolist()) == ([40, 40], [40, 40])
    assert memory(graph, costs).peak_bytes == 120  # x, b, c


# -- memory --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("made_up")
def test_memory_lives_from_the_first_value_to_the_last_read() -> None:
    s = Small()
    w = s.b.input(s.type, name="w", role="parameter")
    a = s.node("t.work", w, phase="forward")  # 0
    v = s.node("t.view", a, storage=a, phase="forward")  # 1
    b = s.node("t.work", w, phase="forward")  # 2
    s.node("t.work", v, b, phase="backward", role="gradient", name="w.grad")  # 3
    s.node("t.work", w, phase="optimizer")  # 4
    graph = s.b.freeze()
    found = memory(graph, node_costs(graph))
    assert found.total.tolist() == [80, 80, 120, 160, 120]
    assert found.peak_at == 3
    assert found.at_peak() == {"parameter": 40, "gradient": 40, "activation": 80}
    assert (found.activation_bytes, found.saved_bytes, found.activations) == (80, 80, 20)
    assert [alive.value for alive in found.alive(4)] == [w, 4, 5]


@pytest.mark.usefixtures("made_up")
def test_parameters_count_once() -> None:
    s = Small()
    w = s.b.input(s.type, name="embed.weight", role="parameter")
    tied = s.b.value(s.type, name="head.weight", role="parameter", storage=w)
    frozen = s.b.input(s.b.pools.type("float16", (3,)), name="frozen", role="parameter")
    s.node("t.work", w, tied, frozen, phase="forward")
    s.node("t.write_", w, storage=w, role="parameter", name="embed.weight", phase="optimizer")
    graph = s.b.freeze()
    found = parameters(graph, node_costs(graph))
    assert (found.count, found.bytes, found.trainable, found.frozen) == (13, 46, 10, 3)
    assert found.tied == [("embed.weight", "head.weight")]
    assert found.bytes_by_dtype == {"float32": 40, "float16": 6}
    assert found.unused == []


# -- roofline ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("made_up")
def test_what_bounds_an_operator() -> None:
    s = Small()
    x = s.b.input(s.type)
    s.node("t.work", x, attrs={"times": 10**9})
    s.node("t.copy", x)
    graph = s.b.freeze()
    found = roofline(graph, node_costs(graph), device("H100"))
    assert found.is_memory_bound.tolist() == [False, True]
    assert found.seconds[0] == pytest.approx(2e11 / 67e12, rel=1e-6)
    assert found.seconds[1] == pytest.approx(80 / 3.35e12)


def test_devices_are_plausible() -> None:
    for entry in DEVICES.values():
        assert entry.source
        assert entry.peak("bfloat16") >= entry.peak("float32") >= entry.peak("float64")
        assert "float64" in entry.flops, "without it, the figure for float32 would stand in"
    with pytest.raises(OpscopeError, match="no device 'abacus' \\(there are: h200"):
        device("abacus")


# -- tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "args", "golden"),
    [
        (TRAIN, (), "resnet_train.module.txt"),
        (TRAIN, ("--by", "op", "--top", "12"), "resnet_train.op.txt"),
        (TRAIN, ("--by", "kernel", "--device", "a100", "--top", "8"), "resnet_train.kernel.txt"),
        (TRAIN, ("--by", "node", "--sort", "bytes", "--top", "8"), "resnet_train.node.txt"),
        (TRAIN, ("--depth", "2", "--columns", "params,flops,forward,backward,share", "--markdown"), "resnet_train.md"),
        (JOINT, ("--by", "phase", "--csv"), "joint.phase.csv"),
        (JOINT, ("--json",), "joint.json"),
        (DATA / "paddle" / "example_train.json", ("--by", "op"), "paddle_example_train.op.txt"),
    ],
)
def test_golden_tables(file: Path, args: tuple[str, ...], golden: str, overwrite: bool) -> None:
    text = good("stats", file, *args)
    expected = TESTS / "golden" / "stats" / golden
    if overwrite:
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8"), f"{golden} changed: pytest --overwrite, and look at the diff"
    assert "\x1b" not in text


def test_the_json_contract() -> None:
    found = json.loads(good("stats", TRAIN, "--json"))
    contract = "macs flops other_flops at_least params param_bytes activations activation_bytes peak_bytes unknown_ops"
    assert set(found["total"]) >= set(contract.split())
    assert found == opscope.open(TRAIN).stats().to_dict()
    assert found["total"]["flops"] == 2 * found["total"]["macs"]
    assert found["total"]["params"] == 11_689_512
    assert found["rows"]


def test_the_jittor_resnet_is_the_same_network() -> None:
    """2 × 3 × 224 × 224: 1.814 GMACs a picture, forward."""
    stats = opscope.stats(TRAIN)
    assert stats.phases["forward"]["macs"] == 2 * 1_814_073_344
    assert stats.total.samples == 2
    assert not stats.total.at_least
    assert stats.unknown_ops == {}


@pytest.mark.parametrize("level", [5, 6, 7])
def test_a_gradient_without_a_shape_is_computed_all_the_same(level: int) -> None:
    """Paddle's logs of level 5 leave out the shape of the weights' gradients; the network is the same."""
    stats = opscope.stats(DATA / "paddle" / f"example_v{level}.backward.log")
    assert stats.phases["backward"]["macs"] == 597_912
    assert stats.total.at_least == (level == 5)  # whether a sum was broadcast is in its shape


def test_the_causal_column() -> None:
    """Where nothing is known of a mask, the dense count is the most that it can be."""
    s = Small()
    q = s.b.input(s.b.pools.type("float32", (2, 4, 8, 16)), name="q")
    mask = s.b.input(s.b.pools.type("bool", (8, 8)), name="mask")

    def attend(scope: str, attrs: dict[str, Any], *more: int) -> None:
        names = ["query", "key", "value", "attn_mask"]
        node = s.b.node(
            "aten.scaled_dot_product_attention", [q, q, q, *more], args=names[: 3 + len(more)],
            scope=s.b.pools.scope(0, scope, "Attention"), attrs=attrs,
        )  # fmt: skip
        s.b.output(node, s.b.pools.type("float32", (2, 4, 8, 16)))

    attend("all", {})
    attend("causal", {"is_causal": True})
    stats = GraphStats(s.b.freeze(), "torch")
    dense, causal = 2 * 4 * 8 * 8 * 32, 2 * 4 * 36 * 32
    assert (stats.total.macs, stats.total.causal_macs, stats.total.causal_at_most) == (2 * dense, dense + causal, False)
    assert "causal" in report(stats).columns
    assert "Causal: 25.6 kMACs" in "\n".join(cost_tables.summary(stats))
    attend("masked", {}, mask)
    stats = GraphStats(s.b.freeze(), "torch")
    assert (stats.total.causal_macs, stats.total.causal_at_most) == (2 * dense + causal, True)
    text = cost_tables.plain(report(stats))
    assert "≤ 16.38 k" in text  # the module
    assert f"≤ {cost_tables.short(2 * dense + causal)}" in text  # the total
    assert "of 1 attention operator the mask is not known" in "\n".join(cost_tables.summary(stats))


def test_csv_is_exact_and_safe() -> None:
    rows = list(csv.DictReader(io.StringIO(good("stats", TRAIN, "--by", "op", "--csv"))))
    stats = opscope.stats(TRAIN)
    assert sum(int(row["macs"]) for row in rows) == stats.total.macs
    s = Small()
    s.node("=cmd()")
    assert "'=cmd()" in cost_tables.comma_separated(report(GraphStats(s.b.freeze()), "op"))


def test_what_a_notebook_shows_is_escaped() -> None:
    s = Small()
    s.node("<script>", scope=s.b.pools.scope(0, "<b>", "<i>"))
    capture = opscope.Capture.of(Capture(s.b.pools, [Stage("s", s.b.freeze())], origin=Origin()))
    html = capture.stats()._repr_html_() + capture.stats().by_op()._repr_html_()
    assert "<script>" not in html
    assert "<b>:" not in html
    assert "&lt;b&gt;" in html


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--columns", "nonsense"), "the table by module has no column 'nonsense' (it has: class, output"),
        (("--by", "op", "--sort", "depth"), "the table by op has no column 'depth'"),
        (("--depth", "0"), "--depth"),
        (("--top", "0"), "--top"),
        (("--by", "nonsense"), "--by"),
        (("--style", "nonsense"), "--style"),
        (("--device", "abacus"), "no device 'abacus'"),
        (("--columns", "seconds"), "times need a device to run on"),
        (("--stage", "nope"), "no stage 'nope'"),
    ],
)
def test_bad_usage(args: tuple[str, ...], words: str) -> None:
    assert words in bad("stats", TRAIN, *args)


def test_no_kernels_says_so() -> None:
    assert "no kernels are known" in bad("stats", JOINT, "--by", "kernel")


def test_a_file_takes_no_arguments() -> None:
    with pytest.raises(TypeError, match="takes no arguments"):
        opscope.stats(TRAIN, 1)


def test_the_public_names() -> None:
    assert opscope.formula is ops.formula
    assert callable(opscope.stats)  # also once the module behind it is loaded
    assert repr(opscope.stats(JOINT)).startswith("<opscope.Stats ")
    assert len(opscope.stats(JOINT).by_node()) == opscope.open(JOINT).graph.n_nodes
