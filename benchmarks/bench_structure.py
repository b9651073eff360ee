"""Every command on captures in which one structure is enormous (`structures.py`): CPU seconds and peak memory.

    python benchmarks/bench_structure.py [--count 1000000] [--deep 100000] [--only nested,deep] [--commands stats,ir]

Each cell is the process CPU seconds of one command (its own and its children's) and its peak memory in GB, the start of
Python with them. A cell beyond 15 s or 1.5 GB is marked with `!`; a command is stopped after `--limit` CPU seconds or
at `--memory` GB and shown as `>limit`. Figures of the same run compare; the calibration loop is printed beside them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from calibrate import calibrate

HERE = Path(__file__).parent
DEEP = ("deep", "deepest", "recursion")  # made with --deep instead of --count
SECONDS, GIGABYTES = 15.0, 1.5  # what a command may take for a million

# name -> arguments of `opscope`; {x} is the capture, {out} a fresh folder
COMMANDS = {
    "info": "info {x}",
    "info json": "info {x} --json",
    "stats": "stats {x}",
    "stats json": "stats {x} --json",
    "by op": "stats {x} --by op",
    "by kind": "stats {x} --by kind",
    "by node": "stats {x} --by node",
    "by node csv": "stats {x} --by node --csv",
    "by node json": "stats {x} --by node --json",
    "by kernel": "stats {x} --by kernel",
    "by phase": "stats {x} --by phase",
    "depth 1": "stats {x} --depth 1",
    "whole tree": "stats {x} --depth 1000000 --no-fold",
    "sorted": "stats {x} --sort macs --top 20",
    "megengine": "stats {x} --style megengine",
    "find": "find {x} relu",
    "find scope": "find {x} scope:block7 class:Block",
    "find path": "find {x} --limit 100 mm->relu->add",
    "find json": "find {x} --json op:mm",
    "ir": "ir {x}",
    "ir text": "ir {x} --style text",
    "diff": "diff {x} {x}",
    "diff json": "diff {x} {x} --json",
    ".opscope": "export {x} -o {out}/x.opscope",
    ".html": "export {x} -o {out}/x.html",
    ".dot": "export {x} -o {out}/x.dot",
    ".dot depth": "export {x} -o {out}/x.dot --depth 2",
    ".mmd": "export {x} -o {out}/x.mmd",
    ".json": "export {x} -o {out}/x.json",
    ".parquet": "export {x} -o {out}/x.parquet",
    "tensorboard": "export {x} -o {out}/x.tensorboard",
    ".svg": "export {x} -o {out}/x.svg",
    ".png": "export {x} -o {out}/x.png",
    ".pdf": "export {x} -o {out}/x.pdf",
    "verify": "",
    "opscope.stats": "",
}
_PYTHON = {
    "verify": "import opscope, sys; from opscope.ir import verify_capture; verify_capture(opscope.open(sys.argv[1]))",
    "opscope.stats": (
        "import opscope, sys; s = opscope.stats(opscope.open(sys.argv[1])); s.total, len(s.by_module()), len(s.by_op())"
    ),
}
PICTURES = {".svg": "py_mini_racer", ".png": "resvg_py", ".pdf": "reportlab"}


class Measured(NamedTuple):
    seconds: float
    gigabytes: float
    written: int  # bytes
    status: int
    message: str

    def cell(self, limit: float) -> str:
        if self.status == 2:
            return "refused"
        if self.status:
            return f">{limit:g}s !" if self.seconds >= limit * 0.9 else f"failed {self.status} !"
        over = " !" if self.seconds > SECONDS or self.gigabytes > GIGABYTES else ""
        return f"{self.seconds:.1f} {self.gigabytes:.2f}{over}"


def measured(command: Sequence[str], folder: Path, limit: float, memory: float) -> Measured:
    """Run a command and wait for it. This process stays small: a child's peak counts what it was forked from."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        # Not the address space: V8 reserves much more of it than it takes.
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 2**30),) * 2)

    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=limits)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    message = (folder / "stderr").read_text("utf-8", "replace").strip().splitlines()[-1:]
    seconds, gigabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20
    return Measured(seconds, gigabytes, written, child.returncode, message[0] if message else "")


def command_line(name: str, capture: Path, folder: Path) -> list[str]:
    if name in _PYTHON:
        return [sys.executable, "-c", _PYTHON[name], str(capture)]
    words = COMMANDS[name].format(x=capture, out=folder).split()
    return [sys.executable, "-m", "opscope", *words]


def make(structure: str, count: int, path: Path) -> None:
    """In a process of its own, so that this one stays small."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import structures; from opscope import wire\n"
        "with open(sys.argv[4], 'wb') as file: wire.write(structures.make(sys.argv[2], int(sys.argv[3])), file)"
    )
    subprocess.run([sys.executable, "-c", program, str(HERE), structure, str(count), str(path)], check=True)


def names_of_structures() -> list[str]:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import structures; print(*structures.STRUCTURES)"
    done = subprocess.run([sys.executable, "-c", program, str(HERE)], check=True, capture_output=True, text=True)
    return done.stdout.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--deep", type=int, default=100_000)
    parser.add_argument("--only", help="structures, with commas (default: all)")
    parser.add_argument("--commands", help="commands, with commas (default: all)")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds after which a command is stopped")
    parser.add_argument("--memory", type=float, default=3.0, help="GB that a command may take")
    args = parser.parse_args()
    structures = args.only.split(",") if args.only else names_of_structures()
    commands = args.commands.split(",") if args.commands else list(COMMANDS)
    for ending, package in PICTURES.items():
        if ending in commands and importlib.util.find_spec(package) is None:
            print(f"{package} not installed: {ending} skipped")
            commands.remove(ending)

    print(f"calibration loop: {calibrate():.3f} s; CPU seconds and peak GB of each command")
    rows: dict[str, list[str]] = {name: [] for name in commands}
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="opscope-structure-") as folder:
        for structure in structures:
            count = args.deep if structure in DEEP else args.count
            capture = Path(folder) / f"{structure}.opscope"
            make(structure, count, capture)
            for name in commands:
                out = Path(folder) / "out"
                out.mkdir()
                found = measured(command_line(name, capture, out), out, args.limit, args.memory)
                shutil.rmtree(out)
                rows[name].append(found.cell(args.limit))
                size = f"{found.written / 2**20:,.1f} MB"
                print(f"  {structure:<11} {count:>9,} {name:<13} {rows[name][-1]:>14}  {size:>12}", flush=True)
                if found.status:
                    notes.append(f"{structure}, {name}: {found.message[:200]}")
            capture.unlink()
    print_table(structures, rows)
    print("\n".join(notes))


def print_table(structures: list[str], rows: dict[str, list[str]]) -> None:
    print("\n| | " + " | ".join(structures) + " |")
    print("|---|" + "---|" * len(structures))
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
