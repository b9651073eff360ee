"""Mutates real files and opens them: every one must give a capture or one clear error, soon.

    python tests/fuzz.py --runs 100000 [--seed 1]

A failure is written to `fuzz-failures/` with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import io
import json
import multiprocessing
import pickle
import pickletools
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import opscope
from opscope.analysis import summary
from opscope.capture import Capture
from opscope.ir import verify_capture
from opscope.ir.text import dump
from opscope.readers import registry
from opscope.readers.source import Options, Source

DATA = Path(__file__).parent / "data"
LARGEST = 300_000
SECONDS = 10  # for one file; an honest one of this size takes less than 0.1
MANY = 300  # operators
MEMORY = 1 << 30  # of address space, for one process that reads many


class Hang(Exception):
    """Reading took too long."""


def samples() -> dict[str, bytes]:
    """Real traces, and the same as .opscope files and as Model Explorer's JSON."""
    found = {p.name: p.read_bytes() for p in sorted((DATA / "jittor").rglob("*.pkl")) if 0 < p.stat().st_size < LARGEST}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("simple_model.pkl", "vardata_mlp.pkl", "profiled_mlp_train.pkl"):
            out = Path(folder, f"{name}.opscope")
            opscope.open(next(DATA.rglob(name))).save(out)
            found[out.name] = out.read_bytes()
        for name in ("simple_model.pkl", "simple_model_train.pkl"):
            out = Path(folder, f"{name}.json")
            opscope.open(next(DATA.rglob(name))).save(out)
            found[out.name] = out.read_bytes()
            # As another tool would write it: then our reader takes all attributes as they are.
            found[f"other.{out.name}"] = found[out.name].replace(b"opscope 1", b"other", 1)
    return found | torch_samples() | megengine_samples() | hidet_samples() | paddle_samples()


def megengine_samples() -> dict[str, bytes]:
    """Dumped models of both formats; they are small, so that a changed byte is seldom one of a weight."""
    return {p.name: p.read_bytes() for p in sorted((DATA / "megengine").glob("tiny*.mge"))}


def torch_samples() -> dict[str, bytes]:
    """Exported programs, TorchScript archives, an execution trace; and the JSON of a program by itself."""
    found = {
        p.name: p.read_bytes()
        for p in sorted((DATA / "torch").iterdir())
        if p.suffix in (".pt2", ".pt", ".ptl") or p.name == "chakra.json"
    }
    for name in ("net", "branches", "sized", "joint"):
        with zipfile.ZipFile(DATA / "torch" / f"{name}.pt2") as archive:
            found[f"{name}.model.json"] = archive.read(f"{name}/models/model.json")
    return found | profile_samples()


def profile_samples() -> dict[str, bytes]:
    """A profile, as PyTorch writes it and as a bare list: its operators, kernels and Python functions, not all of them."""
    with gzip.open(DATA / "torch" / "profile" / "compile.trace.json.gz") as file:
        trace = json.load(file)
    events = [*trace["traceEvents"][:40], *(event for event in trace["traceEvents"] if event.get("cat") == "kernel")][
        :140
    ]
    whole = json.dumps({**trace, "traceEvents": events}, indent=2)
    return {"kineto.json": whole.encode(), "kineto-list.json": json.dumps(events).encode()}


def paddle_samples() -> dict[str, bytes]:
    """Dumps, logs (the beginning of long ones) and PIR programs."""
    paths = [path for path in sorted((DATA / "paddle").iterdir()) if path.suffix in (".dot", ".log")]
    found = {path.name: path.read_bytes()[:60_000] for path in paths}
    for name in ("branches", "example", "example_train"):
        found[f"{name}.json"] = (DATA / "paddle" / f"{name}.json").read_bytes()
    return found


def hidet_samples() -> dict[str, bytes]:
    """Graphs as JSON and as text, of both dialects, with fused operators and without."""
    found: dict[str, bytes] = {}
    for version, fused in (("0.2.1", "5_FuseOperatorPass"), ("0.6.1", "6_FuseOperatorPass")):
        folder = DATA / "hidet" / version
        for name in ("outs/0_Origin.json", f"outs/{fused}.json", "graph_before.txt", "graph_after.txt"):
            found[f"hidet-{version}-{Path(name).name}"] = (folder / name).read_bytes()
    return found


def mutate(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A few changes: flipped bytes, cut or doubled pieces, numbers at their limits, pieces of other files."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(8)
        if kind == 0 and out:
            out[at % len(out)] = rng.randrange(256)
        elif kind == 1 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at : at + rng.choice([1, 2, 4, 100, 5000])]
        elif kind == 3:
            out[at:at] = out[at : at + rng.choice([1, 4, 64, 3000])]
        elif kind == 4:
            out[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", bytes(4)])
        elif kind == 5:
            out[at:at] = rng.choice(
                [b"\x93", b"R", b"c", b"(", b"}", b"]", b"u", b"s", b".", b"r\xff\xff\xff\x7f", b"\x8d"]
            )
        elif kind == 6:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            out[at : at + 32] = other[start : start + rng.choice([8, 64, 1000])]
        else:
            del out[at:]
    return bytes(out)


def mutate_member(data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A zip file that is whole, with changes inside of one member, or to which members there are."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info.filename) for info in archive.infolist()}
    wanted = (".json", ".py", ".pkl", "_pkl", ".arrow")  # weights and version files teach little
    name = rng.choice([name for name in members if name.endswith(wanted)] or list(members))
    if name.endswith(".arrow") and rng.random() < 0.9:
        members[name] = mutate_arrow(members[name], rng)
    elif name.endswith(".json") and rng.random() < 0.7:
        members[name] = mutate_inside(name, members[name], rng)
    elif name.endswith(".py") and rng.random() < 0.7:
        members[name] = mutate_code(members[name].decode(), rng).encode("utf-8", "surrogatepass")
    elif rng.random() < 0.05:
        del members[name]
    elif rng.random() < 0.05:
        members[name] = rng.choice(list(members.values()))
    else:
        members[name] = mutate(members[name], rng, others)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def mutate_arrow(data: bytes, rng: random.Random) -> bytes:
    """Numbers of 2, 4 and 8 bytes of an Arrow file at their limits: offsets, lengths, counts, kinds, cells."""
    out = bytearray(data)
    width, code = rng.choice([(2, "<H"), (4, "<I"), (4, "<I"), (8, "<Q")])
    # What describes the table stands in front; behind it come the cells.
    end = len(out) if rng.random() < 0.3 else min(len(out), 1500)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(max(1, end // width)) * width
        if at + width > len(out):
            continue
        number = struct.unpack_from(code, out, at)[0]
        most = (1 << 8 * width) - 1
        odd = [
            0,
            1,
            7,
            8,
            number + 1,
            number - 1,
            number * 2,
            number + 8,
            1 << 31,
            (1 << 31) - 1,
            most,
            most - 7,
            len(out),
        ]
        struct.pack_into(code, out, at, rng.choice(odd) & most)
    return bytes(out)


def mutate_directory(data: bytes, rng: random.Random) -> bytes:
    """The list of members at the end of a zip file: sizes, offsets, methods and names that are not so."""
    out = bytearray(data)
    start = out.rfind(b"PK\x05\x06")
    first = out.find(b"PK\x01\x02")
    if start < 0 or first < 0:
        return bytes(out)
    for _ in range(rng.choice([1, 2, 5])):
        width = rng.choice([1, 2, 4])
        at = rng.randrange(first, len(out) - width)
        out[at : at + width] = rng.choice([b"\xff" * width, bytes(width), rng.randbytes(width)])
    return bytes(out)


def mutate_opcodes(data: bytes, rng: random.Random) -> bytes:
    """Opcodes of a pickle left out, doubled, or put elsewhere: each whole, with its argument."""
    places = [place for *_, place in pickletools.genops(data)] + [len(data)]
    parts = [data[a:b] for a, b in pairwise(places)]
    extra = [
        b"(",
        b"t",
        b"\x86",
        b"2",
        b"\x94",
        b"h\x00",
        b"d",
        b"s",
        b"u",
        b"0",
        b"\x8f",
        b"\x91",
        b"I" + b"9" * 30 + b"\n",
    ]
    for _ in range(rng.choice([1, 2, 5, 30])):
        at = rng.randrange(len(parts))
        kind = rng.randrange(4)
        if kind == 0:
            del parts[at]
        elif kind == 1:
            parts[at:at] = parts[at : at + rng.choice([1, 3, 40])]
        elif kind == 2:
            parts[at:at] = [rng.choice(extra)] * rng.choice([1, 1, 2, 60])
        else:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        parts = parts or [b"."]
    return b"".join(parts)


def mutate_code(text: str, rng: random.Random) -> str:
    """Words and lines of code changed for others of the same code, so that most of it still parses."""
    for _ in range(rng.choice([1, 2, 5, 20])):
        words = re.split(r"(\w+|\n)", text)
        at = rng.randrange(len(words))
        kind = rng.randrange(5)
        if kind == 0:
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = "\n".join(lines)
            continue
        if kind == 1:
            lines = text.split("\n")
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines) or "x"
            continue
        if kind == 2:
            words[at] = rng.choice(["self", "torch", "None", "-1", "[]", "()", "x" * 50, "if", "while", "1e999", "0x1"])
        elif kind == 3:
            words[at] = rng.choice(words)
        else:
            words[at] = words[at] * 2
        text = "".join(words) or "x"
    return text


ODD: list[Any] = [
    2**61,
    10**30,
    10**400,
    -(2**63),
    "[" * 3000,
    "1e999",
    "a\nb\x1b[31m",
    None,
    -1,
    0,
    2**31,
    2**40,
    1.5,
    True,
    "",
    "x" * 1000,
    "\ud800",
    [],
    {},
    [[]],
    {"": {}},
    (1, 2),
    b"x",
]


def mutate_inside(name: str, data: bytes, rng: random.Random) -> bytes:
    """A pickle or JSON that is whole, but says odd things: this reaches the reader itself."""
    root = json.loads(data) if name.endswith(".json") else pickle.loads(data)
    for _ in range(rng.choice([1, 2, 5, 20])):
        place: Any = root
        for _ in range(rng.randrange(1, 6)):  # walk down into some container
            inside = list(place.values()) if isinstance(place, dict) else list(place)
            deeper = [item for item in inside if isinstance(item, dict | list) and item]
            if not deeper:
                break
            place = rng.choice(deeper)
        if not place:
            continue
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        kind = rng.randrange(4)
        if kind == 0:
            place[key] = copy.deepcopy(rng.choice(ODD))  # its own: the next change may go into it
        elif kind == 1:
            del place[key]
        elif kind == 2 and isinstance(place[key], int):
            place[key] += rng.choice([1, -1, 7, 10**6])
        elif isinstance(place, dict):
            place[rng.choice([key, "new", 5, 10**9])] = place[rng.choice(list(place))]
        else:
            place.append(rng.choice(place))
    if name.endswith(".json"):
        return json.dumps(root, default=str, skipkeys=True).encode()
    return pickle.dumps(root, rng.randrange(2, 6))


def changed(name: str, data: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """One mutation, mostly one that knows the format."""
    is_zip = zipfile.is_zipfile(io.BytesIO(data))
    if name.endswith(".pkl") and rng.random() < 0.3:
        return mutate_opcodes(data, rng)
    if name.endswith((".pkl", ".json")) and rng.random() < 0.6:
        return mutate_inside(name, data, rng)
    if is_zip and rng.random() < 0.15:
        return mutate_directory(data, rng)
    if is_zip and rng.random() < 0.8:
        return mutate_member(data, rng, others)
    if name.endswith((".log", ".dot", ".txt")) and rng.random() < 0.6:
        return mutate_code(data.decode("utf-8", "replace"), rng).encode("utf-8", "surrogatepass")
    return mutate(data, rng, others)


def attempt(name: str, data: bytes) -> str:
    """Open the bytes and use what is in them; "read" or "refused". Anything else is a failure."""
    try:
        capture = Capture.of(registry.read(Source(name, data=data), Options()))
    except registry.Unexpected:
        raise
    except opscope.OpscopeError as error:
        refusal = error
    else:
        return used(capture)
    check_line(refusal)
    assert str(refusal).startswith(f"{name}: "), f"the error does not name the file: {refusal}"
    return "refused"


def used(capture: Capture) -> str:
    verify_capture(capture)
    if sum(stage.graph.n_nodes for stage in capture.stages) > MANY:  # the same code runs for small ones
        return "read"
    try:
        dump(capture)
        if capture.stages:
            capture.stats()
        summary.info(capture)
    except opscope.OpscopeError as error:  # attributes are read when they are shown
        check_line(error)
    return "read"


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
