"""What `import opscope` costs over `import numpy`: process CPU seconds of a fresh Python, best of five.

python benchmarks/bench_import.py
"""

from __future__ import annotations

import resource
import subprocess
import sys

from calibrate import calibrate

RUNS = 5


def seconds(statement: str) -> float:
    """CPU seconds of one fresh Python that runs this statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    statements = ("import numpy", "import opscope")
    for statement in statements:
        seconds(statement)  # writes the .pyc files
    # In turns, so that a busy moment of the machine falls on both.
    rounds = [[seconds(statement) for statement in statements] for _ in range(RUNS)]
    numpy, opscope = (min(column) for column in zip(*rounds, strict=True))
    print(f"calibration loop  {calibrate():.3f} s")
    print(f"import numpy      {numpy:.3f} s")
    print(f"import opscope    {opscope:.3f} s")
    print(f"difference        {opscope - numpy:.3f} s  (at most 0.150)")


if __name__ == "__main__":
    main()
