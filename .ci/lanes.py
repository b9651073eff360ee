"""Run the nox lanes side by side, one per core, and print each lane's log whole when the lane ends.

    python .ci/lanes.py            every lane
    python .ci/lanes.py core lint  these

Exit code 1 when a lane failed. Run by `make test` with the Python that has nox.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".nox" / "logs"
LIMIT = 40 * 60  # seconds for one lane: one that hangs fails with its log, instead of taking all the others with it
NOX = [sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py")]


@dataclass
class Result:
    lane: str
    word: str  # passed, failed or skipped
    seconds: float
    log: str


class Runner:
    """Starts lanes and, when interrupted, ends the ones it started."""

    def __init__(self) -> None:
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.stopped = False
        self.lock = threading.Lock()

    def run(self, lane: str) -> Result:
        report, log = LOGS / f"{lane}.json", LOGS / f"{lane}.log"
        report.unlink(missing_ok=True)
        start = time.monotonic()
        with log.open("wb", buffering=0) as out:
            with self.lock:
                if self.stopped:
                    return Result(lane, "failed", 0.0, "not started\n")
                say(f"{lane}: started")
                child = subprocess.Popen(
                    [*NOX, "--session", lane, "--report", str(report)],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,  # a process group of its own, so that the whole lane can be ended
                )
                self.running[lane] = child
            try:
                code = child.wait(LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                code = child.wait()
                out.write(f"\n{lane}: stopped after {LIMIT // 60} minutes\n".encode())
            with self.lock:
                del self.running[lane]
        seconds = time.monotonic() - start
        return Result(lane, outcome(code, report), seconds, log.read_text("utf-8", "replace"))

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for child in self.running.values():
                os.killpg(child.pid, signal.SIGTERM)


def outcome(code: int, report: Path) -> str:
    if code != 0:
        return "failed"
    sessions = json.loads(report.read_text())["sessions"]
    return "skipped" if any(session["result"] == "skipped" for session in sessions) else "passed"


def all_lanes() -> list[str]:
    listing = subprocess.run([*NOX, "--list", "--json", "--tags", "lane"], stdout=subprocess.PIPE, check=True)
    return [session["session"] for session in json.loads(listing.stdout)]


def say(line: str) -> None:
    print(f"==== {line}", flush=True)


def main(lanes: list[str]) -> int:
    lanes = lanes or all_lanes()
    LOGS.mkdir(parents=True, exist_ok=True)
    runner = Runner()
    results: list[Result] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            for done in as_completed([pool.submit(runner.run, lane) for lane in lanes]):
                result = done.result()
                results.append(result)
                say(f"{result.lane}: its log")
                print(result.log, end="" if result.log.endswith("\n") else "\n")
                say(f"{result.lane}: {result.word} in {result.seconds:.0f} s")
        except BaseException:
            runner.stop()
            raise
    by_word = {
        word: sorted(result.lane for result in results if result.word == word)
        for word in ("passed", "failed", "skipped")
    }
    say("lanes " + "; ".join(f"{word}: {' '.join(names)}" for word, names in by_word.items() if names))
    return 1 if by_word["failed"] else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
