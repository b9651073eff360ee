"""Scripts that end in every way, under `opscope trace`: each leaves a readable capture, or one line that says why not.

    python tests/torch/endings.py --runs 50 [--seed 1]

`cut` ends a script that trains for ever by a signal after so many lines of its output, or at any moment at all: while
Python, PyTorch or the script's own modules are imported, and in the middle of a step.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
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


def start(script: str, folder: Path, *options: str) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(script)
    source = str(Path(opscope.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "opscope", "trace", *options, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cut(number: signal.Signals, lines: int, folder: Path, *, after: float | None = None) -> str:
    """Send a signal after so many lines of output, or after so many seconds. Returns what was left: "capture", or a
    line. A script that had not begun may leave nothing."""
    process = start(FOR_EVER, folder)
    assert process.stdout is not None
    if after is not None:
        time.sleep(after)
    else:
        for _ in range(lines):
            process.stdout.readline()
    process.send_signal(number)
    printed, errors = process.communicate(timeout=300)
    code = process.returncode
    assert code in (-number, 128 + number, 2), (code, errors)
    assert "Traceback" not in errors, errors
    if after is not None and "ready" not in printed and not errors:
        assert not [path for path in folder.iterdir() if path.suffix == ".opscope"]
        return "nothing: the script had not begun"
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
    # Whoever starts this in the background may have had these ignored, which scripts would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    draw = random.Random(options.seed)
    for run in range(options.runs):
        number, lines, after = draw.choice(SIGNALS), draw.randint(1, 40), draw.uniform(0.05, 10)
        when = f"{lines} lines" if run % 2 else f"{after:.2f} s"
        with tempfile.TemporaryDirectory() as folder:
            result = cut(number, lines, Path(folder), after=None if run % 2 else after)
        print(f"{run}: {number.name} after {when}: {result}", flush=True)


if __name__ == "__main__":
    main()
