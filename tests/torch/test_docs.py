"""The PyTorch example of the README runs, in an empty folder, as a reader would type it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"<!-- tested with torch -->\n```python\n(.*?)```", README, re.DOTALL)


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", EXAMPLE], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "jit-trace" in done.stdout
    assert (tmp_path / "step.html").stat().st_size > 100_000
