"""A capture in other people's tools: DuckDB, Polars, pandas, Parquet."""

from __future__ import annotations

import zipfile
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

import opscope
from conftest import DATA

JITTOR = DATA / "jittor"


@pytest.fixture(scope="module")
def train() -> opscope.Capture:
    return opscope.open(JITTOR / "resnet_train.pkl")


def test_polars_reads_a_table_without_a_copy(train: opscope.Capture) -> None:
    uses = pl.DataFrame(train.arrow("uses"))
    assert uses.height == 4220
    theirs = uses["value"].to_numpy(allow_copy=False)
    assert np.shares_memory(theirs, train.graph.use_value)


def test_polars_counts_operators(train: opscope.Capture) -> None:
    nodes = pl.DataFrame(train.arrow("nodes"))
    counts = dict(nodes.with_columns(pl.col("op").cast(pl.String)).group_by("op").len().iter_rows())
    assert counts["broadcast_to"] == 890
    assert nodes.columns == [
        "node", "op", "name", "phase", "scope", "class", "attrs", "file", "line", "function",
    ]  # fmt: skip


def test_duckdb_asks_across_tables(train: opscope.Capture) -> None:
    nodes, links = train.arrow("nodes"), train.arrow("links")
    members = train.arrow("members")
    rows = duckdb.sql(
        """select n.scope, count(*) as gradients from links l join nodes n on l.source = n.node
           where l.kind = 'grad' and n.class = 'Conv' group by n.scope order by gradients desc, n.scope limit 1"""
    ).fetchall()
    assert rows[0][0].startswith("resnet18")
    kernels = duckdb.sql('select count(distinct "group") from members').fetchall()
    assert kernels == [(797,)]
    del nodes, links, members


def test_what_is_not_known_is_null() -> None:
    midway = opscope.open(JITTOR / "quirks" / "midway_step2_adam.pkl")
    values = pl.DataFrame(midway.arrow("values"))
    before = values.filter(pl.col("producer").is_null())
    assert before.height == 12
    assert before["elements"].null_count() == 12
    times = pl.DataFrame(opscope.open(JITTOR / "quirks" / "profiled_mlp_train.pkl").arrow("times"))
    assert times["time"].null_count() == 1
    assert "group" in times.columns


def test_stored_lists_stay_lists() -> None:
    table = opscope.open(JITTOR / "quirks" / "vardata_mlp.pkl").arrow("value statistics")
    stored = pl.DataFrame(table)
    assert stored["values"].list.len().to_list()[0] == 32


def test_pandas(train: opscope.Capture) -> None:
    frame = train.to_pandas()
    assert len(frame) == 3502
    assert set(frame["phase"]) == {"init", "forward", "backward", "optimizer", "other"}
    assert train.to_pandas("values")["producer"].isna().sum() == 0
    midway = opscope.open(JITTOR / "quirks" / "midway_step2_adam.pkl")
    assert midway.to_pandas("values")["producer"].isna().sum() == 12
    assert len(midway.to_pandas("links")) == 13


def test_an_unknown_table_lists_the_known_ones(train: opscope.Capture) -> None:
    with pytest.raises(
        opscope.OpscopeError, match=r"no table 'kernels' in this capture .there are: nodes, values, uses"
    ):
        train.arrow("kernels")


def test_parquet(train: opscope.Capture, tmp_path: Path) -> None:
    folder = tmp_path / "train.parquet"
    train.save(folder)
    rows = duckdb.sql(f"select phase, count(*) from '{folder}/nodes.parquet' group by phase order by phase").fetchall()
    assert rows == [("backward", 1010), ("forward", 819), ("init", 620), ("optimizer", 1052), ("other", 1)]
    kinds = duckdb.sql(f"select distinct stage from '{folder}/links.parquet'").fetchall()
    assert kinds == [("trace",)]
    assert pl.read_parquet(folder / "jittor_id_by_node.parquet").height == 3502


def test_the_file_itself_is_arrow_that_others_read(train: opscope.Capture, tmp_path: Path) -> None:
    path = tmp_path / "train.opscope"
    train.save(path)
    with zipfile.ZipFile(path) as archive:
        nodes = pl.read_ipc(archive.read("graphs/0/nodes.arrow"))
        strings = pl.read_ipc(archive.read("pools/strings.arrow"))
    ops = strings["text"].gather(nodes["op"])
    assert (ops == "reindex").sum() == sum(node.op == "reindex" for node in train.graph.nodes)
