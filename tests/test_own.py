"""Figures of the user's own: which rows find which operators, and what is done with the figures then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import commands
import opscope
from conftest import DATA, TESTS
from opscope.analysis.values import own_figures, own_texts

STEP = DATA / "page" / "step.opscope"
CASES: list[dict[str, Any]] = json.loads((TESTS / "own_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[f"{i} {case['text'][:24]!r}" for i, case in enumerate(CASES)])
def test_rows_find_their_place(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / case["file"]
    file.write_text(case["text"], encoding="utf-8", newline="")
    cap = opscope.open(STEP)
    if "error" in case:
        with pytest.raises(opscope.BadInput, match=case["error"]):
            cap.add_table(file)
        assert not any(table.fact == "own" for table in cap.tables.values())
        return
    joined = cap.add_table(file)
    assert joined.columns == list(case["columns"])
    assert [list(pair) for pair in joined.unmatched] == case["unmatched"]
    assert joined.rows - joined.matched == len(joined.unmatched)
    assert any(file.name in warning for warning in cap.warnings) == bool(joined.unmatched)
    assert found(cap) == {
        name: {"unit": of["unit"], "node": of.get("node", {}), "scope": of.get("scope", {})}
        for name, of in case["columns"].items()
    }


def found(cap: opscope.Capture) -> dict[str, Any]:
    paths = cap.pools.scope_paths()
    out: dict[str, Any] = {}
    for name, (nodes, scopes, unit) in own_figures(cap, 0).items():
        out[name] = {
            "unit": unit,
            "node": {str(i): nodes.numbers[i] for i in np.flatnonzero(nodes.known)},
            "scope": {paths[i]: scopes.numbers[i] for i in np.flatnonzero(scopes.known)},
        }
    for name, texts in own_texts(cap, 0).items():
        out[name] = {
            "unit": "",
            "node": {str(i): text for i, text in texts["node"].items()},
            "scope": {paths[i]: text for i, text in texts["scope"].items()},
        }
    return out


def test_figures_are_searched_added_up_and_kept(tmp_path: Path) -> None:
    cap = opscope.open(STEP)
    cap.add_table({"node": [0, 1, 5], "ms": [1.0, 2.0, 4.0]}, name="mine")
    cap.add_table([{"path": "net/second", "ms2": 9, "who": "b"}])
    assert [node.index for node in cap.find("ms:>1")] == [1, 5]
    assert {node.index for node in cap.find("ms2:*")} == {node.index for node in cap.find("scope:second")}
    assert cap.find("who:b") == cap.find("ms2:9")
    rows = {row["path"]: row for row in cap.stats().by_module(columns=["ms", "ms:mean", "ms:max", "ms2"]).rows}
    assert [rows["net"][name] for name in ("ms", "ms:mean", "ms:max", "ms2")] == [7, 7 / 3, 4, 9]
    assert rows["net/first"]["ms"] == 3
    nodes = {row["node"]: row for row in cap.stats().by_node(sort="ms").rows}
    assert next(iter(nodes)) == 5
    assert nodes[5]["ms"] == 4
    cap.save(tmp_path / "c.opscope")
    again = opscope.open(tmp_path / "c.opscope")
    assert found(again) == found(cap)
    with pytest.raises(opscope.OpscopeError, match=r"no field nope.*ms, ms2, who"):
        again.find("nope:1")


def test_parquet_and_frames(tmp_path: Path) -> None:
    import arro3.core as ac
    from arro3.io import write_parquet

    columns = {"node": ac.Array([0, 1], ac.DataType.int32()), "v": ac.Array([0.5, 1.5], ac.DataType.float64())}
    table = ac.Table.from_pydict(columns)
    write_parquet(table, str(tmp_path / "v.parquet"))
    for source in (tmp_path / "v.parquet", table):
        cap = opscope.open(STEP)
        assert cap.add_table(source).columns == ["v"]
        assert [node.index for node in cap.find("v:>1")] == [1]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(opscope.BadInput, match="not a whole Parquet file"):
        opscope.open(STEP).add_table(tmp_path / "bad.parquet")
    with pytest.raises(opscope.OpscopeError, match="int is no table"):
        opscope.open(STEP).add_table(3)


def test_the_command_line_takes_tables(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("path,ms\nnet/first,3\nnet/third,4\n", encoding="utf-8")
    done = commands.run("find", STEP, "ms:>2", "--table", file)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        0,
        "mine.csv: 1 of 2 rows joined as ms; no operator or module is 'net/third' (row 2)",
    )
    done = commands.run("stats", STEP, "--table", file, "--columns", "ms", "--json")
    assert '"ms": 3.0' in done.stdout
    done = commands.run("info", STEP, "--table", tmp_path / "none.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "none.csv" in done.stderr
