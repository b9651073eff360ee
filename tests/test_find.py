"""The search language: the cases that the page must answer in the same way, and what it costs."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opscope
from commands import bad, good
from conftest import DATA, TESTS
from effort import lines_run
from opscope.analysis.search.conditions import Measured
from opscope.analysis.search.find import BadQuery, find
from opscope.analysis.search.query import FIELDS, parse
from opscope.analysis.times import Times
from opscope.analysis.values import Figure
from opscope.ir import Capture, Frame, Graph, GraphBuilder, Pools
from opscope.ops import canonical
from strategies import captures

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


def measured(described: dict[str, Any]) -> Measured:
    """The times and figures of a case."""
    seconds = [node.get("time") for node in described["nodes"]]
    times = Times(np.array([s or 0.0 for s in seconds]), np.array([s is not None for s in seconds]), "node")
    count = len(described.get("inputs", ())) + sum(len(node.get("outputs", ())) for node in described["nodes"])
    figures: dict[str, Figure] = {}
    for value, known in described.get("figures", {}).items():
        for name, number in known.items():
            figure = figures.setdefault(name, Figure(np.zeros(count), np.zeros(count, dtype=bool)))
            figure.numbers[int(value)], figure.known[int(value)] = number, True
    return Measured(times, figures)


def _type(b: GraphBuilder, value: dict[str, Any]) -> int:
    return b.pools.type(value.get("dtype", ""), value.get("shape"))


@pytest.mark.parametrize(("described", "case"), cases())
def test_case(described: dict[str, Any], case: dict[str, Any]) -> None:
    graph, framework = build(described), described.get("framework", "")
    if "error" in case:
        with pytest.raises(BadQuery) as error:
            find(graph, case["query"], framework, measured(described))
        assert case["error"] in str(error.value)
        assert "\n" not in str(error.value)
    else:
        assert find(graph, case["query"], framework, measured(described)).tolist() == case["nodes"]


@pytest.mark.parametrize(("described", "case"), [entry.values for entry in cases() if "kinds" in entry.values[0]])
def test_the_kinds_of_a_case_are_those_of_its_framework(described: dict[str, Any], case: dict[str, Any]) -> None:
    """The page is told the kinds; Python looks them up."""
    for node in described["nodes"]:
        assert canonical(described["framework"], node["op"]) == described["kinds"].get(node["op"], node["op"])


@pytest.mark.parametrize(
    ("sample", "kinds"),
    [
        ("torch/joint.pt2", {"matmul": 5}),
        ("hidet/0.2.1/attention-graph.json", {"matmul": 5, "softmax": 1}),
        ("megengine/resnet18_w8.mge", {"conv": 20, "matmul": 1, "batch_norm": 20}),
        ("paddle/example_train.json", {"conv": 2, "conv_backward": 2, "matmul": 3, "matmul_backward": 3}),
        ("jittor/simple_model_train.pkl", {"add": 11, "expand": 31}),
    ],
)
def test_a_kind_has_one_name_in_captures_of_all_frameworks(sample: str, kinds: dict[str, int]) -> None:
    capture = opscope.open(DATA / sample)
    assert {kind: len(capture.find(f"kind:/^{kind}$/")) for kind in kinds} == kinds
    counted = {row["name"]: row["ops"] for row in capture.stats().to_dict("kind")["rows"]}
    assert {kind: counted[kind] for kind in kinds} == kinds


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
    assert lines[0].split() == ["#", "phase", "op", "outputs", "inputs", "module", "source"]
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


@pytest.mark.parametrize(
    ("query", "per_node"),
    [
        ("n99", 2),  # every name is looked at once
        ("op:op3 phase:backward", 0),
        ("scope:block7 -> ** -> op:op5", 0),
        ("attr:stride=2 shape:64x**", 0),
    ],
)
def test_a_search_does_not_go_through_the_nodes_in_python(query: str, per_node: int) -> None:
    """What makes a million nodes answer at once: columns are looked at whole."""
    graphs = [_large(count) for count in (10_000, 20_000)]
    less, more = (lines_run(lambda graph=graph: find(graph, query)) for graph in graphs)
    assert 0 < less <= more <= less + per_node * 10_000


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
