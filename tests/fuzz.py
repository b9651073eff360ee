"""Mutates real files and opens them: every one must give a capture or one clear error, soon.

    python tests/fuzz.py --runs 100000 [--seed 1]

A failure is written to `fuzz-failures/` with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import pickle
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import opscope
from opscope.ir import verify_capture
from opscope.ir.text import dump
from opscope.readers import registry
from opscope.readers.source import Options, Source

DATA = Path(__file__).parent / "data"
LARGEST = 300_000
SECONDS = 20  # for one file; an honest one of this size takes less than 0.1


class Hang(Exception):
    """Reading took too long."""


def samples() -> dict[str, bytes]:
    """Real traces, and the same as .opscope files and as Model Explorer's JSON."""
    found = {p.name: p.read_bytes() for p in sorted(DATA.rglob("*.pkl")) if 0 < p.stat().st_size < LARGEST}
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
    return found | torch_samples() | megengine_samples() | hidet_samples()


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
    return found


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
    wanted = (".json", ".py", ".pkl", "_pkl")  # weights and version files teach little
    name = rng.choice([name for name in members if name.endswith(wanted)] or list(members))
    if name.endswith(".json") and rng.random() < 0.7:
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


ODD: list[Any] = [None, -1, 0, 2**31, 2**40, 1.5, True, "", "x" * 1000, "\ud800", [], {}, [[]], {"": {}}, (1, 2), b"x"]


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


def attempt(name: str, data: bytes) -> str:
    """Open the bytes; "read" or "refused". Anything else is a failure."""
    try:
        capture = registry.read(Source(name, data=data), Options())
    except opscope.OpscopeError as error:
        text = str(error)
        assert text.startswith(f"{name}: "), f"the error does not name the file: {text[:200]}"
        assert "\n" not in text, f"the error has several lines: {text[:200]}"
        return "refused"
    verify_capture(capture)
    dump(capture)
    return "read"


def run(runs: int, seed: int, found: dict[str, bytes] | None = None) -> Iterator[tuple[int, str, str]]:
    """(number, sample, what happened) for each mutation of some samples, or of all."""
    found = samples() if found is None else found
    names = list(found)
    others = list(found.values())
    for number in range(runs):
        rng = random.Random(f"{seed}/{number}")
        name = rng.choice(names)
        data = found[name]
        if rng.random() < 0.5 and name.endswith((".pkl", ".json")):
            data = mutate_inside(name, data, rng)
        elif rng.random() < 0.7 and zipfile.is_zipfile(io.BytesIO(data)) and not name.endswith(".opscope"):
            data = mutate_member(data, rng, others)
        elif rng.random() < 0.6 and name.endswith((".log", ".dot")):
            data = mutate_code(data.decode("utf-8", "replace"), rng).encode("utf-8", "surrogatepass")
        else:
            data = mutate(data, rng, others)
        previous = signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            yield number, name, attempt(name, data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | GeneratorExit):
                raise
            folder = Path("fuzz-failures")
            folder.mkdir(exist_ok=True)
            (folder / f"{seed}-{number}-{name}").write_bytes(data)
            yield number, name, "FAILED\n" + traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)


def _too_long(*_: object) -> None:
    raise Hang(f"more than {SECONDS} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    counts = {"read": 0, "refused": 0, "failed": 0}
    for number, name, result in run(args.runs, args.seed):
        counts["failed" if result.startswith("FAILED") else result] += 1
        if result.startswith("FAILED"):
            print(f"{name}, run {number}: {result}", file=sys.stderr)
        if number % 1000 == 999:
            print(f"{number + 1:,} of {args.runs:,}: {counts}", flush=True)
    print(f"seed {args.seed}: {counts}")
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
