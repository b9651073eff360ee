"""The timeline of a measured profile of a million events in Chromium: opening it, panning and zooming.

    python benchmarks/bench_timeline.py                    # a million events
    python benchmarks/bench_timeline.py --events 100000

Frames are CPU milliseconds of the page's main thread per drawn frame, read from Chromium's own trace; a standstill is
the longest task of that thread from the click on the tab until all is drawn. Needed: chromium, and playwright.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import opscope
from calibrate import calibrate, need
from opscope.ir import GraphBuilder, Pools, Stage, Table, column, frozen
from opscope.ir.events import CALL, KERNEL, LAUNCH, NODE, OPERATOR, ROW, STREAM, THREAD, Events, Track
from opscope.ir.facts import TIMES

need("playwright")

from viewers import frames  # noqa: E402
from viewers.chromium import Chromium  # noqa: E402

LIMITS = {"median frame, panning": 17.0, "median frame, zooming": 17.0, "standstill of opening": 100.0}


def synthetic(count: int, layers: int = 200) -> opscope.Capture:
    """A training run as a profile has it: on the CPU each operator with what it calls and its launch, on a stream its
    kernel. Five events for each, over a graph of `layers` modules."""
    b = GraphBuilder(Pools())
    scopes = [b.pools.scope(b.pools.scope(0, "model", "Model"), f"layer{i}", "Layer") for i in range(layers)]
    x = b.input(b.pools.type("float32", (8, 64)), name="x")
    for scope in scopes:
        for op in ("aten.mm", "aten.relu", "aten.add.Tensor"):
            node = b.node(op, [x], scope=scope, phase="forward")
            x = b.output(node, b.pools.type("float32", (8, 64)))
    graph = b.freeze()
    random = np.random.default_rng(1)
    runs = count // 5
    node = (np.arange(runs) % graph.n_nodes).astype(np.int32)
    took = random.lognormal(1.5, 0.6, runs) + 4
    start = np.cumsum(took + random.exponential(0.5, runs))
    kernel = random.lognormal(1.0, 0.9, runs)
    begins = np.maximum.accumulate(np.maximum(start + took, np.cumsum(kernel)))
    parts = [  # kind, start, time, track, name
        (OPERATOR, start, took, 0, 0),
        (CALL, start + 0.1 * took, 0.8 * took, 0, 1),
        (CALL, start + 0.2 * took, 0.6 * took, 0, 2),
        (LAUNCH, start + 0.5 * took, 0.2 * took, 0, 3),
        (KERNEL, begins, np.minimum(kernel, np.append(np.diff(begins), kernel[-1:])), 1, 4),
    ]
    launched = start + 0.5 * took
    events = Events(
        stage=np.zeros(5 * runs, dtype=np.int32),
        by=np.full(5 * runs, NODE, dtype=np.int8),
        index=np.tile(node, 5),
        start=np.concatenate([part[1] for part in parts]),
        time=np.concatenate([part[2] for part in parts]),
        track=np.repeat(np.array([part[3] for part in parts], dtype=np.int16), runs),
        name=np.repeat(np.array([part[4] for part in parts], dtype=np.int32), runs),
        kind=np.repeat(np.array([part[0] for part in parts], dtype=np.int8), runs),
        delay=np.concatenate([np.full(4 * runs, np.nan), begins - launched]),
        launched_on=np.concatenate([np.full(4 * runs, -1), np.zeros(runs)]).astype(np.int16),
        tracks=[Track("thread 1 (python)", THREAD), Track("stream 7", STREAM, 0)],
        names=["aten::linear", "aten::addmm", "aten::mm", "cudaLaunchKernel", "sm90_gemm_bf16"],
    )
    assert ROW not in events.by
    capture = opscope.Capture(b.pools, [Stage("profile", graph)])
    for table in events.tables():
        capture.add(table)
    seconds = np.bincount(node, kernel, minlength=graph.n_nodes)
    capture.add(Table(0, "node", frozen(range(graph.n_nodes)), {"time": column(seconds, "us")}, TIMES.name))
    return capture


def drag(chromium: Chromium, box: dict[str, float], steps: int = 60) -> None:
    """To and fro by the mouse; each movement waits until the page has taken it."""
    mouse = chromium.page.mouse
    x, y = box["x"] + box["width"] / 2, box["y"] + 120
    mouse.move(x, y)
    mouse.down()
    for i in range(steps):
        mouse.move(x + 300 * (1 - abs(1 - 2 * i / steps)), y)
        chromium.page.evaluate("new Promise(requestAnimationFrame)")
    mouse.up()


def zoom(chromium: Chromium, box: dict[str, float], steps: int = 60) -> None:
    mouse = chromium.page.mouse
    mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 120)
    for i in range(steps):
        mouse.wheel(0, -120 if i < steps / 2 else 120)
        chromium.page.evaluate("new Promise(requestAnimationFrame)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    count = parser.parse_args().events
    print(f"calibration {calibrate():.3f} s")
    capture = synthetic(count)
    with tempfile.TemporaryDirectory() as folder, Chromium() as chromium:
        path = Path(folder, "timeline.html")
        capture.save(path)
        print(f"{count:,} events, the page {path.stat().st_size / 1e6:.1f} MB")
        page = chromium.page
        page.goto(path.as_uri())
        page.wait_for_function("window.opscope !== undefined")
        page.evaluate("opscope.idle()")
        tab = page.get_by_role("tab", name="Timeline")

        def click() -> None:
            tab.click()
            page.evaluate("opscope.idle()")

        before = chromium.now()
        stood = frames.longest_task(frames.traced(chromium, click))
        cost = chromium.since(before)
        print(
            f"opening: {cost.wall:.2f} s, {cost.seconds:.2f} s of CPU, "
            f"longest task {stood.wall:.0f} ms ({stood.cpu:.0f} of CPU)"
        )
        box = page.locator(".timeline canvas").bounding_box()
        assert box is not None
        found = {"standstill of opening": stood.cpu}
        for zoomed, times in (("the whole run", 0), ("10 steps in", 10), ("25 steps in", 25)):
            page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 120)
            for _ in range(times):
                page.mouse.wheel(0, -120)
                page.evaluate("opscope.idle()")
            for what, hand in (("panning", drag), ("zooming", zoom)):
                moved = frames.moved(chromium, lambda hand=hand: hand(chromium, box))
                if moved is None:
                    continue
                name = f"median frame, {what}"
                found[name] = max(found.get(name, 0.0), moved.median)
                print(
                    f"{what} at {zoomed}: median {moved.median:.1f} ms, p95 {moved.p95:.1f} ms, {moved.count} frames, "
                    f"all threads {moved.renderer:.1f} ms"
                )
            page.evaluate("opscope.idle()")
            page.keyboard.press("0")
            page.evaluate("opscope.idle()")
        print(f"memory of the page {chromium.peak:.0f} MB")
        for name, limit in LIMITS.items():
            if name in found:
                print(f"{'ok  ' if found[name] <= limit else 'MISS'} {name}: {found[name]:.1f} ms (limit {limit:g})")


if __name__ == "__main__":
    main()
