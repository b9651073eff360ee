"""Reading a folder that XLA dumped, every pass of it: seconds, memory, and how much of it is the same.

    python benchmarks/bench_xla.py DUMP

A dump is made with these flags in XLA_FLAGS:

    --xla_dump_to=DUMP --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_proto --xla_dump_hlo_as_text
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from calibrate import calibrate

READ = """
import resource, sys, time
import opscope
start = time.process_time()
cap = opscope.open(sys.argv[1])
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(seconds, peak, len(cap.stages), len({id(stage.graph) for stage in cap.stages}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    size = sum(path.stat().st_size for path in options.dump.iterdir() if path.is_file())
    print(f"calibration loop  {calibrate():.3f} s")
    rows = [
        subprocess.run(
            [sys.executable, "-c", READ, str(options.dump)], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(options.runs)
    ]
    seconds, peak, stages, graphs = min(rows, key=lambda row: float(row[0]))
    print(f"{size / 1e6:.0f} MB: {stages} stages, {graphs} graphs that differ")
    print(f"read  {float(seconds):.2f} s (at most 5)  {float(peak):.0f} MB (at most 500)")


if __name__ == "__main__":
    main()
