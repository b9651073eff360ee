"""What is missing from a graph is a fact of the capture, and every figure that it touches is a lower bound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opscope
from commands import good
from opscope.analysis.annotate import annotate
from opscope.ir import Capture, Gap, GraphBuilder, Origin, Pools, Stage, gaps_of, verify_capture
from opscope.ir.gaps import note


def made(*gaps: Gap) -> opscope.Capture:
    """Two modules: `l1` with a product, `l2` with an activation in `l2/in`; nobody reads w2."""
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (4, 8)), name="x")
    w = b.value(b.pools.type("float32", (8, 8)), name="w", role="parameter")
    b.value(b.pools.type("float32", (8, 8)), name="w2", role="parameter")
    scopes = [b.pools.scope(0, "l1", "Linear"), b.pools.scope(0, "l2", "Block")]
    scopes.append(b.pools.scope(scopes[1], "in", "Act"))
    product = b.node("aten.mm", [x, w], scope=scopes[0], phase="forward")
    y = b.output(product, b.pools.type("float32", (4, 8)))
    relu = b.node("aten.relu", [y], scope=scopes[2], phase="forward")
    b.outputs.append(b.output(relu, b.pools.type("float32", (4, 8))))
    capture = Capture(b.pools, [Stage("graph", b.freeze())], origin=Origin("test", "torch"))
    note(capture, 0, gaps)
    verify_capture(capture)
    return opscope.Capture.of(capture)


LOST = Gap("nobody saw it", 3, scope=2, phase="forward")
OWN = Gap("lost", 1, scope=1, is_inside=False, phase="forward", op="aten.foo")


def test_without_gaps_nothing_is_marked():
    stats = made().stats()
    assert not stats.gaps
    assert not stats.total.at_least
    assert not stats.total.params_at_least
    assert stats.parameters.unused == ["w2"]
    assert stats.totals()["gaps"] == []


def test_totals_are_lower_bounds_and_no_parameter_is_unused():
    capture = made(LOST)
    stats = capture.stats()
    total = stats.total
    assert total.macs == 4 * 8 * 8
    assert total.at_least
    assert total.bytes_at_least
    assert total.activations_at_least
    assert total.params_at_least
    assert stats.parameters.unused == []
    assert stats.parameters.unread == ["w2"]
    found = stats.totals()
    assert found["at_least"]
    assert found["params_may_be_used"] == ["w2"]
    assert not found["params_unused"]
    assert found["gaps"] == [
        {
            "reason": "nobody saw it", "count": 3, "module": "l2", "phase": "forward", "op": None,
            "touches": ["compute", "traffic", "memory", "parameters"],
        }
    ]  # fmt: skip
    text = str(stats)
    assert "Missing: 3 operators in l2 are not in the graph: nobody saw it" in text
    assert "Compute: ≥ 256 MACs" in text
    assert "Unused" not in text
    assert capture.all_warnings() == ["3 operators in l2 are not in the graph: nobody saw it"]


def marked(stats: opscope.Stats, by: str) -> set[str]:
    options = {"depth": 3, "fold": False} if by == "module" else {}
    return {str(row.get("path", row["name"])) for row in stats.table(by, **options).rows if row["unknown"]}


def test_rows_are_marked_where_it_may_have_run():
    inside, own, anywhere = made(LOST).stats(), made(OWN).stats(), made(Gap("lost")).stats()
    assert marked(inside, "module") == {"l2", "l2/in"}
    assert marked(own, "module") == {"l1"}
    assert marked(anywhere, "module") == {"", "l1", "l2", "l2/in"}
    assert marked(inside, "op") == {"aten.mm", "aten.relu"}  # it may be any
    assert marked(own, "op") == set()
    assert marked(made(OWN.__class__(**{**vars(OWN), "op": "aten.addmm"})).stats(), "kind") == {"matmul"}
    assert marked(inside, "phase") == {"forward"}
    assert marked(made(Gap("lost", phase="backward")).stats(), "phase") == set()


def test_a_module_of_which_all_is_missing_is_still_a_row():
    capture = made()
    scope = capture.pools.scope(0, "gone", "Fast")
    note(capture, 0, [Gap("it ran elsewhere", scope=scope)])
    rows = {row["name"]: row for row in capture.stats().by_module().rows}
    assert rows["gone"]["unknown"] == 1
    assert "?" in str(capture.stats().by_module())


def test_a_gap_touches_only_what_it_says():
    total = made(Gap("its workspace is not known", touches=("memory",))).stats().total
    assert total.activations_at_least
    assert not total.at_least
    assert not total.bytes_at_least
    assert not total.params_at_least


def test_gaps_survive_a_file_and_annotation(tmp_path: Path):
    gaps = (LOST, OWN, Gap("lost", touches=("compute",)))
    capture = made(*gaps)
    capture.save(tmp_path / "gaps.opscope")
    again = opscope.open(tmp_path / "gaps.opscope")
    assert gaps_of(again, 0) == gaps
    assert gaps_of(annotate(again), 0) == gaps
    assert again.all_warnings() == capture.all_warnings()


@pytest.mark.parametrize("style", [[], ["--style", "megengine"]])
def test_the_command_says_what_is_missing(style: list[str], tmp_path: Path):
    file = tmp_path / "gaps.opscope"
    made(LOST).save(file)
    assert "nobody saw it" in good("stats", file, *style)
    found = json.loads(good("stats", file, "--json", *style))
    gaps = found["gaps"] if style else found["total"]["gaps"]
    assert gaps[0]["reason"] == "nobody saw it"
