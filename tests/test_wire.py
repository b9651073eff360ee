"""The .opscope file: versions, what a newer opscope may have added, and damaged or hostile files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opscope
from conftest import DATA
from golden import round_trip
from opscope import wire
from opscope.analysis.annotate import annotate
from opscope.ir import Table, column
from opscope.ir.columns import frozen
from opscope.ir.text import dump

SAMPLE = DATA / "jittor" / "simple_model_train.pkl"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "simple.opscope"
    opscope.open(SAMPLE, sources=[DATA / "jittor"]).save(path)
    return path


def rewrite(path: Path, change: dict[str, bytes | None], **manifest: Any) -> None:
    """Replace, add or remove members, and fields of the manifest."""
    with zipfile.ZipFile(path) as archive:
        members: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    fields = json.loads(members["manifest.json"] or b"")
    members["manifest.json"] = json.dumps(fields | manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (members | change).items():
            if data is not None:
                archive.writestr(name, data)


def test_it_is_read_back_the_same(saved: Path) -> None:
    before, after = opscope.open(SAMPLE, sources=[DATA / "jittor"]), opscope.open(saved)
    assert dump(annotate(before)) == dump(after)
    assert before.sources == after.sources


def test_the_same_capture_gives_the_same_bytes(saved: Path) -> None:
    again = io.BytesIO()
    wire.write(opscope.open(saved), again)
    assert again.getvalue() == saved.read_bytes()


def test_a_newer_version_is_refused_with_a_clear_word(saved: Path) -> None:
    rewrite(saved, {}, opscope=4)
    with pytest.raises(opscope.BadInput, match=r"newer opscope \(file version 4; this one reads up to 3\): upgrade"):
        opscope.open(saved)


def test_what_a_newer_opscope_added_is_kept(saved: Path, tmp_path: Path) -> None:
    rewrite(saved, {"notes/by-hand.arrow": b"unknown bytes"}, colours={"a": 1})
    again = tmp_path / "again.opscope"
    opscope.open(saved).save(again)
    with zipfile.ZipFile(again) as archive:
        assert archive.read("notes/by-hand.arrow") == b"unknown bytes"
        assert json.loads(archive.read("manifest.json"))["colours"] == {"a": 1}


def with_graph(saved: Path, **columns: Any) -> None:
    """Write a node table with other columns."""
    from opscope.wire.arrow import to_bytes, to_table

    graph = opscope.open(saved).graph
    table = {name: getattr(graph, f"node_{name}") for name in ("op", "name", "scope", "stack", "attrs", "phase")}
    made = {name: None if c is None else np.asarray(c) for name, c in columns.items()}
    full = {name: column for name, column in (table | made).items() if column is not None}
    rewrite(saved, {"graphs/0/nodes.arrow": to_bytes(to_table(full))})


def test_indexes_are_checked(saved: Path) -> None:
    with_graph(saved, op=np.full(123, 10**6, dtype=np.int32))
    with pytest.raises(opscope.BadInput, match="op of node 0 is 1000000, outside"):
        opscope.open(saved)


def test_columns_are_checked(saved: Path) -> None:
    with_graph(saved, op=None)
    with pytest.raises(opscope.BadInput, match=r"graphs/0/nodes: column 'op' is missing \(found: name"):
        opscope.open(saved)
    rewrite(saved, {"graphs/0/nodes.arrow": None})
    with pytest.raises(opscope.BadInput, match=r"member graphs/0/nodes\.arrow is missing"):
        opscope.open(saved)


def test_types_of_columns_are_checked(saved: Path) -> None:
    with_graph(saved, op=np.zeros(123, dtype=np.float64))
    with pytest.raises(opscope.BadInput, match="column 'op' is float64, not int32"):
        opscope.open(saved)


@pytest.mark.parametrize(
    ("members", "manifest", "words"),
    [
        ({"graphs/0/nodes.arrow": b"no arrow"}, {}, "not a readable Arrow table"),
        ({"../../evil": b"x"}, {}, "points outside the file"),
        ({"/etc/evil": b"x"}, {}, "points outside the file"),
        ({"manifest.json": b"[]"}, {}, "not the manifest of an opscope file"),
        ({"manifest.json": b"[" * 100_000}, {}, "not the manifest of an opscope file"),
        ({}, {"stages": [{"name": "x"}]}, "does not fit version 3"),
        ({}, {"stages": 5}, "does not fit version 3"),
        ({}, {"origin": {"format": "a", "colour": "b"}}, "does not fit version 3"),
        ({}, {"graphs": [{"links": ["grad"], "groups": [], "bodies": [{"graph": 0}]}]}, "does not fit version 3"),
    ],
)
def test_damaged_files_are_refused_in_words(
    saved: Path, members: dict[str, bytes | None], manifest: dict[str, Any], words: str
) -> None:
    rewrite(saved, members, **manifest)
    with pytest.raises(opscope.BadInput) as error:
        opscope.open(saved)
    assert words in str(error.value)
    assert str(error.value).startswith(f"{saved}: ")


def test_a_file_that_was_cut_off(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:-200])
    with pytest.raises(opscope.BadInput, match="not a whole zip file"):
        opscope.open(saved)


def test_a_flipped_byte(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        at = archive.getinfo("pools/strings.arrow").header_offset + 200
    data[at] ^= 0xFF
    saved.write_bytes(bytes(data))
    with pytest.raises(opscope.BadInput, match=r"pools/strings\.arrow is damaged"):
        opscope.open(saved)


def test_a_bomb_is_refused_before_it_is_unpacked(saved: Path) -> None:
    rewrite(saved, {"bomb": bytes(600 << 20)})
    with pytest.raises(opscope.BadInput, match=r"its members claim [\d,]+ bytes, \d+ times the file: refused"):
        opscope.open(saved)


def test_a_failed_write_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    capture = opscope.open(SAMPLE)
    capture.sources = {"x": 5}  # type: ignore[dict-item]
    with pytest.raises(Exception):  # noqa: B017
        capture.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_where_nothing_can_be_written() -> None:
    with pytest.raises(opscope.OpscopeError, match="cannot write here"):
        opscope.open(SAMPLE).save("/nowhere/at/all.opscope")


def test_a_negative_zero_stays_one() -> None:
    numbers = np.array([-0.0, 0.0, 1.5])
    table = Table(0, "node", frozen(range(3)), {"x": column(numbers, known=[True, True, False])})
    capture = opscope.open(SAMPLE)
    capture.tables["figures"] = table
    again = round_trip(capture).tables["figures"].columns["x"]
    assert isinstance(again.values, np.ndarray)
    assert np.signbit(again.values[:2]).tolist() == [True, False]
    assert again.known.tolist() == [True, True, False]
