"""The search language: the cases that the page must answer in the same way, and what it costs."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opscope
from conftest import DATA, TESTS
from opscope.analysis.find import BadQuery, find
from opscope.analysis.query import FIELDS, parse
from opscope.ir import Capture, Frame, Graph, GraphBuilder, Pools
from strategies import captures
from test_cli import bad, good

SIMPLE = DATA / "jittor" / "simple_model_train.pkl"


def cases() -> list[Any]:
    found: list[Any] = []
    graph: dict[str, Any] = {}
    for number, case in enumerate(json.loads((TESTS / "find_cases.json").read_text(encoding="utf-8"))):
        graph = case.get("graph", graph)
        found.append(pytest.param(graph, case, id=f"{number} {case['query'][:40]}"))
    return found


def build(described: dict[str, Any]) -> Graph:
    """The graph of a case; docs/find.md says how it is written."""
    b = GraphBuilder(Pools())
    for value in described.get("inputs", ()):
        b.input(_type(b, value), name=value.get("name", ""), role=value.get("role", "input"))
    first = b.n_values
    made = 0
    for node in described["nodes"]:  # values first: a loop may read what is made later
        for value in node.get("outputs", ()):
            b.value(_type(b, value), name=value.get("name", ""), role=value.get("role", "activation"))
    for node in described["nodes"]:
        scope = 0
        path = node.get("scope", [])
        for i, part in enumerate(path):
            scope = b.pools.scope(scope, part, node.get("class", "") if i == len(path) - 1 else "")
        row = b.node(
            node["op"],
            node.get("inputs", ()),
            name=node.get("name", ""),
            scope=scope,
            stack=b.pools.stack([Frame(file, line, "") for file, line in node.get("frames", ())]),
            attrs=node.get("attrs", {}),
            phase=node.get("phase", "other"),
        )
        for _ in node.get("outputs", ()):
            b.produce(row, first + made)
            made += 1
    for kernel in described.get("kernels", ()):
        b.group("kernel", kernel["nodes"], name=kernel["name"])
    return b.freeze()


def _type(b: GraphBuilder, value: dict[str, Any]) -> int:
    return b.pools.type(value.get("dtype", ""), value.get("shape"))


@pytest.mark.parametrize(("described", "case"), cases())
def test_case(described: dict[str, Any], case: dict[str, Any]) -> None:
    graph = build(described)
    if "error" in case:
        with pytest.raises(BadQuery) as error:
            find(graph, case["query"])
        assert case["error"] in str(error.value)
        assert "\n" not in str(error.value)
    else:
        assert find(graph, case["query"]).tolist() == case["nodes"]


def test_the_cases_try_every_field() -> None:
    queries = " ".join(case["query"] for case in json.loads((TESTS / "find_cases.json").read_text(encoding="utf-8")))
    assert [field for field in FIELDS if f"{field}:" not in queries] == []


def test_every_query_of_the_manual_is_read() -> None:
    text = (TESTS.parent / "docs" / "find.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        if " -> " in line and line[:1].isalpha() and "=" not in line and "`" not in line and "(" not in line:
            assert len(parse(line.split("   ")[0])) > 1


def test_on_a_real_capture() -> None:
    capture = opscope.open(SIMPLE)
    nodes = capture.find("op:matmul") or capture.find("linear1 phase:forward")
    assert nodes
    assert all(node.graph is capture.graph for node in nodes)
    backward = capture.find("phase:backward", stage="trace")
    assert {node.phase for node in backward} == {"backward"}
    with pytest.raises(opscope.OpscopeError, match="no stage 'nope'"):
        capture.find("x", stage="nope")


def test_the_command() -> None:
    capture = opscope.open(SIMPLE)
    expected = [node.index for node in capture.find("linear1 phase:backward")]
    lines = good("find", SIMPLE, "linear1 phase:backward").splitlines()
    assert lines[0].split() == ["#", "phase", "op", "makes", "reads", "module", "source"]
    assert [int(line.split()[0]) for line in lines[1:]] == expected
    assert good("find", SIMPLE, "linear1", "phase:backward").splitlines() == lines
    rows = json.loads(good("find", SIMPLE, "linear1 phase:backward", "--json", "--limit", "2"))
    assert [row["node"] for row in rows["nodes"]] == expected[:2]
    assert rows["found"] == len(expected)
    assert {"node", "op", "name", "phase", "scope", "outputs", "file", "line"} == set(rows["nodes"][0])
    assert "no field foo" in bad("find", SIMPLE, "foo:bar")
    assert "Missing argument" in bad("find", SIMPLE)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    captures(),
    st.lists(
        st.sampled_from(
            [*(f"{f}:" for f in FIELDS), "->", "*", "**", " ", "-", '"', "/", "x", "1", "[", "(", "\\", "\n", "forward"]
        ),
        max_size=8,
    ).map("".join),
)
def test_any_query_on_any_capture_answers_or_explains(capture: Capture, query: str) -> None:
    for stage in capture.stages:
        with suppress(BadQuery):
            assert (np.diff(find(stage.graph, query)) > 0).all()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(captures())
def test_paths_are_walks(capture: Capture) -> None:
    """`phase:forward -> * -> phase:backward`, counted by hand."""
    for stage in capture.stages:
        graph = stage.graph
        expected: set[int] = set()
        for last in graph.nodes:
            for middle in {v.producer.index for v in last.inputs if v is not None and v.producer is not None}:
                for value in graph.node(middle).inputs:
                    first = None if value is None else value.producer
                    if first is not None and first.phase == "forward" and last.phase == "backward":
                        expected |= {first.index, middle, last.index}
        assert find(graph, "phase:forward -> * -> phase:backward").tolist() == sorted(expected)


def test_a_million_nodes_answer_at_once() -> None:
    """As a ratio: a search takes no longer than twenty times one look at all names."""
    graph = _large(1_000_000)
    names = graph.pools.strings.rows()
    start = time.process_time()
    for name in names:
        name.lower()
    one_look = time.process_time() - start
    for query in ("n99", "op:op3 phase:backward", "scope:block7 -> ** -> op:op5", "attr:stride=2 shape:64x**"):
        start = time.process_time()
        find(graph, query)
        assert time.process_time() - start < 20 * one_look + 0.1, query


def _large(count: int) -> Graph:
    rng = np.random.default_rng(0)
    b = GraphBuilder(Pools())
    b.input()
    types = [b.pools.type("float32", (64, s)) for s in (1, 7, 14)]
    scopes = [b.pools.scope(0, f"block{i}", "Block") for i in range(10_000)]
    b.nodes(
        [f"op{i}" for i in rng.integers(0, 40, count).tolist()],
        [(i, max(0, i - 7)) for i in range(count)],
        [types[i] for i in rng.integers(0, 3, count).tolist()],
        names=[f"n{i}" for i in range(count)],
        scopes=[scopes[i // (count // 10_000)] for i in range(count)],
        phases=["forward" if i < count // 2 else "backward" for i in range(count)],
    )
    return b.freeze()
