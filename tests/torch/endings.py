"""Scripts that end in every way, under `opscope trace`: each leaves a readable capture, or one line that says why not.

    python tests/torch/endings.py --runs 50 [--seed 1]

`cut` ends a script that trains for ever by a signal at a moment of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import opscope

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)

FOR_EVER = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters())
print("ready", flush=True)
for step in range(1_000_000):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, flush=True)
"""


def start(script: str, folder: Path) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(script)
    source = str(Path(opscope.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "opscope", "trace", "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cut(number: signal.Signals, lines: int, folder: Path) -> str:
    """Send a signal after so many lines of output. Returns what was left: "capture", or a line."""
    process = start(FOR_EVER, folder)
    assert process.stdout is not None
    for _ in range(lines):
        process.stdout.readline()
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    code = process.returncode
    assert code in (-number, 128 + number, 2), (code, errors)
    assert "Traceback" not in errors or lines == 0, errors
    return left(folder, errors)


def left(folder: Path, errors: str) -> str:
    """What a script left behind."""
    found = [path for path in folder.iterdir() if path.name != "script.py" and not path.name.startswith("__")]
    own = [line for line in errors.splitlines() if line.startswith("opscope: ")]
    assert all(path.name == "script.opscope" for path in found), found
    if found:
        assert opscope.open(found[0]).graph.n_nodes > 0
        return "capture"
    assert len(own) == 1, errors
    return own[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    for run in range(options.runs):
        number, lines = draw.choice(SIGNALS), draw.randint(1, 40)
        with tempfile.TemporaryDirectory() as folder:
            print(f"{run}: {number.name} after {lines} lines: {cut(number, lines, Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
