"""Comparing large graphs: 100,000 nodes, equal, in another order, and after 50 edits.

    python benchmarks/bench_diff.py [--nodes 100000] [--edits 50] [--runs 3]

Seconds are process CPU seconds, the best of the runs, with a fixed calibration loop. Memory is what tracemalloc sees
at most while comparing, for each node; it must not grow with the size. `layers` is a deep network of equal layers,
where no operator has a neighbourhood of its own; `net` has skips and 40 kinds of operators; `branches` has equal
branches side by side, so that its rows can really be in another order.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import synthetic
from calibrate import calibrate
from opscope.analysis.diff import Diff, compare
from opscope.ir import Graph, GraphBuilder, Pools

Rows = list[tuple[str, list[int], tuple[int, ...]]]  # operator, rows it reads (-1: the input), shape


def net(count: int) -> Rows:
    table = synthetic.rows(count)
    # Values 0 and 1 are the inputs, then one for each row.
    return [
        (op, [v - 2 if v > 1 else -1 for v in inputs], shape)
        for op, inputs, shape in zip(table.op, table.inputs, table.shape, strict=True)
    ]


def layers(count: int) -> Rows:
    rows: Rows = []
    kinds = ["norm", "matmul", "bias", "act", "matmul", "bias", "add"]
    while len(rows) < count:
        start = len(rows) - 1
        for k, kind in enumerate(kinds):
            reads = [len(rows) - 1] if kind != "add" else [len(rows) - 1, start]
            rows.append((kind, reads, (8, 64 if k in (0, 4, 5, 6) else 256)))
    return rows[:count]


def branches(count: int) -> Rows:
    """Blocks of 16 equal branches that are joined: the order of their operators is free."""
    rows: Rows = []
    start = -1
    while len(rows) < count:
        ends: list[int] = []
        for _ in range(16):
            last = start
            for kind in ("matmul", "bias", "act"):
                rows.append((kind, [last], (8, 64)))
                last = len(rows) - 1
            ends.append(last)
        rows.append(("join", ends, (8, 64)))
        start = len(rows) - 1
    return rows[:count]


def built(rows: Rows, order: list[int] | None = None, names: str = "n") -> Graph:
    pools = Pools()
    b = GraphBuilder(pools)
    x = b.input(pools.type("float32", (8, 64)), name="x")
    values: dict[int, int] = {-1: x}
    for place, i in enumerate(order or range(len(rows))):
        op, reads, shape = rows[i]
        node = b.node(op, [values[r] for r in reads], name=f"{names}{place}")
        values[i] = b.output(node, pools.type("float32", shape))
    b.outputs.append(values[len(rows) - 1])
    return b.freeze()


def shuffled(rows: Rows, seed: int = 0) -> list[int]:
    """Another order that is still possible: any of the next rows that is ready."""
    rng = random.Random(seed)
    readers: dict[int, list[int]] = {}
    waiting = [0] * len(rows)
    for i, (_, reads, _) in enumerate(rows):
        for r in set(reads) - {-1}:
            readers.setdefault(r, []).append(i)
            waiting[i] += 1
    ready = [i for i, left in enumerate(waiting) if not left]
    order: list[int] = []
    while ready:
        i = ready.pop(rng.randrange(max(0, len(ready) - 20), len(ready)))
        order.append(i)
        for j in readers.get(i, ()):
            waiting[j] -= 1
            if not waiting[j]:
                ready.append(j)
    return order


def edited(rows: Rows, edits: int, seed: int = 0) -> Rows:
    """Operators replaced, other shapes, operators put in between."""
    rng = random.Random(seed)
    at = set(rng.sample(range(len(rows)), edits))
    out: Rows = []
    place = {-1: -1}
    for i, (op, reads, shape) in enumerate(rows):
        reads = [place[r] for r in reads]
        kind = rng.randrange(3) if i in at else -1
        if kind == 0:
            op = "replaced"
        elif kind == 1:
            shape = (9, *shape)
        elif kind == 2:
            out.append(("inserted", reads[:1], shape))
            reads = [len(out) - 1, *reads[1:]]
        out.append((op, reads, shape))
        place[i] = len(out) - 1
    return out


def best(work: Callable[[], Diff], runs: int) -> tuple[float, Diff]:
    seconds, found = float("inf"), None
    for _ in range(runs):
        gc.collect()
        start = time.process_time()
        found = work()
        seconds = min(seconds, time.process_time() - start)
    assert found is not None
    return seconds, found


def fresh(graph: Graph) -> Graph:
    """Without the indexes that an earlier comparison left."""
    import dataclasses

    return dataclasses.replace(graph)


def peak(a: Graph, b: Graph) -> float:
    tracemalloc.start()
    compare(fresh(a), fresh(b))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / (a.n_nodes + b.n_nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edits", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    print(f"calibration loop  {calibrate():.3f} s")
    for name, make in (("net", net), ("layers", layers), ("branches", branches)):
        rows = make(args.nodes)
        before = built(rows)
        cases = {
            "equal": (built(rows, names="other"), 1.0),
            f"{args.edits} edits": (built(edited(rows, args.edits)), 3.0),
        }
        order = shuffled(rows)
        if order != list(range(len(rows))):
            cases["another order"] = built(rows, order), 3.0
        for label, (after, limit) in cases.items():
            seconds, diff = best(lambda before=before, after=after: compare(fresh(before), fresh(after)), args.runs)
            print(f"{name:8} {label:14} {seconds:6.2f} s (at most {limit:.0f})  {diff}")
            if label != f"{args.edits} edits":
                assert diff.is_empty, diff.changes[:3]
        small = make(args.nodes // 4)
        quarter = peak(built(small), built(edited(small, args.edits // 4)))
        whole = peak(before, cases[f"{args.edits} edits"][0])
        print(f"{name:8} memory         {quarter:,.0f} bytes a node at {len(small):,}, {whole:,.0f} at {len(rows):,}")
        assert np.isfinite(whole)
        assert whole < 1.5 * quarter, "memory is not linear"


if __name__ == "__main__":
    main()
