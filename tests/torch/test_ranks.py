"""Ranks of distributed programs: without their peers, and as real processes on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

import opscope
from opscope.analysis.costs.devices import device
from opscope.analysis.costs.networks import network
from opscope.analysis.world.estimate import estimate
from opscope.analysis.world.same import difference, plain_attributes, signature
from opscope.analysis.world.summary import world_of
from opscope.capture import Capture
from opscope.ir import Graph, verify_capture

PROGRAM = str(Path(__file__).parent / "ranks" / "program.py")
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "torch_world.py")
TWO = ("ddp", "fsdp2", "tp", "1f1b")


def torchrun(size: int, folder: Path, *words: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={size}", "--rdzv-backend=c10d"]
    found = subprocess.run(
        [*launcher, "--rdzv-endpoint=localhost:0", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
    )
    assert not check or found.returncode == 0, found.stderr[-4000:]
    return found


def traced(size: int, folder: Path, *words: str, **env: str) -> list[Capture]:
    torchrun(size, folder, "-m", "opscope", "trace", "-o", "run.opscope", PROGRAM, *words, **env)
    return [opscope.open(folder / f"run.rank{rank}.opscope") for rank in range(size)]


@cache
def alone(size: int, way: str) -> Capture:
    return opscope.world(PROGRAM, size, args=[way], every=True, jobs=2)


def stage_of(world: Capture, rank: int):
    found = world_of(world)
    assert found is not None
    return world.stages[next(one.stage for one in found.classes if rank in one.ranks)]


def without_gloos(graph: Graph) -> list[tuple[str, str, str]]:
    """Every operator with what it makes, and its group: without those that gloo runs inside of a collective."""
    return [
        (node.op, ", ".join(str(value.type) for value in node.outputs), plain_attributes(node.op, node.attrs))
        for node in graph.nodes
        if (node.frames and not node.frames[-1].file.endswith("distributed_c10d.py")) or "rank_group" in node.attrs
    ]


@pytest.mark.parametrize("way", TWO)
def test_a_rank_without_peers_does_what_a_real_one_does(way: str, tmp_path: Path) -> None:
    real = traced(2, tmp_path, way, str(tmp_path / "with"))
    torchrun(2, tmp_path, PROGRAM, way, str(tmp_path / "without"))
    world = opscope.world(PROGRAM, 2, args=[way, str(tmp_path / "alone")], every=True, jobs=2)
    for rank, capture in enumerate(real):
        other = stage_of(world, rank).graph
        if way == "fsdp2":  # gloo itself writes a reduce-scatter as several operators
            assert without_gloos(capture.graph) == without_gloos(other)
        else:
            assert signature(capture.graph) == signature(other), difference(capture.graph, other)
        assert any("rank_group" in node.attrs for node in capture.graph.nodes)
        with_it, without = (torch.load(tmp_path / f"{name}.{rank}") for name in ("with", "without"))
        assert len(with_it) == len(without) > 0
        assert all(torch.equal(a, b) for a, b in zip(with_it, without, strict=True))


@pytest.mark.parametrize("way", ["sp", "experts", "gpipe", "interleaved", "zero_bubble", "zbv", "shapes asked"])
def test_every_way_to_share_work_runs_without_peers(way: str) -> None:
    world = alone(4, way)
    verify_capture(world)
    found = world_of(world)
    assert found is not None
    assert found.size == 4
    assert sorted(rank for one in found.classes for rank in one.ranks) == [0, 1, 2, 3]
    for one in found.classes:
        assert one.figures["macs"] > 0
        assert not one.at_least
        assert one.figures["wire_bytes"] == sum(wire.bytes for wire in one.wires) > 0
    if way not in ("sp", "experts"):
        assert {link.kind for link in world.stage_links} == {"communicates"}


WRONG = ("layer", "order", "extra", "reduction")


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_rank_that_does_something_else_is_named(what: str, rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", f"{rank}:{what}")
    world = opscope.world(PROGRAM, 4, args=["by_hand"], every=True, jobs=2)
    found = world_of(world)
    assert found is not None
    assert [one.ranks for one in found.classes if one.odd] == [[rank]]
    (odd,) = [one.odd for one in found.classes if one.odd]
    assert {"layer": "aten.mm", "order": "all_reduce allreduce_", "extra": "allreduce_", "reduction": "max"}[
        what
    ].split()[-1] in odd
    assert any(f"rank {rank} unlike" in text for text in world.warnings)


def test_a_real_rank_that_does_something_else_is_named(tmp_path: Path) -> None:
    traced(3, tmp_path, "by_hand", ODD="1:layer")
    command = [sys.executable, "-m", "opscope", "info", "--json", *(f"run.rank{rank}.opscope" for rank in range(3))]
    told = json.loads(subprocess.check_output(command, cwd=tmp_path, text=True))
    classes = told["world"]["classes"]
    assert [(one["ranks"], bool(one["odd"])) for one in classes] == [([0, 2], False), ([1], True)]
    assert told["world"]["size"] == 3


def test_a_rank_that_hangs_leaves_what_it_did(tmp_path: Path) -> None:
    launcher = """
import os, signal, subprocess, sys, time
run = subprocess.Popen(sys.argv[1:], start_new_session=True)
deadline = time.monotonic() + 300
while time.monotonic() < deadline and not all(os.path.exists(f"waits{rank}") for rank in range(2)):
    time.sleep(0.2)
run.send_signal(signal.SIGTERM)
sys.exit(0 if run.wait(120) else 1)
"""
    script = tmp_path / "hangs.py"
    script.write_text(
        "import os, time, torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(4) * 2\n"
        "open(f'waits{dist.get_rank()}', 'w').close()\n"
        "time.sleep(600) if dist.get_rank() else dist.all_reduce(x)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d"]
    command += ["--rdzv-endpoint=localhost:0", "-m", "opscope", "trace", str(script)]
    done = subprocess.run(
        [sys.executable, "-c", launcher, *command],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    for rank in range(2):
        path = tmp_path / f"hangs.rank{rank}.opscope"
        assert path.exists(), done.stderr[-3000:]
        assert any(node.op == "aten.mul.Tensor" for node in opscope.open(path).graph.nodes)


def test_a_world_of_a_function() -> None:
    def step() -> None:
        import torch.distributed as dist

        dist.init_process_group("nccl")
        dist.all_reduce(torch.ones(3, device="cuda") * 2)

    world = opscope.world(step, 6, jobs=2)
    found = world_of(world)
    assert found is not None
    assert [one.ranks for one in found.classes] == [list(range(6))]
    assert found.seen < 6
    assert any("inferred" in text for text in world.warnings)
    assert torch.cuda.is_available() or any("no CUDA device" in text for text in world.warnings)


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    script = tmp_path / "bad.py"
    script.write_text("import torch\ntorch.ones(2) @ torch.ones(3)\n")
    for words, text in (
        (["--world", "4", str(script)], "rank 0: "),
        (["--world", "4", "--how", "export", str(script)], "--world goes with"),
        (["--fake", str(script)], "--fake, --all and --jobs go with --world"),
    ):
        found = subprocess.run(
            [sys.executable, "-m", "opscope", "trace", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert found.returncode == 2, found.stderr
        assert text in found.stderr.splitlines()[-1]
        assert not list(tmp_path.glob("*.opscope"))


def llama(o: dict[str, int], stage: int) -> tuple[int, int, dict[str, int]]:
    """Parameters, MACs and bytes on each wire of one rank of the example, by hand. Of 2 bytes a number."""
    tp, pp, dp = o["tp"], o["pp"], o["dp"]
    each, more = divmod(o["layers"] + 2, pp)
    layers = each + (stage < more) - (stage == 0) - (stage == pp - 1)
    head = o["hidden"] // o["heads"]
    qkv = (o["heads"] + 2 * o["kv"]) // tp * head * o["hidden"]
    out = o["hidden"] * o["heads"] // tp * head
    ffn = 3 * o["hidden"] * o["ffn"] // tp
    rows = o["vocab"] // tp
    is_first, is_last = stage == 0, stage == pp - 1
    parameters = layers * (qkv + out + ffn + 2 * o["hidden"])
    parameters += is_first * rows * o["hidden"] + is_last * (rows * o["hidden"] + o["hidden"])

    tokens, batch = o["sequence"], o["microbatches"]
    scores = 2 * o["heads"] // tp * tokens * tokens * head  # the products of attention, dense
    products = layers * ((qkv + out + ffn) * tokens) + is_last * rows * o["hidden"] * tokens
    # Backward of a product is two products; of attention, which computes its scores once more, five instead of two.
    macs = batch * (3 * products + layers * (scores + scores * 5 // 2))

    hidden = tokens * o["hidden"] * 2
    reduced = lambda size, n: -(-size * 2 * (n - 1) // n)  # noqa: E731
    on_tp = layers * 4 * reduced(hidden, tp)
    on_tp += is_first * reduced(hidden, tp)
    on_tp += is_last * (reduced(hidden, tp) + 3 * reduced(tokens * 4, tp))
    sizes = layers * [qkv, out, ffn // 3, ffn // 3, ffn // 3, o["hidden"], o["hidden"]]
    sizes += is_first * [rows * o["hidden"]] + is_last * [rows * o["hidden"], o["hidden"]]
    wires = {
        "pp": batch * hidden * ((not is_last) + (not is_first)),
        "tp": batch * on_tp,
        "dp": sum(reduced(size * 2, dp) for size in sizes),
    }
    return parameters, macs, wires


def test_the_figures_of_a_rank_are_those_of_the_formulas() -> None:
    o = {"tp": 2, "pp": 4, "dp": 2, "layers": 6, "hidden": 64, "ffn": 192, "heads": 4, "kv": 2, "vocab": 256}
    o |= {"sequence": 16, "microbatches": 4}
    words = [word for name, size in o.items() if name != "dp" for word in (f"--{name}", str(size))]
    world = opscope.world(EXAMPLE, 16, args=words, fake=True, steps=1, jobs=2)
    verify_capture(world)
    found = world_of(world)
    assert found is not None
    assert found.mesh == {"pp": 4, "dp": 2, "tp": 2}
    assert sorted(rank for one in found.classes for rank in one.ranks) == list(range(16))
    for one in found.classes:
        stage = one.ranks[0] // 4
        parameters, macs, wires = llama(o, stage)
        assert one.figures["parameters"] == parameters
        assert one.figures["macs"] == macs
        sent = {wire.dimension: wire.bytes for wire in one.wires}
        assert {name: sent.get(name, 0) for name in ("tp", "dp")} == {name: wires[name] for name in ("tp", "dp")}
        # Before it starts, a pipeline votes on whether shapes are known: a number of 4 bytes each way.
        assert 0 <= sent["pp"] - wires["pp"] <= 8
        assert one.figures["state_bytes"] >= 4 * parameters
        assert one.figures["peak_bytes"] > 6 * parameters
    guess = estimate(world, found, device("h100"), network("dgx-h100"))
    assert 0 < guess.mfu < 1
    assert 3 / 7 - 0.05 < guess.bubble < 1  # four stages and four microbatches wait 3/7 of the time at least
    assert not any("never come" in text for text in guess.assumptions)
    assert all(lane.pieces[-1].end == lane.total <= guess.seconds for lane in guess.lanes)
