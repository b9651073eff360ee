"""Llama-405B on 1,024 ranks (TP 8, PP 16, DP 8), one training step with AdamW, recorded on this machine.

    python benchmarks/bench_world.py [--microbatches 16]

Prints the CPU seconds of all processes together, the most memory that one of them took, and what was found.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "torch_world.py"
SIZES = {"layers": 126, "hidden": 16384, "ffn": 53248, "heads": 128, "kv": 8, "vocab": 128256, "sequence": 8192}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--microbatches", type=int, default=16)
    parser.add_argument("--out", default="llama405b.opscope")
    given = parser.parse_args()
    words = [
        f"--{name}={size}" for name, size in {**SIZES, "tp": 8, "pp": 16, "microbatches": given.microbatches}.items()
    ]
    command = [sys.executable, "-m", "opscope", "trace", "--world", "1024", "--fake", "--steps", "1", "-o", given.out]
    began = time.perf_counter()
    subprocess.run([*command, str(EXAMPLE), *words], check=True)
    took, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(f"{took:.0f} s, {cpu:.0f} s of CPU, {used.ru_maxrss / 1e6:.2f} GB in the largest process")


if __name__ == "__main__":
    main()
