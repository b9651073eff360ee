"""Cutting and re-pooling carry every declared fact along: what a row said of an operator, it says of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.analysis.diff.side_by_side import side_by_side
from opscope.ir import Capture, Graph, GraphBuilder, Pools, Stage, Table, column, frozen, verify_capture
from opscope.ir.cut import cut_capture
from opscope.ir.facts import FACTS, Fact, Field
from strategies import captures

slow = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


GROUPS = sorted({by.partition(":")[2] for fact in FACTS.values() for by in fact.by if by.startswith("group:")})


def kept(name: str) -> bool:
    return not name.endswith("-")


@st.composite
def marked(draw: st.DrawFn) -> Capture:
    """Two stages whose nodes and values have names of their own, some of which are to be cut away, and every declared
    fact about the second one."""
    pools = Pools()
    stages: list[Stage] = []
    for number in range(2):
        b = GraphBuilder(pools)
        values = [b.input(b.pools.type("float32", (2,)), name=f"x{number}")]
        members: dict[int, list[int]] = {}
        for i in range(draw(st.integers(1, 6))):
            mark = draw(st.sampled_from("+-"))
            scope = pools.scope(0, f"s{draw(st.integers(0, 2))}")
            node = b.node(
                f"op{draw(st.integers(0, 2))}", [draw(st.sampled_from(values))], name=f"n{i}{mark}", scope=scope
            )
            values.append(b.output(node, pools.type("float32", (2,)), name=f"v{i}{mark}"))
            members.setdefault(draw(st.integers(0, 2)), []).append(node)
        for group, nodes in members.items():
            for kind in GROUPS:
                b.group(kind, nodes, name=f"k{group}")
        stages.append(Stage(f"stage {number}", b.freeze(), after=number - 1 if number else None))
    capture = Capture(pools, stages)
    for fact in FACTS.values():
        capture.add(draw(tables(fact, draw(st.sampled_from(fact.by)), capture)))
    verify_capture(capture)
    return capture


@st.composite
def tables(draw: st.DrawFn, fact: Fact, by: str, capture: Capture) -> Table:
    before, graph = (stage.graph for stage in capture.stages)
    kind = by.partition(":")[0]
    rows = {"node": graph.n_nodes, "value": graph.n_values, "scope": len(graph.pools.scopes), "row": 3,
            "group": len(graph.groups[GROUPS[0]]), "op": len(graph.pools.strings)}[kind]  # fmt: skip
    index = range(rows) if kind == "row" else sorted(draw(st.sets(st.integers(0, rows - 1), max_size=rows)))

    def values(field: Field) -> Any:
        count = before.n_nodes if field.refers == "node before" else graph.n_nodes
        if field.refers and field.holds == "lists":
            one = st.lists(st.integers(0, count - 1), max_size=3)
            return draw(st.lists(one, min_size=len(index), max_size=len(index)))
        if field.holds == "lists":
            return [[0.5] * (i % 3) for i in index]
        if field.holds == "text":
            return [f"row {i}" for i in index]
        top = count if field.refers else len(field.members) - 1 if field.members else 9
        least = -1 if field.refers else field.least or 0
        return np.array([draw(st.integers(least, top)) for _ in index], dtype=np.int64)

    columns = {
        field.name: column(values(field), "ns" if field.unit == "time" else field.unit)
        for field in fact.fields
        if not field.optional or draw(st.booleans())
    }
    return Table(1, by, frozen(list(index)), columns, fact.name)


def said(capture: Capture, stage: int, only: bool) -> Iterator[tuple[Any, ...]]:
    """Every row of every fact of a stage, with names in place of numbers; with `only`, of what is kept."""
    graph = capture.stages[stage].graph
    for name in FACTS:
        for table in capture.facts(name, stage):
            for row, at in enumerate(table.index.tolist()):
                about = subject(graph, table.by, at)
                if only and not kept(about or ""):
                    continue
                yield name, about, *cells(capture, stage, table, row, only)


def subject(graph: Graph, by: str, at: int) -> str | None:
    strings = graph.pools.strings
    match by.partition(":")[0]:
        case "node":
            return graph.node(at).name
        case "value":
            return graph.value(at).name
        case "scope":
            return graph.pools.scope_path(at)
        case "op":
            return strings[at]
        case "group":
            groups = graph.groups[by.partition(":")[2]]
            names = [graph.node(int(i)).name for i in groups.member[groups.start[at] : groups.start[at + 1]]]
            return f"{strings[int(groups.name[at])]}{'' if any(map(kept, names)) else '-'}"
        case _:
            return None


def cells(capture: Capture, stage: int, table: Table, row: int, only: bool) -> Iterator[Any]:
    for field in FACTS[table.fact].fields:
        found = table.columns.get(field.name)
        if found is None:
            continue
        value = found.values[row]
        if not field.refers:
            yield field.name, value if isinstance(value, str) else np.asarray(value).tolist(), bool(found.known[row])
            continue
        after = capture.stages[stage].after
        of = capture.stages[after].graph if field.refers == "node before" and after is not None else None
        graph = of if of is not None else capture.stages[stage].graph
        if field.holds == "lists":
            names = [graph.node(int(i)).name for i in value]
            yield field.name, tuple(name for name in names if not only or kept(name))
        elif not found.known[row]:
            yield field.name, "not known"
        elif not 0 <= int(value) < graph.n_nodes:
            yield field.name, "the end" if value > 0 else "no node"
        else:
            name = graph.node(int(value)).name
            yield field.name, "not known" if only and not kept(name) else name


def is_about_something(row: tuple[Any, ...]) -> bool:
    lists = [cell[1] for cell in row[2:] if isinstance(cell[1], tuple)]
    return not lists or any(lists)


@slow
@given(marked())
def test_a_cut_keeps_what_facts_say_of_what_is_left(capture: Capture) -> None:
    part = cut_capture(capture, lambda graph: np.array([kept(node.name) for node in graph.nodes], dtype=bool))
    verify_capture(part)
    numbers = {stage.name: i for i, stage in enumerate(part.stages)}
    if len(numbers) < 2:  # one was cut away as a whole, and what is said of both
        return
    values = {value.name for value in capture.stages[1].graph.values}
    gone = values - {value.name for value in part.stages[1].graph.values}
    before = [row for row in said(capture, 1, only=True) if is_about_something(row) and row[1] not in gone]
    after = [row for row in said(part, 1, only=True) if row[1] not in values or kept(row[1])]
    assert sorted(map(str, after)) == sorted(map(str, before))


@slow
@given(marked())
def test_other_pools_change_nothing_that_facts_say(capture: Capture) -> None:
    first, second = capture.stages
    both = side_by_side((capture, first, "a"), (capture, second, "b"))
    verify_capture(both)
    skipped = "changes"  # they are computed again from the two graphs
    before = [row for row in said(capture, 1, only=False) if row[0] != skipped]
    after = [row for row in said(both, 1, only=False) if row[0] != skipped]
    assert sorted(map(str, after)) == sorted(map(str, before))


@slow
@given(captures())
def test_cutting_nothing_changes_nothing(capture: Capture) -> None:
    whole = replace(capture, stages=[stage for stage in capture.stages if stage.graph.n_nodes])
    if len(whole.stages) < len(capture.stages):
        return
    part = cut_capture(capture, lambda graph: np.ones(graph.n_nodes, dtype=bool))
    assert {name: table.index.tolist() for name, table in part.tables.items()} == {
        name: table.index.tolist() for name, table in capture.tables.items()
    }
