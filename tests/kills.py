"""Kills exports at random moments: the old output or the new one is whole, and the next export leaves nothing else.

python tests/kills.py --runs 200 [--seed 1]
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

DATA = Path(__file__).parent / "data" / "jittor"
BEFORE, AFTER = DATA / "simple_model.pkl", DATA / "resnet_train.pkl"
KINDS = (".opscope", ".html", ".json", ".dot", ".mmd", ".parquet", ".tensorboard", ".svg", ".play.svg", ".png", ".pdf")


def export(capture: Path, out: Path) -> list[str | Path]:
    where = ["--tensorboard", out] if out.suffix == ".tensorboard" else ["-o", out]
    played = ["--play"] if out.name.endswith(".play.svg") else []
    return [sys.executable, "-m", "opscope", "export", capture, *where, *played]


def content(out: Path) -> dict[str, str]:
    """What is there: a digest for each file. Event files are known by all but their time."""
    if not out.exists():
        return {}
    files = sorted(path for path in out.rglob("*") if path.is_file()) if out.is_dir() else [out]
    return {
        "events" if ".tfevents." in path.name else path.name: "events"
        if ".tfevents." in path.name
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def run(runs: int, seed: int, kinds: tuple[str, ...] = KINDS) -> Counter[str]:
    """How often each output was the old one or the new one after a kill; an AssertionError where it was neither."""
    found: Counter[str] = Counter()
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        for kind in kinds:
            folder = Path(name, kind[1:])
            folder.mkdir()
            out = folder / f"out{kind}"
            subprocess.run(export(AFTER, out), check=True, capture_output=True)
            begun = time.monotonic()
            subprocess.run(export(AFTER, out), check=True, capture_output=True)
            seconds = time.monotonic() - begun
            new = content(out)
            subprocess.run(export(BEFORE, out), check=True, capture_output=True)
            old = content(out)
            for number in range(runs // len(kinds) + (kinds.index(kind) < runs % len(kinds))):
                process = subprocess.Popen(export(AFTER, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                # Most of the time is spent before anything is written; look at the end more often.
                time.sleep(seconds * (1 - rng.random() ** 2))
                process.kill()
                process.wait()
                now = content(out)
                assert now in (old, new), f"{kind}, kill {number}: neither the old output nor the new one"
                found[f"{kind} {'old' if now == old else 'new'}"] += 1
                left = [path.name for path in folder.iterdir() if path != out]
                found["temporaries seen"] += bool(left)
                subprocess.run(export(BEFORE, out), check=True, capture_output=True)
                assert content(out) == old, f"{kind}, after kill {number}: the next export is not whole"
                left = [path.name for path in folder.iterdir() if path != out]
                assert not left, f"{kind}, after kill {number}: {left} are left"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for what, count in sorted(run(args.runs, args.seed).items()):
        print(f"{what}: {count}")


if __name__ == "__main__":
    main()
