"""The command line as a user runs it: the installed program, in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(*args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "opscope"]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    return subprocess.run(
        [*program, *map(str, args)], capture_output=True, text=True, encoding="utf-8", cwd=cwd, env=environment
    )


def good(*args: str | Path) -> str:
    done = run(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bad(*args: str | Path) -> str:
    """Exit code 2 and exactly one line on stderr, nothing on stdout."""
    done = run(*args)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr
