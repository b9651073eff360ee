"""Reading MegEngine's dumped models without MegEngine: a file of 46 MB, and one of many operators.

    python benchmarks/bench_megengine.py [--runs 5]

The large file is the tiny sample of the tests with 46 MB of zeros between its weights and its graph, as in a real
one of the first format; the lane `megengine` reads a real ResNet-18 of FBS_V2. Seconds are process
CPU seconds, the best of the runs; memory is how much the peak of the process grows, mapped pages included.
"""

from __future__ import annotations

import argparse
import resource
import struct
import tempfile
import time
from pathlib import Path

from calibrate import calibrate
from opscope.readers import registry
from opscope.readers.source import Options, Source

DATA = Path(__file__).parent.parent / "tests" / "data" / "megengine"


def large(path: Path, hole: int) -> None:
    data = (DATA / "tiny.fbsv1.mge").read_bytes()
    weights = int.from_bytes(data[16:24], "little")
    with path.open("wb") as file:
        file.write(data[:16] + struct.pack("<Q", weights + hole) + data[24 : 24 + weights])
        file.write(bytes(hole))
        file.write(data[24 + weights :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print(f"calibration: {calibrate():.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.mge")
        large(path, 46 << 20)
        registry.read(Source.of(DATA / "tiny.mge"), Options())  # imports
        for file in (path, DATA / "resnet18_w8.mge"):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            best = min(_seconds(file) for _ in range(args.runs))
            more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            size = file.stat().st_size / 1e6
            print(f"{file.name:<18} {size:6.1f} MB  {best * 1000:6.1f} ms  {more / 1024:5.1f} MB more")


def _seconds(path: Path) -> float:
    began = time.process_time()
    registry.read(Source.of(path), Options())
    return time.process_time() - began


if __name__ == "__main__":
    main()
