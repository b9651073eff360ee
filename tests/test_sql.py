"""SQL over captures: the documented views and queries, and what a query may not do."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import opscope
from conftest import DATA
from opscope.cli import cli
from opscope.errors import OpscopeError
from opscope.sql import EMPTY, VIEWS, query

TRAIN = DATA / "jittor" / "resnet_train.pkl"
DOC = (Path(__file__).parent.parent / "docs" / "sql.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"<!-- query -->\n```sql\n(.*?)```", DOC, re.DOTALL)


@pytest.fixture(scope="module")
def train() -> tuple[str, opscope.Capture]:
    return "train", opscope.open(TRAIN)


def name_of(view: str) -> str:
    return f'"{view}"'


@pytest.mark.parametrize("view", list(VIEWS))
def test_every_view_has_the_documented_columns(view: str, train: tuple[str, opscope.Capture]) -> None:
    (row,) = re.findall(rf"^\| `{view}`.*$", DOC, re.MULTILINE)
    told = re.findall(r"`(\w+)`", row.split("|")[3])
    for captures in ([train], [("empty", opscope.open(DATA / "xla" / "step.stablehlo.mlir"))]):
        columns = query(captures, f"select * from {name_of(view)} limit 1").columns
        assert columns[:2] == ["capture", "stage"]
        missing = set(EMPTY[view]) - set(columns)
        assert not missing, missing
    assert set(EMPTY[view]) <= set(told)


def test_the_sums_are_those_of_stats(train: tuple[str, opscope.Capture]) -> None:
    total = train[1].stats().total
    macs, other = query([train], "select sum(macs)::bigint, sum(other_flops)::bigint from costs").rows[0]
    assert (macs, other) == (total.macs, total.other_flops)
    (count,) = query([train], "select count(*) from edges").rows[0]
    graph = train[1].graph
    assert count == sum(int(graph.value_producer[v]) >= 0 for v in graph.use_value.tolist() if v >= 0)


def test_several_captures_and_stages_are_asked_together(train: tuple[str, opscope.Capture]) -> None:
    other = opscope.open(DATA / "hidet" / "0.6.1" / "outs")
    rows = query([train, ("hidet", other)], "select capture, stage, count(*) from nodes group by all").rows
    assert sorted((c, s, n) for c, s, n in rows if c == "hidet") == sorted(
        ("hidet", stage.name, stage.graph.n_nodes) for stage in other.stages
    )
    changes = query([("hidet", other)], "select class, len(before), len(after) from changes").rows
    assert any(kind == "fused" and before > after for kind, before, after in changes)


def test_the_queries_of_the_docs_run(train: tuple[str, opscope.Capture]) -> None:
    assert len(QUERIES) >= 6
    for text in QUERIES:
        query([train], text)


@pytest.mark.parametrize(
    "text",
    [
        "select * from read_csv('{file}')",
        "copy (select 1) to '{out}'",
        "attach '{out}'",
        "install httpfs",
        "set enable_external_access = true",
    ],
)
def test_a_query_cannot_touch_files(text: str, train: tuple[str, opscope.Capture], tmp_path: Path) -> None:
    file, out = tmp_path / "secret.csv", tmp_path / "out"
    file.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(OpscopeError, match="cannot be answered"):
        query([train], text.format(file=file, out=out))
    assert not out.exists()


def test_the_commands_of_the_docs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TRAIN.parent)
    (block,) = re.findall(r"<!-- tested -->\n```sh\n(.*?)```", DOC, re.DOTALL)
    for line in block.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "opscope"
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output


def test_on_the_command_line() -> None:
    run = CliRunner().invoke
    done = run(cli, ["sql", str(TRAIN), "select count(*) as n from nodes", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"rows": [{"n": opscope.open(TRAIN).graph.n_nodes}], "more": False}
    done = run(cli, ["sql", str(TRAIN), "select node, op from nodes", "--csv", "--limit", "2"])
    assert done.output.splitlines()[0] == "node,op"
    assert len(done.output.splitlines()) == 3
    done = run(cli, ["sql", str(TRAIN), "select nonsense from nodes"])
    assert isinstance(done.exception, OpscopeError)
    assert "\n" not in str(done.exception)
    done = run(cli, ["sql", str(TRAIN), "select op from nodes"])
    assert "100 rows shown; there are more" in done.output
