"""The example of docs/jax.md runs, in an empty folder, as a reader would type it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

DOC = (Path(__file__).parents[2] / "docs" / "jax.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"<!-- tested with jax -->\n```python\n(.*?)```", DOC, re.DOTALL)


def test_the_example_runs(tmp_path: Path) -> None:
    script = tmp_path / "step.py"
    script.write_text(EXAMPLE, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "['jaxpr', 'StableHLO', 'before optimizations']" in done.stdout
    assert (tmp_path / "step.html").stat().st_size > 100_000
