"""torch.compile: reading a log of 12 MB, and what a live capture adds to the time of a compilation and of later steps.

    python benchmarks/bench_compile.py [--runs 3]

Every compilation runs in a process of its own with an empty cache. CPU seconds of the process and of the C++ compilers
that it starts; a ratio compares runs that took turns.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from calibrate import calibrate, is_there

LOG = Path(__file__).parent.parent / "tests" / "data" / "torch" / "profile" / "compile.log.gz"
LARGE = 12_000_000
COMPILE = """
import contextlib, resource, sys, time
import torch
from torch import nn
from torch.nn import functional as F
import opscope

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

torch.set_num_threads(1)
model, x = nn.Sequential(*[Block(32) for _ in range(4)]), torch.randn(8, 32)
compiled = torch.compile(model)

def cpu():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

def step():
    compiled(x).sum().backward()

watch = opscope.record(model) if sys.argv[1] == "watched" else contextlib.nullcontext()
began = cpu()
with watch:
    step()
compiling = cpu() - began
step()
began = time.process_time()
for _ in range(200):
    step()
print(compiling, (time.process_time() - began) / 200)
"""


def read(path: Path) -> tuple[float, float]:
    code = f"import opscope; opscope.open({str(path)!r})"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = f"{code}\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    ran = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(after[:2]) - sum(before[:2]), int(ran.stdout) / 1024


def compiled(how: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as cache:
        settings = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
        run = [sys.executable, "-c", COMPILE, how]
        ran = subprocess.run(run, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    seconds, later = map(float, ran.stdout.split())
    return seconds, later


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    print(f"calibration loop  {calibrate():.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        text = gzip.decompress(LOG.read_bytes())
        large, number = text, 0
        while len(large) < LARGE:  # the same frames under other numbers
            number += 100
            large += re.sub(rb'"frame_id": (\d+)', rb'"frame_id": %d\1' % number, text)
        path = Path(folder) / "trace.log"
        path.write_bytes(large)
        rows = [read(path) for _ in range(runs)]
        seconds, memory = min(rows)[0], max(row[1] for row in rows)
        print(f"log of {len(large) / 1e6:.1f} MB  {seconds:.2f} s (at most 1.5)  {memory:.0f} MB (at most 400)")
    if not is_there("torch"):
        return
    plain, watched = [], []
    for _ in range(runs):
        plain.append(compiled("plain"))
        watched.append(compiled("watched"))
    a, b = (statistics.median(row[0] for row in rows) for rows in (plain, watched))
    print(f"compiling  {a:.2f} s, watched {b:.2f} s: {b / a:.3f} (at most 1.15)")
    a, b = (min(row[1] for row in rows) for rows in (plain, watched))
    print(f"a step afterwards  {a * 1e3:.3f} ms, after a capture {b * 1e3:.3f} ms: {b / a:.3f}")


if __name__ == "__main__":
    main()
