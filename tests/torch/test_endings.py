"""`opscope trace` on scripts that end before their last line: endings.py says what each must leave."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from endings import cut, left, start

BEGIN = "import os, sys, torch\ny = torch.ones(2).exp()\n"

ENDINGS = {
    "exit": ("sys.exit(3)", 0, "ended with exit code 3"),
    "os._exit": ("sys.stdout.flush(); os._exit(4)", 4, "ended itself by os._exit(4)"),
    "fork": ("if os.fork(): os.wait()\nelse: torch.ones(3).sin(); sys.exit(5)", 0, "script.opscope: 2 operators"),
    "fork that runs on": ("pid = os.fork()\nif pid: os.waitpid(pid, 0)", 0, "script.opscope: 2 operators"),
    "all children": (
        "try:\n    while True: os.wait()\nexcept ChildProcessError: pass",
        0,
        "script.opscope: 2 operators",
    ),
    "our error": (
        "from opscope.errors import OpscopeError\nraise OpscopeError('no dot')",
        2,
        "script.py:4: no dot",
    ),
    "other folder": ("os.mkdir('__there'); os.chdir('__there')", 0, "script.opscope: 2 operators"),
    "crash": ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV, "ended without a chance to save"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_script_that_ends_in_its_own_way(name: str, tmp_path: Path) -> None:
    script, code, said = ENDINGS[name]
    process = start(BEGIN + script + "\n", tmp_path)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    assert said in errors
    assert "Traceback" not in errors
    assert (left(tmp_path, errors) == "capture") == (name != "crash")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_script_that_a_signal_ends(number: signal.Signals, tmp_path: Path) -> None:
    result = cut(number, 5, tmp_path)
    assert (result == "capture") == (number != signal.SIGKILL), result


def test_what_cannot_be_written_is_told_before_the_script_runs(tmp_path: Path) -> None:
    process = start("print('ran')\n", tmp_path, "-o", "nowhere/x.opscope")
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert errors == "opscope: nowhere/x.opscope: there is no folder nowhere\n"
    assert printed == ""


def test_a_recording_that_cannot_be_written_as_wanted_is_kept(tmp_path: Path) -> None:
    process = start(BEGIN + "os.mkdir('out.dot')\n", tmp_path, "-o", "out.dot")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "; the recording itself is in " in errors
    (kept,) = tmp_path.glob("out.*.opscope")
    assert str(kept) in errors
