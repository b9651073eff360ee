"""The command line as a user runs it: the installed program, in its own process."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import opscope
from commands import bad, good, run
from conftest import DATA

JITTOR = DATA / "jittor"
TRAIN = JITTOR / "resnet_train.pkl"
SIMPLE = JITTOR / "simple_model_train.pkl"


def test_info_for_programs() -> None:
    info = json.loads(good("info", TRAIN, "--json"))
    assert (info["format"], info["framework"], info["version"]) == ("jittor-trace", "jittor", "1.3.11")
    (stage,) = info["stages"]
    assert set(stage) == {
        "name", "after", "seconds", "nodes", "values", "edges", "scopes", "phases", "links", "groups", "coverage",
        "warnings",
    }  # fmt: skip
    assert (stage["nodes"], stage["values"], stage["edges"]) == (3502, 3502, 4220)
    assert stage["groups"] == {"kernel": 797}
    assert stage["links"] == {"grad": 1007}
    assert stage["phases"]["backward"] == 1010
    assert sum(stage["phases"].values()) == stage["nodes"]
    (warning,) = stage["warnings"]
    assert "3623" in warning


def test_info_for_people() -> None:
    text = good("info", TRAIN)
    for words in (
        "Jittor 1.3.11",
        "3,502, connected by 4,220 edges",
        "62 tensors, 11,689,512 elements",
        "797 ran: 50 distinct",
        "layer1 Sequential  166 forward  202 backward",
        "operator 3623",
    ):
        assert words in text
    assert "\x1b" not in text  # no colours in a pipe


def test_demo_describes_the_sample() -> None:
    text = good("demo")
    assert "ResNet-18, one training step" in text
    assert "1,010" in text


def test_ir_as_a_table() -> None:
    lines = good("ir", SIMPLE).splitlines()
    assert lines[0].split() == ["#", "phase", "op", "outputs", "inputs", "module", "source"]
    assert len(lines) == 1 + 123
    assert "linear1.w float32[1,10]" in lines[7]


def test_ir_as_text() -> None:
    assert good("ir", SIMPLE, "--style", "text") == opscope.open(SIMPLE).text()
    assert good("ir", SIMPLE, "--style", "text", "--stage", "trace").startswith("stage 0 trace")
    assert "stage 'trace' has no native listing: the capture does not contain one (it has: table, text)" in bad(
        "ir", SIMPLE, "--style", "native"
    )
    assert "no stage 'nope' (there are: trace)" in bad("ir", SIMPLE, "--stage", "nope")


def test_ir_into_a_closed_pipe() -> None:
    command = shlex.join([sys.executable, "-m", "opscope", "ir", str(TRAIN)])
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command} | head -n 1"], capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.parametrize("ending", [".opscope", ".dot", ".mmd", ".parquet"])
def test_export(ending: str, tmp_path: Path) -> None:
    out = tmp_path / f"graph{ending}"
    done = run("export", SIMPLE, "-o", out)
    assert done.returncode == 0, done.stderr
    assert out.exists()
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    again = run("export", SIMPLE, "-o", out)  # writing over one's own output is fine
    assert again.returncode == 0, again.stderr


def test_export_with_sources(tmp_path: Path) -> None:
    out = tmp_path / "simple.opscope"
    good("export", SIMPLE, "--sources", JITTOR, "-o", out)
    assert any(path.endswith("gen_seed.py") for path in opscope.open(out).sources)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["info"], "Missing argument 'X'"),
        (["info", "no/such/file"], "no/such/file: no such file or folder"),
        (["nonsense"], "No such command 'nonsense'"),
        (["info", "--nonsense", "x"], "--nonsense"),
        (["export", str(SIMPLE)], "Missing option '-o'"),
        (["export", str(SIMPLE), "-o", "x.docx"], "cannot write .docx (it writes .opscope, .dot, .mmd, .parquet"),
        (["export", str(SIMPLE), "-o", "/no/where/x.dot"], "cannot write here"),
        (["export", str(SIMPLE), "-o", "x.dot", "--depth", "0"], "--depth"),
        (["ir", str(SIMPLE), "--style", "poem"], "--style"),
    ],
)
def test_bad_usage_is_one_clear_line(args: list[str], words: str) -> None:
    assert words in bad(*args)


def test_bad_files_leave_nothing_behind(tmp_path: Path) -> None:
    evil = tmp_path / "evil.pkl"
    evil.write_bytes(pickle.dumps({"node_data": {}, "execute_op_info": os.system}))
    line = bad("export", evil, "-o", tmp_path / "out.opscope")
    assert "asks to call posix.system" in line
    assert [path.name for path in tmp_path.iterdir()] == ["evil.pkl"]


def test_a_folder_that_is_not_ours_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "precious.parquet"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    assert "exists and was not written by opscope" in bad("export", SIMPLE, "-o", folder)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_debug_shows_the_traceback() -> None:
    done = run("--debug", "info", "missing")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07‮"
    node = {"id": 0, "inputs": [], "outputs": [], "attrs": {"is_var": "0", "name": hostile}}
    stacks = [{"name": hostile, "type": hostile, "file_path": hostile, "lineno": 3}]
    data = {"node_data": {0: node | {"stacks": stacks}}, "execute_op_info": {}}
    path = tmp_path / "hostile.pkl"
    path.write_bytes(pickle.dumps(data))
    for args in (["info", path], ["ir", path], ["ir", path, "--style", "text"]):
        text = good(*args)
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "‮" not in text


def test_version_and_help() -> None:
    assert good("--version").strip() == f"opscope, version {opscope.__version__}"
    text = good("--help")
    for command in ("demo", "info", "ir", "export", "trace"):
        assert f"\n  {command} " in text
        assert "Usage" in good(command, "--help")
