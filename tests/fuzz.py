"""Mutates real files and opens them: every one must give a capture or one clear error, soon.

    python tests/fuzz.py --runs 100000 [--seed 1]

A failure is written to `fuzz-failures/` with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import opscope
from fuzz_samples import DATA, samples
from mutations import changed
from opscope.analysis import summary
from opscope.capture import Capture
from opscope.ir import verify_capture
from opscope.ir.text import dump
from opscope.readers import registry
from opscope.readers.source import Options, Source

SECONDS = 10  # for one file; an honest one of this size takes less than 0.1
MANY = 300  # operators
MEMORY = 1 << 30  # of address space, for one process that reads many


class Hang(Exception):
    """Reading took too long."""


# What a sample that is a profile measured: `profile-of-torch.json` is given with this capture.
MEASURED = {
    "profile-of-jittor": DATA / "jittor" / "quirks" / "profiled_mlp_train.pkl",
    "profile-of-hidet": DATA / "hidet" / "0.2.1" / "outs",
    "profile-of-torch": DATA / "torch" / "chakra.json",
}


def opened(name: str, data: bytes) -> Capture:
    measured = MEASURED.get(Path(name).stem)
    if measured is None:
        return Capture.of(registry.read(Source(name, data=data), Options()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            return opscope.open(measured, profile=path)
        except opscope.OpscopeError as error:
            raise opscope.OpscopeError(str(error).replace(str(path), name)) from error


def attempt(name: str, data: bytes) -> str:
    """Open the bytes and use what is in them; "read" or "refused". Anything else is a failure."""
    try:
        capture = opened(name, data)
    except registry.Unexpected:
        raise
    except opscope.OpscopeError as error:
        refusal = error
    else:
        return used(capture, random.Random(len(data)))
    check_line(refusal)
    assert "more memory than there is" not in str(refusal), "more than 1 GB"
    assert str(refusal).startswith((f"{name}: ", f"{name}/")), f"the error does not name the file: {refusal}"
    return "refused"


def used(capture: Capture, rng: random.Random) -> str:
    verify_capture(capture)
    if sum(stage.graph.n_nodes for stage in capture.stages) > MANY:  # the same code runs for small ones
        return "read"
    try:
        dump(capture)
        if capture.stages:
            capture.stats()
        summary.info(capture)
        if rng.random() < 0.2:
            rng.choice(USES)(capture)
    except opscope.OpscopeError as error:  # attributes are read when they are shown
        check_line(error)
    return "read"


def exported(ending: str) -> Callable[[Capture], object]:
    def export(capture: Capture) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, f"x{ending}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                capture.save(out)
            if ending == ".opscope":
                verify_capture(opscope.open(out))

    return export


def searched(capture: Capture) -> None:
    for query in ("op:conv phase:backward", "mm -> *", "macs:>1", "attr:stride=2", "nan:>0", "time:>1ms"):
        capture.find(query)


USES: list[Callable[[Capture], object]] = [
    *(exported(ending) for ending in (".opscope", ".dot", ".mmd", ".json", ".parquet", ".html")),
    searched,
    lambda capture: opscope.diff(capture, capture).changes,
    lambda capture: capture.stage_diffs(),
    lambda capture: [str(capture.stats().table(by)) for by in ("op", "node", "kernel", "phase")],
]


def check_line(error: Exception) -> None:
    text = str(error)
    assert text.isprintable(), f"several lines or control characters: {text[:200]!r}"
    assert len(text) < 2000, f"{len(text)} characters"


def run(runs: int, seed: int, found: dict[str, bytes] | None = None, start: int = 0) -> Iterator[tuple[int, str, str]]:
    """(number, sample, what happened) for each mutation of some samples, or of all."""
    found = samples() if found is None else found
    names = list(found)
    others = list(found.values())
    for number in range(start, start + runs):
        rng = random.Random(f"{seed}/{number}")
        name = rng.choice(names)
        data = changed(name, found[name], rng, others)
        previous = signal.signal(signal.SIGPROF, _too_long)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor: the machine may be busy
        try:
            yield number, name, attempt(name, data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | GeneratorExit):
                raise
            keep(seed, number, name, data)
            yield number, name, "FAILED\n" + traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)


def keep(seed: int, number: int, name: str, data: bytes) -> None:
    folder = Path("fuzz-failures")
    folder.mkdir(exist_ok=True)
    (folder / f"{seed}-{number}-{name}").write_bytes(data)


def _too_long(*_: object) -> None:
    raise Hang(f"more than {SECONDS} s")


# -- many of them, each worker with limits -------------------------------------------------------------


def work(seed: int, start: int, runs: int, found: dict[str, bytes], answers: Any) -> None:
    """One worker: its parts of the work are `runs` mutations from `start`. What hangs in native code, or asks for more
    memory than it may, ends it; the parent sees at which one."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(start, start + runs):
        answers.send((number, "", "begun"))
        for result in run(1, seed, found, number):
            answers.send(result)
    answers.send((start + runs, "", "done"))


def run_limited(runs: int, seed: int) -> Iterator[tuple[int, str, str]]:
    """As `run`, in a process of its own that is replaced when it ends or does not answer."""
    found = samples()
    names, number = list(found), 0
    fresh = multiprocessing.get_context("spawn")
    while number < runs:
        ours, theirs = fresh.Pipe(duplex=False)
        part = min(2000, runs - number)
        worker = fresh.Process(target=work, args=(seed, number, part, found, theirs))
        worker.start()
        theirs.close()
        begun = number
        try:
            while True:
                if not ours.poll(SECONDS * 3 + 60):  # it hangs where no signal reaches it; the machine may be busy
                    raise EOFError
                at, name, result = ours.recv()
                if result == "done":
                    number = at
                    break
                if result == "begun":
                    begun = at
                else:
                    yield at, name, result
        except EOFError:
            worker.kill()
            worker.join()
            rng = random.Random(f"{seed}/{begun}")
            name = rng.choice(names)
            keep(seed, begun, name, changed(name, found[name], rng, list(found.values())))
            yield begun, name, f"FAILED\nthe process ended or did not answer (exit code {worker.exitcode})"
            number = begun + 1
        worker.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    counts = {"read": 0, "refused": 0, "failed": 0}
    for number, name, result in run_limited(args.runs, args.seed):
        counts["failed" if result.startswith("FAILED") else result] += 1
        if result.startswith("FAILED"):
            print(f"{name}, run {number}: {result}", file=sys.stderr, flush=True)
        if number % 1000 == 999:
            print(f"{number + 1:,} of {args.runs:,}: {counts}", flush=True)
    print(f"seed {args.seed}: {counts}")
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
