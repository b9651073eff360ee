"""CPU seconds for an SVG of a training graph of 20,000 operators, every one drawn, compared with Graphviz' dot.

python benchmarks/bench_picture.py [GRAPH] [--limit 120]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
from calibrate import is_there


def cpu(command: list[str], limit: float) -> float | None:
    """CPU seconds of a command with its children; None when it ran into the limit (of CPU time)."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))

    process = subprocess.Popen(command, preexec_fn=limited, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime if process.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("graph", nargs="?", default="train-20k")
    parser.add_argument("--limit", type=float, default=120)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = corpus.write(corpus.make(arguments.graph), Path(folder))
        source, out, dot = (f"{base}{ending}" for ending in (".opscope", ".svg", ".dot"))
        export = [sys.executable, "-m", "opscope", "export", source, "-o"]
        subprocess.run([*export, dot], check=True, stderr=subprocess.DEVNULL)
        runs = {
            "opscope, every operator": [*export, out, "--whole"],
            "opscope, as deep as can be read": [*export, out],
        }
        if is_there("dot"):
            runs["dot -Tsvg"] = ["dot", "-Tsvg", dot, "-o", f"{out}.dot.svg"]
        print(f"{arguments.graph}: CPU seconds for an SVG")
        for name, command in runs.items():
            seconds = cpu(command, arguments.limit)
            print(
                f"{name:34} {'none in ' + str(int(arguments.limit)) if seconds is None else f'{seconds:.2f}'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
