"""Times and values that were measured, from the recordings of one small model in five frameworks, in every output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import golden
import opscope
from commands import good
from conftest import DATA
from opscope.analysis.annotate import annotate
from opscope.ir.facts import TIMES, VALUES

FRAMEWORKS = ("torch", "paddle", "jittor", "hidet", "megengine")
WITHOUT_VALUES = ("megengine",)  # it computes tensors asynchronously


def sample(framework: str) -> Path:
    return DATA / "measured" / f"{framework}.opscope"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_stats_show_the_times(framework: str, overwrite: bool) -> None:
    golden.unchanged(good("stats", str(sample(framework)), "--by", "op"), f"stats/{framework}.op.txt", overwrite)


def test_stats_show_the_times_of_kernels(overwrite: bool) -> None:
    text = good("stats", str(sample("jittor")), "--by", "kernel")
    golden.unchanged(text, "stats/jittor.kernel.txt", overwrite)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_same_facts_in_every_framework(framework: str) -> None:
    capture = opscope.open(sample(framework))
    (times,) = capture.facts(TIMES.name, 0)
    assert times.by == ("group:kernel" if framework == "jittor" else "node")
    assert times.columns["time"].unit == "ns"
    values = list(capture.facts(VALUES.name, 0))
    assert len(values) == (framework not in WITHOUT_VALUES)
    for table in values:
        assert set(table.columns) == {"values", "norm", "min", "max", "mean", "std", "nan", "inf"}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_one_kind_for_one_operation(framework: str) -> None:
    """Jittor writes softmax and layer norm as several operators, and so does Hidet softmax: each of them says so."""
    capture = opscope.open(sample(framework))
    found = {kind: len(capture.find(f"kind:/^{kind}$/")) for kind in ("conv", "matmul", "softmax", "layer_norm")}
    several = {"jittor": {"softmax", "layer_norm"}, "hidet": {"softmax"}}.get(framework, set[str]())
    assert {kind for kind, count in found.items() if count > 1} == several
    assert all(found.values())
    rows = {row["name"]: row for row in capture.stats().to_dict("kind")["rows"]}
    assert rows["conv"]["macs"] == 2 * 4 * 8 * 8 * 3 * 3 * 3
    assert rows["matmul"]["macs"] == 8 * 64 * 5
    assert rows["matmul"]["time"] > 0
    (row,) = [row for row in capture.stats().to_dict("node")["rows"] if row["kind"] == "matmul"]
    assert row["macs"] == 8 * 64 * 5


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_find_asks_for_times_and_values(framework: str) -> None:
    capture = opscope.open(sample(framework))
    timed = capture.find("time:*")
    assert timed
    slowest = max(timed, key=lambda node: capture.stats().times.seconds[node.index])  # type: ignore[union-attr]
    seconds = capture.stats().times.seconds[slowest.index]  # type: ignore[union-attr]
    assert slowest in capture.find(f"time:>={seconds * 0.999}s")
    assert not capture.find(f"time:>{seconds * 1.001}s")
    found = capture.find("nan:0 max:<=1 min:>0 -> *") if framework not in WITHOUT_VALUES else []
    assert bool(capture.find("max:*")) == (framework not in WITHOUT_VALUES)
    assert all(node.index < capture.graph.n_nodes for node in found)


def test_figures_of_values_are_columns_of_stats_by_node() -> None:
    rows = opscope.open(sample("torch")).stats().to_dict("node", columns=["min", "max", "mean", "std", "nan", "inf"])
    (softmax,) = [row for row in rows["rows"] if row["kind"] == "softmax"]
    assert softmax["mean"] == pytest.approx(1 / 5)
    assert 0 < softmax["min"] < softmax["max"] < 1
    assert (softmax["nan"], softmax["inf"]) == (0, 0)
    text = good("stats", str(sample("torch")), "--by", "node", "--columns", "op,mean,nan")
    (line,) = [line for line in text.splitlines() if line.startswith("aten._softmax")]
    assert line.split()[-2:] == ["0.2", "0"]
    json.loads(good("stats", str(sample("torch")), "--by", "node", "--json"))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_arrow_and_parquet_have_the_figures(framework: str, tmp_path: Path) -> None:
    capture = opscope.open(sample(framework))
    times = capture.to_pandas("times")
    assert (times["time"].dropna() > 0).all()
    assert times["time"].notna().any()
    good("export", str(sample(framework)), "-o", str(tmp_path / "out.parquet"))
    assert {path.stem for path in (tmp_path / "out.parquet").glob("*.parquet")} >= {"times"}
    if framework not in WITHOUT_VALUES:
        assert capture.to_pandas("value statistics")["nan"].tolist() == [0] * len(capture.to_pandas("value statistics"))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_saved_file_says_what_the_page_says(framework: str, tmp_path: Path) -> None:
    """A saved file holds what the server computes, and computing it again gives the same."""
    plain = opscope.open(sample(framework))
    assert not list(plain.facts("costs", 0))
    plain.save(tmp_path / "saved.opscope")
    saved = opscope.open(tmp_path / "saved.opscope")
    served = annotate(plain)
    assert set(saved.tables) == set(served.tables) == set(annotate(saved).tables)
    for fact in ("costs", "lifetimes", "parameters", "kinds", "times", "values"):
        for one, other, again in zip(
            *(list(capture.facts(fact, 0)) for capture in (saved, served, annotate(saved))), strict=True
        ):
            for name in one.columns:
                assert list(map(str, one.columns[name].values)) == list(map(str, other.columns[name].values))
                assert list(map(str, one.columns[name].values)) == list(map(str, again.columns[name].values))


def test_nan_is_found_and_named() -> None:
    import numpy as np

    from opscope.ir import Capture, GraphBuilder, Pools, Stage
    from opscope.ir.measurements import measured, values_table

    b = GraphBuilder(Pools())
    x = b.input(b.pools.type("float32", (2,)))
    for op in ("aten.add.Tensor", "aten.div.Tensor", "aten.mul.Tensor"):
        x = b.output(b.node(op, [x, x]), b.pools.type("float32", (2,)))
    found = {1: [1.0, 2.0], 2: [np.nan, 1.0], 3: [np.nan, np.inf]}
    capture = Capture(b.pools, [Stage("graph", b.freeze())])
    capture.add(values_table(0, {value: measured(np.array(numbers)) for value, numbers in found.items()}))
    whole = opscope.Capture.of(capture)
    text = str(whole.stats())
    assert "NaN: in 2 of 3 measured tensors, first at #1 aten.div.Tensor" in text
    assert "Inf: in 1 of 3 measured tensors, first at #2 aten.mul.Tensor" in text
    assert [node.index for node in whole.find("nan:>0")] == [1, 2]
    rows = {row["node"]: row for row in whole.stats().to_dict("node")["rows"]}
    assert rows[1]["mean"] == "nan"  # JSON has no NaN
    assert rows[0]["mean"] == 1.5
