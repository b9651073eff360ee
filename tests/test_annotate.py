"""The one step that adds what can be computed about a capture, and two captures as the stages of one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import opscope
from opscope import wire
from opscope.analysis.annotate import annotate
from opscope.analysis.diff.side_by_side import side_by_side
from opscope.export.page import capture_bytes
from opscope.ir import Capture, verify_capture

DATA = Path(__file__).parent / "data"
PASSES = DATA / "hidet" / "0.2.1" / "outs"


def reread(capture: Capture) -> Capture:
    data = capture_bytes(annotate(capture))
    return wire.read(io.BytesIO(data), len(data))


def test_the_page_gets_the_changes_and_the_capture_stays_as_it_was() -> None:
    capture = opscope.open(PASSES)
    shown = reread(capture)
    assert not capture.stage_links
    assert {table.fact for table in capture.tables.values()} <= {"", "lines"}
    changes = [table for stage in range(7) for table in shown.facts("changes", stage)]
    assert [len(table.index) for table in changes] == [0, 1, 0, 3, 7, 0]
    assert [(link.before, link.after) for link in shown.stage_links] == [(i, i + 1) for i in range(6)]


def test_very_large_graphs_are_shown_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.analysis.annotate.MOST_COMPARED", 30)
    capture = opscope.open(PASSES)
    assert facts(annotate(capture, costs=False)) == facts(capture) | {"kinds"}


def test_a_capture_without_derived_stages_has_no_changes() -> None:
    capture = opscope.open(DATA / "page" / "breaks.opscope")
    assert facts(annotate(capture, costs=False)) == facts(capture) | {"kinds"}


def facts(capture: opscope.Capture) -> set[str]:
    return {table.fact for table in capture.tables.values()}


def test_two_captures_become_the_stages_of_one() -> None:
    """Each has pools of its own: in the common ones every name, type, scope, stack and attribute is the same."""
    sides = [opscope.open(DATA / "page" / f"{name}.opscope") for name in ("step", "joint")]
    first, second = ((capture, capture.stages[0], "graph") for capture in sides)
    both = side_by_side(first, second)
    verify_capture(both)
    assert [stage.name for stage in both.stages] == ["graph", "graph (2)"]
    assert both.origin.how == "compared"
    for capture, stage in zip(sides, both.stages, strict=True):
        for mine, theirs in zip(stage.graph.nodes, capture.stages[0].graph.nodes, strict=True):
            assert (mine.op, mine.name, mine.path, mine.attrs) == (theirs.op, theirs.name, theirs.path, theirs.attrs)
            assert mine.frames == theirs.frames
            assert [str(value.type) for value in mine.outputs] == [str(value.type) for value in theirs.outputs]
    shown = reread(both)
    assert len(list(shown.facts("changes", 1))) == 1


def test_bodies_and_groups_come_along() -> None:
    capture = opscope.open(PASSES)
    fused = capture.stages[5]
    both = side_by_side((capture, capture.stages[4], "a"), (capture, fused, "b"))
    verify_capture(both)
    inner = [body.graph for body in both.stages[1].graph.bodies]
    assert [graph.n_nodes for graph in inner] == [body.graph.n_nodes for body in fused.graph.bodies]
    assert all(graph.pools is both.pools for graph in inner)
    assert [node.op for node in inner[0].nodes] == [node.op for node in fused.graph.bodies[0].graph.nodes]
