"""The model: what is built is valid, what is broken is named, and text and file say the same."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from golden import round_trip
from opscope.ir import (
    NULL,
    Capture,
    Frame,
    Graph,
    GraphBuilder,
    InvalidGraph,
    Pools,
    Stage,
    StageLink,
    Table,
    column,
    lines_of,
    verify,
    verify_capture,
)
from opscope.ir.columns import frozen
from opscope.ir.text import dump
from strategies import captures, graphs

slow = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@slow
@given(captures())
def test_what_is_built_is_valid(capture: Capture) -> None:
    verify_capture(capture)


@slow
@given(captures())
def test_the_file_keeps_everything(capture: Capture) -> None:
    again = round_trip(capture)
    assert dump(again) == dump(capture)
    for number, (before, after) in enumerate(zip(capture.stages, again.stages, strict=True)):
        for name, col in before.graph.columns().items():
            assert np.array_equal(col, after.graph.columns()[name]), name
        assert after.listings == before.listings
        for kind in before.listings:
            assert lines_of(again, number, kind) == lines_of(capture, number, kind)
    assert [s.graph is capture.stages[0].graph for s in capture.stages] == [
        s.graph is again.stages[0].graph for s in again.stages
    ]
    assert again.sources == capture.sources
    for pool in ("strings", "types", "scopes", "frames", "stacks", "attr_texts"):
        assert getattr(again.pools, pool).rows() == getattr(capture.pools, pool).rows(), pool


@slow
@given(captures())
def test_the_dump_is_deterministic(capture: Capture) -> None:
    text = dump(capture)
    assert text == dump(capture)
    for line in text.splitlines():
        assert line.isprintable(), repr(line)


@slow
@given(graphs(Pools()))
def test_handles_agree_with_columns(graph: Graph) -> None:
    for node in graph.nodes:
        for slot, value in enumerate(node.outputs):
            assert value.producer == node
            assert value.slot == slot
        for use in node.uses:
            assert use.value is None or node in use.value.users
    assert sum(len(value.users) for value in graph.values) == graph.n_edges


@pytest.fixture
def small() -> Graph:
    pools = Pools()
    b = GraphBuilder(pools)
    x = b.input(pools.type("float32", (2, 3)), name="x")
    w = b.value(pools.type("float32", (3, 3)), name="w", role="parameter")
    scope = pools.scope(0, "net", "Net")
    matmul = b.node("matmul", [x, w], scope=scope, stack=pools.stack([Frame("m.py", 3, "f")]), phase="forward")
    y = b.output(matmul, pools.type("float32", (2, 3)))
    split = b.node("split", [y, NULL, y], args=["x", "bias", "again"])
    b.outputs += [b.output(split), b.output(split, storage=y)]
    b.link("grad", matmul, split)
    b.group("kernel", [matmul, split], name="fused", code="int main() {}")
    return b.freeze()


def test_a_node_and_its_neighbours(small: Graph) -> None:
    matmul, split = small.nodes
    assert (matmul.op, matmul.path, matmul.phase) == ("matmul", "net", "forward")
    assert matmul.frames == [Frame("m.py", 3, "f")]
    assert [value.name for value in matmul.inputs if value] == ["x", "w"]
    assert [(use.arg, use.value is None) for use in split.uses] == [("x", False), ("bias", True), ("again", False)]
    assert split.outputs[1].storage == matmul.outputs[0]
    assert matmul.outputs[0].users == [split, split]
    assert small.groups["kernel"].of_node(1) == [0]
    assert small.n_edges == 4


def test_a_frozen_graph_cannot_be_written(small: Graph) -> None:
    for name, col in small.columns().items():
        with pytest.raises(ValueError, match="read-only"):
            col[:1] = 0
        assert not col.flags.writeable, name
    with pytest.raises(dataclasses.FrozenInstanceError):
        small.inputs = frozen([])  # type: ignore[misc]


def test_the_builder_goes_on_without_touching_the_graph(small: Graph) -> None:
    pools = Pools()
    b = GraphBuilder(pools)
    b.node("a")
    first = b.freeze()
    b.node("b")
    b.link("grad", 0, 1)
    assert first.n_nodes == 1
    assert not first.links
    assert b.freeze().n_nodes == 2


def test_many_nodes_at_once_are_the_same_as_one_by_one() -> None:
    rows: list[dict[str, Any]] = [
        {"op": "a", "inputs": [0], "name": "first", "scope": 1, "stack": 1, "phase": "forward", "type": 1},
        {"op": "b", "inputs": [], "name": "", "scope": 0, "stack": 0, "phase": "other", "type": 0},
        {"op": "a", "inputs": [1, 0, 2], "name": "层", "scope": 1, "stack": 1, "phase": "backward", "type": 1},
    ]

    def prepared() -> GraphBuilder:
        b = GraphBuilder(Pools())
        b.pools.type("float32", (1,))
        b.pools.scope(0, "m")
        b.pools.stack([Frame("f", 1, "")])
        b.input(1, name="x")
        b.node("before", [0, 0])
        b.output(0)
        return b

    single, many = prepared(), prepared()
    for row in rows:
        keep = {key: row[key] for key in ("name", "scope", "stack", "phase")}
        single.output(single.node(row["op"], row["inputs"], **keep), row["type"])
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    nodes, values = many.nodes(
        columns["op"],
        columns["inputs"],
        columns["type"],
        names=columns["name"],
        scopes=columns["scope"],
        stacks=columns["stack"],
        phases=columns["phase"],
    )
    assert (nodes, values) == (range(1, 4), range(2, 5))
    one, other = single.freeze(), many.freeze()
    # Ids of strings differ, since they are met in another order; what they say does not.
    assert dump(Capture(one.pools, [Stage("s", one)])) == dump(Capture(other.pools, [Stage("s", other)]))
    for name in ("node_scope", "node_stack", "use_start", "use_value", "value_producer", "value_storage"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"node_op": [1, 10**6]}, "op of node 1 is 1000000, outside 0 to"),
    ({"node_scope": [0, 7]}, "scope of node 1 is 7, outside 0 to 1"),
    ({"node_phase": [0, 99]}, "phase of node 1 is 99"),
    ({"node_stack": [0, -1]}, "stack of node 1 is -1"),
    ({"node_attrs": [0, 5]}, "attributes of node 1 is 5"),
    ({"node_name": [0]}, "column node_name has 1 rows instead of 2"),
    ({"use_start": [0, 3, 2]}, "the start column of the uses does not rise from 0 to 5"),
    ({"use_start": [0, 5]}, "column use_start has 2 rows instead of 3"),
    ({"use_value": [0, 1, 2, -2, 2]}, "value of use 3 is -2"),
    ({"use_arg": [1, 1]}, "column use_arg has 2 rows instead of 5"),
    ({"value_producer": [-1, -1, 0, 1, 9]}, "producer of value 4 is 9"),
    ({"value_slot": [0, 0, 0, 0, 2]}, "value 4 has output slot 2: the outputs of node 1 do not number 0, 1, 2"),
    ({"value_slot": [0, 0, 0, 0, 0]}, "value 4 has output slot 0: the outputs of node 1 do not number"),
    ({"value_slot": [3, 0, 0, 0, 1]}, "value 0 has no producer but output slot 3"),
    ({"value_type": [0, 0, 0, 0, 99]}, "type of value 4 is 99"),
    ({"value_role": [0, 0, 0, 0, 99]}, "role of value 4 is 99"),
    ({"value_storage": [0, 1, 2, 3, 99]}, "storage of value 4 is 99"),
    ({"value_storage": [1, 0, 2, 3, 4]}, "has the storage of value 1, which does not own one itself"),
    ({"inputs": [2]}, "graph input 2 is made by node 0"),
    ({"inputs": [0, 0]}, "a value is listed twice among the graph inputs"),
    ({"outputs": [9]}, "graph output 0 is 9"),
]


@pytest.mark.parametrize(("columns", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_every_broken_invariant_is_named(small: Graph, columns: dict[str, list[int]], words: str) -> None:
    changed = {n: np.array(v, dtype=getattr(small, n).dtype) for n, v in columns.items()}
    with pytest.raises(InvalidGraph) as error:
        verify(dataclasses.replace(small, **changed))
    assert words in str(error.value)


def test_broken_relations_are_named(small: Graph) -> None:
    links = dataclasses.replace(small.links["grad"], target=frozen([9]))
    with pytest.raises(InvalidGraph, match="target of grad link 0 is 9"):
        verify(dataclasses.replace(small, links={"grad": links}))
    kernels = dataclasses.replace(small.groups["kernel"], member=frozen([0, 9]))
    with pytest.raises(InvalidGraph, match="member of kernel group 1 is 9"):
        verify(dataclasses.replace(small, groups={"kernel": kernels}))


def test_broken_captures_are_named(small: Graph) -> None:
    pools = small.pools

    def words(**fields: Any) -> str:
        with pytest.raises(InvalidGraph) as error:
            verify_capture(Capture(**{"pools": pools, "stages": [Stage("a", small)], **fields}))
        return str(error.value)

    assert "two stages have the same name" in words(stages=[Stage("a", small), Stage("a", small)])
    assert "comes after stage 1, which is not before it" in words(stages=[Stage("a", small, 1), Stage("b", small)])
    assert "other pools than its capture" in words(pools=Pools())
    table = Table(0, "node", frozen([5]), {"c": column([1.0])})
    assert "row of table 't': node 0 is 5" in words(tables={"t": table})
    assert "which its stage does not have" in words(tables={"t": dataclasses.replace(table, by="group:partition")})
    assert "belongs to stage 3" in words(tables={"t": dataclasses.replace(table, stage=3)})
    link = StageLink(0, 4, "lowers", frozen([0]), frozen([0]), "name")
    assert "which do not both exist" in words(stage_links=[link])
    link = StageLink(0, 0, "sideways", frozen([0]), frozen([0]), "name")
    assert "'sideways'" in words(stage_links=[link])


def test_a_value_is_made_once() -> None:
    b = GraphBuilder(Pools())
    value = b.value()
    b.produce(b.node("a"), value)
    with pytest.raises(ValueError, match="is made by node 0 already"):
        b.produce(b.node("b"), value)


def test_numbers_that_json_has_not() -> None:
    pools = Pools()
    attrs = {"a": float("inf"), "b": [float("-inf"), {"c": 1.5}]}
    assert pools.attrs_of(pools.attrs(attrs)) == attrs
    assert str(pools.attrs_of(pools.attrs({"n": float("nan")}))) == "{'n': nan}"
