"""A profile of a gigabyte: reading it and joining it to its graph, beside json.load and two other tools.

    python benchmarks/bench_profile.py [--megabytes 1024]

A real step of GPT-2 on an H200 is tiled: every copy has ids and times of its own, so it is what a profiler would write
of many steps. Each tool works in a process of its own: CPU seconds, and the most memory that the process had.
"""

from __future__ import annotations

import argparse
import gzip
import re
import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from calibrate import calibrate, is_there

DATA = Path(__file__).parent.parent / "tests" / "data" / "torch" / "profile"
TRACE, GRAPH = DATA / "eager.trace.json.gz", DATA / "eager.et.json.gz"
_IDS = b"External id|correlation|Record function id|Sequence number|Ev Idx|Python id|Python parent id|id|ts"
_NUMBERED = re.compile(rb'"(' + _IDS + rb')": ?(\d+(?:\.\d+)?)')
_GAP = 10_000_000  # more than a step has ids and microseconds

RUNS = {
    "opscope: open": "import opscope; opscope.open(TRACE)",
    "opscope: join": "import opscope; opscope.open(GRAPH, profile=TRACE)",
    "json.load": "import json; json.load(open(TRACE))",
}
RIVALS = {
    "HolisticTraceAnalysis": (
        "hta",
        "from hta.trace_analysis import TraceAnalysis; TraceAnalysis(trace_files={0: TRACE})",
    ),
    "TraceLens": ("TraceLens", "from TraceLens import TreePerfAnalyzer; TreePerfAnalyzer.from_file(TRACE)"),
}


def tiled(path: Path, megabytes: int) -> int:
    """Write a trace of at least this size; gives the number of copies."""
    text = gzip.decompress(TRACE.read_bytes())
    begin = text.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    end = text.rindex(b"]")
    events = text[begin:end].strip()
    copies = max(1, (megabytes << 20) // len(events) + 1)
    with path.open("wb") as file:
        file.write(text[:begin])
        for copy in range(copies):
            if copy:
                file.write(b",")
            file.write(_NUMBERED.sub(partial(_moved, copy), events) if copy else events)
        file.write(text[end:])
    return copies


def _moved(copy: int, found: re.Match[bytes]) -> bytes:
    name, number = found[1], found[2]
    whole, dot, rest = number.partition(b".")
    return b'"%s": %d%s%s' % (name, int(whole) + copy * _GAP, dot, rest)


def measured(code: str, trace: Path) -> tuple[float, float]:
    """(CPU seconds, megabytes) of a fresh Python that runs this."""
    program = f"TRACE, GRAPH = {str(trace)!r}, {str(GRAPH)!r}\n{code}\nimport resource\n"
    program += "u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-400:], file=sys.stderr)
        return float("nan"), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    seconds, megabytes = done.stdout.split()[-2:]
    return float(seconds), float(megabytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        copies = tiled(trace, args.megabytes)
        print(f"calibration loop {calibrate():.3f} s; {trace.stat().st_size / 1e6:,.0f} MB, {copies} steps")
        runs = dict(RUNS)
        for name, (package, code) in RIVALS.items():
            if is_there(package):
                runs[name] = code
        found = {name: measured(code, trace) for name, code in runs.items()}
        ours = found["opscope: join"][0]
        for name, (seconds, megabytes) in found.items():
            print(f"{name:24} {seconds:8.2f} s CPU  {seconds / ours:6.2f} × ours  {megabytes:8,.0f} MB")


if __name__ == "__main__":
    main()
