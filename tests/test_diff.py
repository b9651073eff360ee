"""The structural diff: what it calls the same, and that nothing stays without an explanation."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opscope
from commands import good
from conftest import DATA, TESTS
from diffing import Row, built, network, rebuilt
from opscope.analysis.diff import Diff, compare
from opscope.analysis.diff.sequence import align
from opscope.ir import Graph, GraphBuilder, Pools, StageLink
from opscope.ir.columns import frozen
from opscope.ir.enumerations import CHANGE_CLASSES
from strategies import graphs
from test_find import build as described

_MIRROR = {"added": "removed", "removed": "added", "fused": "split", "split": "fused"}


def complete(diff: Diff) -> None:
    """Every node before and after is the same, or in exactly one change."""
    before = [n for change in diff.changes for n in change.before] + diff.same.tolist()
    after = [n for change in diff.changes for n in change.after] + diff.pairs[diff.same].tolist()
    assert sorted(before) == list(range(diff.before.n_nodes))
    assert sorted(after) == list(range(diff.after.n_nodes))
    assert {change.kind for change in diff.changes} <= set(CHANGE_CLASSES) - {"same"}


def mirrored(diff: Diff) -> set[tuple[object, ...]]:
    return {(_MIRROR.get(c.kind, c.kind), tuple(sorted(c.after)), tuple(sorted(c.before))) for c in diff.changes}


def told(diff: Diff) -> set[tuple[object, ...]]:
    return {(c.kind, tuple(sorted(c.before)), tuple(sorted(c.after))) for c in diff.changes}


CASES = json.loads((TESTS / "diff_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_the_page_finds_too(case: dict[str, Any]) -> None:
    """viewer/test/engine/compare.test.ts holds the page to the same cases."""
    diff = compare(described(case["before"]), described(case["after"]))
    found = [[change.kind, list(change.before), list(change.after), change.detail] for change in diff.changes]
    assert found == case["changes"]


# -- properties -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_graph_does_not_differ_from_itself(data: st.DataObject) -> None:
    graph = data.draw(graphs(Pools()))
    diff = compare(graph, graph)
    assert diff.is_empty
    complete(diff)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_other_names_and_another_order_are_no_difference(seed: int, count: int) -> None:
    rng = random.Random(seed)
    graph = built(network(rng, count))
    order = list(range(count))
    rng.shuffle(order)
    diff = compare(graph, rebuilt(graph, order))
    assert diff.changes == ()


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_neither_are_they_for_odd_graphs(data: st.DataObject) -> None:
    graph = data.draw(graphs(Pools()))
    order = data.draw(st.permutations(range(graph.n_nodes)))
    diff = compare(graph, rebuilt(graph, order))
    complete(diff)
    assert diff.changes == ()


def edit(rows: list[Row], rng: random.Random, count: int) -> tuple[list[Row], set[int], set[int]]:
    """Some edits; the rows that they touch before, and after."""
    after = deepcopy(rows)
    before_touched: set[int] = set()
    at = sorted(rng.sample(range(len(rows)), min(count, len(rows))))
    place = list(range(len(rows)))  # where an old row is now
    touched: set[int] = set()
    shift = 0
    for i in at:
        now = i + shift
        before_touched.add(i)
        kind = rng.randrange(4)
        if kind == 0:
            after[now].op = "new"
        elif kind == 1:
            after[now].axis += 10
        elif kind == 2:
            after[now].shape = (5, *after[now].shape)
        else:  # one more operator in front of it
            for row in after[now:]:
                row.reads = [r + 1 if r >= now else r for r in row.reads]
            first, *rest = after[now].reads
            after.insert(now, Row("inserted", [first]))
            after[now + 1].reads = [now, *rest]
            touched = {t + 1 if t >= now else t for t in touched} | {now}
            place = [p + 1 if p >= now else p for p in place]
            shift += 1
        touched.add(place[i])
    return after, before_touched, touched


def with_neighbours(graph: Graph, nodes: set[int]) -> set[int]:
    found = set(nodes)
    for node in nodes:
        handle = graph.node(node)
        found |= {v.producer.index for v in handle.inputs if v is not None and v.producer is not None}
        found |= {user.index for value in handle.outputs for user in value.users}
    return found


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.integers(5, 60), st.integers(1, 5))
def test_changes_lie_where_the_edits_are(seed: int, count: int, edits: int) -> None:
    rng = random.Random(seed)
    rows = network(rng, count)
    changed, before_touched, after_touched = edit(rows, rng, edits)
    before, after = built(rows), built(changed)
    diff = compare(before, after)
    complete(diff)
    assert diff.changes
    assert {n for c in diff.changes for n in c.before} <= with_neighbours(before, before_touched)
    assert {n for c in diff.changes for n in c.after} <= with_neighbours(after, after_touched)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(0, 8))
def test_it_is_symmetric(seed: int, count: int, edits: int) -> None:
    rng = random.Random(seed)
    rows = network(rng, count)
    before, after = built(rows), built(edit(rows, rng, edits)[0])
    forth, back = compare(before, after), compare(after, before)
    assert mirrored(forth) == told(back)
    assert dict(zip(forth.same.tolist(), forth.pairs[forth.same].tolist(), strict=True)) == {
        int(back.pairs[y]): y for y in back.same.tolist()
    }


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_two_graphs_are_explained_and_symmetric(data: st.DataObject) -> None:
    before, after = data.draw(graphs(Pools())), data.draw(graphs(Pools()))
    forth, back = compare(before, after), compare(after, before)
    complete(forth)
    assert mirrored(forth) == told(back)


@settings(max_examples=80)
@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_align_finds_a_longest_common_part(a: list[int], b: list[int]) -> None:
    pairs = align(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in pairwise(pairs))
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1, j + 1] = table[i, j] + 1 if x == y else max(table[i, j + 1], table[i + 1, j])
    assert len(pairs) == table[-1, -1]


# -- classes ----------------------------------------------------------------------------------------


def chain(*ops: str) -> Graph:
    return built([Row(op, [i - 1]) for i, op in enumerate(ops)])


def only(diff: Diff) -> tuple[str, str, str]:
    complete(diff)
    (change,) = diff.changes
    return change.kind, change.sizes, change.detail


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b c", "a x c", ("changed", "1→1", "operator: b → x")),
        ("a b c", "a c", ("removed", "1→0", "b")),
        ("a c", "a b c", ("added", "0→1", "b")),
        ("a b c d", "a f d", ("fused", "2→1", "b c → f")),
        ("a f d", "a b c d", ("split", "1→2", "f → b c")),
        ("a b c d", "a x y z d", ("rewritten", "2→3", "b + c → x + y + z")),
        ("", "a", ("added", "0→1", "a")),
    ],
)
def test_classes(before: str, after: str, expected: tuple[str, str, str]) -> None:
    assert only(compare(chain(*before.split()), chain(*after.split()))) == expected


def test_a_changed_operator_tells_what_changed() -> None:
    rows = [Row("a", [-1]), Row("conv", [0], width=8), Row("b", [1])]
    other = deepcopy(rows)
    other[1].axis, other[1].width, other[1].shape = 1, 16, (4, 9)
    assert only(compare(built(rows), built(other))) == (
        "changed",
        "1→1",
        "axis: 0 → 1; i: 0 → 1; output: float32[4,8] → float32[4,9]; argument 1: float32[8,8] → float32[16,8]",
    )


def test_one_more_layer_among_equal_ones_is_one_addition() -> None:
    layer = ["norm", "matmul", "act"]
    diff = compare(chain(*layer * 20), chain(*layer * 21))
    assert only(diff)[:2] == ("added", "0→3")


def test_another_size_of_everything_pairs_all() -> None:
    rows = network(random.Random(3), 30)
    other = [Row(r.op, r.reads, (9, *r.shape[1:]), r.width, r.axis) for r in rows]
    diff = compare(built(rows), built(other))
    complete(diff)
    assert diff.summary()["changed"] == 30


def test_an_operator_that_reads_something_else_moved() -> None:
    rows = [Row("a", [-1]), Row("b", [-1]), Row("c", [0]), Row("d", [0, 1]), Row("e", [2, 3])]
    other = deepcopy(rows)
    other[2].reads = [1]
    assert only(compare(built(rows), built(other))) == ("moved", "1→1", "argument 0 reads b instead of a")


def scoped(*scopes: str) -> Graph:
    pools = Pools()
    b = GraphBuilder(pools)
    value = b.input(pools.type("float32", (4,)))
    for i, path in enumerate(scopes):
        scope = 0
        for name in path.split("/"):
            scope = pools.scope(scope, name, name.title())
        value = b.output(b.node(f"op{i}", [value], scope=scope), pools.type("float32", (4,)))
    b.outputs.append(value)
    return b.freeze()


def test_a_module_with_another_name_is_no_change() -> None:
    diff = compare(scoped("net/a", "net/a", "net/b"), scoped("model/x", "model/x", "model/b"))
    assert diff.is_empty
    assert diff.renamed == {"net/a": "model/x", "net/b": "model/b"}


def test_an_operator_in_another_module_moved() -> None:
    diff = compare(scoped("a", "a", "a", "b"), scoped("a", "a", "b", "b"))
    assert only(diff) == ("moved", "1→1", "module: a → b")


def test_what_was_reported_counts_more_than_structure() -> None:
    before, after = chain("a", "b", "c"), chain("a", "x", "y", "c")
    pairs = [(0, 0), (1, 1), (1, 2), (2, 3)]
    source, target = (frozen(list(column)) for column in zip(*pairs, strict=True))
    diff = compare(before, after, [StageLink(0, 1, "lowers", source, target, "reported")])
    (change,) = diff.changes
    assert (change.kind, change.before, change.after, change.evidence) == ("split", (1,), (1, 2), "reported")


def test_links_join_all_that_belongs_together() -> None:
    source, target = compare(chain("a", "b", "c", "d"), chain("a", "f", "d")).links()
    assert sorted(zip(source.tolist(), target.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 1), (3, 2)]


def test_one_edit_among_equal_branches_is_one_change() -> None:
    rows: list[Row] = []
    start = -1
    for _ in range(3):
        ends: list[int] = []
        for _ in range(8):
            rows += [Row("matmul", [start]), Row("bias", [len(rows)]), Row("act", [len(rows) + 1])]
            ends.append(len(rows) - 1)
        rows.append(Row("join", ends))
        start = len(rows) - 1
    other = deepcopy(rows)
    other[32].op = "scale"  # the bias of a branch in the middle
    assert only(compare(built(rows), built(other))) == ("changed", "1→1", "operator: bias → scale")


def test_stage_diffs_in_python_are_those_of_the_command() -> None:
    folder = DATA / "hidet" / "0.2.1" / "outs"
    found = opscope.open(folder).stage_diffs()
    printed = json.loads(good("diff", str(folder), "--json"))["stages"]
    assert [(step.before, step.after, step.seconds) for step in found] == [
        (step["before"], step["after"], step["seconds"]) for step in printed
    ]
    assert [len(step.diff.changes) for step in found] == [0, 1, 0, 3, 7, 0]
