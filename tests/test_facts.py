"""Facts, enumerations and dtypes: declared once, the same in Python, in files and in the page."""

from __future__ import annotations

import ast
import json
import runpy
from pathlib import Path

import arro3.io as ac_io
import numpy as np
import pytest

import opscope
from conftest import DATA, TESTS
from opscope.analysis.costs.sizes import value_bytes
from opscope.analysis.costs.stats import GraphStats
from opscope.analysis.diff.side_by_side import side_by_side
from opscope.export.megengine.rows import activation_row, param_row
from opscope.ir import (
    Capture,
    GraphBuilder,
    InvalidGraph,
    Pools,
    Stage,
    Table,
    attributes,
    column,
    dtypes,
    frozen,
    lines_of,
    verify_capture,
)
from opscope.ir.cut import cut_capture

SOURCE = Path(opscope.__file__).parent
VIEWER = Path(__file__).parent.parent / "viewer"

# Every dtype as the frameworks themselves spell it, with the bits of one element; null: elements have no fixed size.
# The lanes of the frameworks check that no dtype of theirs is missing, viewer/test that the page knows them.
SPELLED = json.loads((TESTS / "dtypes.json").read_text(encoding="utf-8"))
CASES = [
    pytest.param(name, bits, id=f"{framework} {name}")
    for framework, names in SPELLED.items()
    for name, bits in names.items()
]


@pytest.mark.parametrize(("name", "bits"), CASES)
def test_every_dtype_has_the_same_bits_everywhere(name: str, bits: int | None, tmp_path: Path) -> None:
    """In stats of both styles and in the tables that Parquet gets; what has no size has none anywhere."""
    assert dtypes.bits_of(name) == bits
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type(name, (2, 4)))
    b.output(b.node("t.copy", [x]), b.pools.type(name, (2, 4)))
    graph = b.freeze()
    capture = Capture(pools=b.pools, stages=[Stage("graph", graph)])
    assert value_bytes(graph).tolist() == [-1 if bits is None else bits] * 2
    assert GraphStats(graph).memory.activation_bytes == (bits or 0)
    assert param_row("x", name, (2, 4), 8, "", "")["nbits"] == (bits or 0)
    assert activation_row("x", "", name, (2, 4), 8)["nbits"] == (bits or 0)
    opscope.Capture.of(capture).save(tmp_path / "out.parquet")
    stored = ac_io.read_parquet(tmp_path / "out.parquet" / "values.parquet").read_all()
    assert stored.column("bytes").to_pylist() == [bits, bits]


def test_unknown_dtypes_are_unknown() -> None:
    for name in ("posit16", "", "constructor", "float32x0", "float32x99999"):
        assert dtypes.bits_of(name) is None
    assert dtypes.bits_of("string") is None
    assert dtypes.bytes_of("int4", 3) == 2


def test_no_spelling_means_two_dtypes() -> None:
    spelled = [word for line in dtypes.TABLE.strip().splitlines() for word in [line.split()[0], *line.split()[3:]]]
    assert len(spelled) == len(set(spelled))


def test_the_constants_of_the_page_are_generated_from_these() -> None:
    """`make viewer` writes them."""
    generated = runpy.run_path(str(VIEWER / "facts.py"))["text"]()
    assert (VIEWER / "src" / "wire" / "facts.ts").read_text(encoding="utf-8") == generated


def test_no_layer_spells_a_shared_name_itself() -> None:
    """Names that only opscope writes come from ir/attributes; `module` is a word of many frameworks, too."""
    shared = {value for name, value in vars(attributes).items() if name.isupper()} - {"module"}
    assert {"written before", "mask_shows", "unpaired"} <= shared
    for file in SOURCE.rglob("*.py"):
        if file.name != "attributes.py":
            words = {node.value for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Constant)}
            assert not words & shared, f"{file}: {words & shared}"


def small(table: Table) -> Capture:
    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (2,)), name="x")
    for phase in ("forward", "backward"):
        b.output(b.node("relu", [x], phase=phase), b.pools.type("float32", (2,)))
    graph = b.freeze()
    return Capture(b.pools, [Stage("a", graph), Stage("b", graph, after=0)], tables={"t": table})


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (Table(0, "value", frozen([0]), {"time": column(np.ones(1), "s")}, "times"), "times are by node or scope"),
        (Table(0, "node", frozen([0]), {}, "times"), "times have a column 'time', which is missing"),
        (Table(0, "node", frozen([0]), {"time": column(np.ones(1), "h")}, "times"), "has the unit 'h'"),
        (
            Table(0, "node", frozen([0]), {"listing": column(["code"]), "line": column(np.array([0]))}, "lines"),
            "column 'line' holds 0, less than 1",
        ),
        (Table(0, "node", frozen([7]), {"time": column(np.ones(1), "s")}, "times"), "is 7, outside"),
        (
            Table(
                1,
                "row",
                frozen([0]),
                {
                    "class": column(np.array([99])),
                    "before": column([[0]]),
                    "after": column([[9]]),
                    "evidence": column(np.array([0])),
                    "detail": column(["x"]),
                },
                "changes",
            ),
            "outside 0 to 7; table 't': column 'after': node 0 is 9",
        ),
    ],
)
def test_a_fact_that_does_not_fit_is_refused_in_words(table: Table, problem: str) -> None:
    with pytest.raises(InvalidGraph) as refused:
        verify_capture(small(table))
    for part in problem.split("; "):
        assert part in str(refused.value)


def test_a_cut_maps_every_number_of_a_fact() -> None:
    changes = {
        "class": column(np.array([0, 1], dtype=np.int8)),
        "before": column([[0, 1], [0]]),
        "after": column([[1], []]),
        "evidence": column(np.array([0, 0], dtype=np.int8)),
        "detail": column(["one", "two"]),
    }
    capture = small(Table(1, "row", frozen([0, 1]), changes, "changes"))
    part = cut_capture(capture, lambda graph: np.array([False, True]))
    verify_capture(part)
    table = part.tables["t"]
    assert (table.columns["before"].values, table.columns["after"].values) == ([[0]], [[0]])
    assert table.columns["detail"].values == ["one"]


def test_lines_belong_to_their_stage() -> None:
    """Stages that share a graph do not share the lines of a text; a comparison carries those of each along."""
    capture = small(
        Table(0, "node", frozen([0]), {"listing": column(["code"]), "line": column(np.array([3]))}, "lines")
    )
    for stage in capture.stages:
        stage.listings["code"] = "a\nb\nc"
    assert [lines_of(capture, number, "code") for number in (0, 1)] == [[(3, 0)], []]
    one, other = capture.stages
    both = side_by_side((capture, other, "b"), (capture, one, "a"))
    verify_capture(both)
    assert [lines_of(both, number, "code") for number in (0, 1)] == [[], [(3, 0)]]


@pytest.mark.parametrize("name", ["breaks-v1", "joint-v1", "joint-v2"])
def test_files_of_earlier_versions_say_the_same(name: str) -> None:
    older = opscope.open(DATA / "older" / f"{name}.opscope")
    newer = opscope.open(DATA / "page" / f"{name[:-3]}.opscope")
    assert older.text() == newer.text()
    for number, (before, after) in enumerate(zip(older.stages, newer.stages, strict=True)):
        assert before.listings == after.listings
        for kind in before.listings:
            assert lines_of(older, number, kind) == lines_of(newer, number, kind)
    if name == "breaks-v1":
        assert any(table.fact == "breaks" for table in older.tables.values())
