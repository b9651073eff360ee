"""The model and its file at a million nodes, compared with onnx_ir at 200,000, in one run.

    python benchmarks/bench_ir.py [--nodes 1000000] [--rival 200000] [--runs 5]

Seconds are process CPU seconds, the best of the runs. Ratios compare figures of this run.
"""

from __future__ import annotations

import argparse
import gc
import io
import pickle
import platform
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import opscope
from calibrate import calibrate, is_there
from opscope import wire
from opscope.ir import Capture, verify
from synthetic import Rows, build, build_singly, rows

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "jittor" / "resnet_train.pkl"


def best(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    seconds, result = float("inf"), None
    for _ in range(runs):
        result = None
        gc.collect()
        gc.disable()
        start = time.process_time()
        result = work()
        seconds = min(seconds, time.process_time() - start)
        gc.enable()
    return seconds, result


def build_onnx(table: Rows) -> Any:
    """The same nodes as onnx_ir objects: op, name, inputs, output type, scope and line as metadata."""
    import onnx_ir as ir

    float32 = ir.TensorType(ir.DataType.FLOAT)
    values = [ir.Value(name="x", type=float32), ir.Value(name="y", type=float32)]
    inputs = list(values)
    nodes: list[Any] = []
    shapes = {shape: ir.Shape(shape) for shape in set(table.shape)}
    for op, name, (a, b), shape, scope, line, phase in zip(*table, strict=True):
        value = ir.Value(name=name, shape=shapes[shape], type=float32)
        values.append(value)
        nodes.append(
            ir.Node(
                "",
                op,
                inputs=[values[a], values[b]],
                outputs=[value],
                name=name,
                metadata_props={"scope": str(scope), "line": str(line), "phase": phase},
            )
        )
    return ir.Graph(inputs, [values[-1]], nodes=nodes, name="synthetic")


def inflate(data: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(len(archive.read(name)) for name in archive.namelist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rival", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()

    print(f"opscope {opscope.__version__}, Python {platform.python_version()}, numpy {np.__version__}")
    print(f"calibration loop: {calibrate():.3f} s")

    table = rows(args.nodes)
    seconds_singly, _ = best(lambda: build_singly(table), args.runs)
    seconds_build, capture = best(lambda: build(table), args.runs)
    report_model(capture, args.nodes, seconds_build, args.runs)
    report_wire(capture, args.nodes, args.runs)
    del capture
    if is_there("onnx_ir"):
        report_rival(table.first(args.rival), seconds_build / args.nodes, seconds_singly / args.nodes, args.runs)
    report_jittor(args.runs)


def report_model(capture: Capture, nodes: int, seconds: float, runs: int) -> None:
    graph = capture.graph
    columns = sum(column.nbytes for column in graph.columns().values())
    texts = sum(len(text.encode()) for text in capture.pools.strings)
    seconds_verify, _ = best(lambda: verify(graph), runs)
    print(
        f"\n{nodes:,} nodes, {graph.n_values:,} values, {graph.n_edges:,} edges, {len(capture.pools.scopes):,} scopes"
    )
    print(f"  build and freeze   {seconds:8.3f} s   {1e6 * seconds / nodes:6.2f} µs a node")
    print(f"  verify             {seconds_verify:8.3f} s")
    print(f"  columns            {columns / nodes:8.1f} B a node (at most 64)")
    print(f"  pools              {len(capture.pools.strings):,} strings of {texts:,} bytes, unique names among them")


def report_wire(capture: Capture, nodes: int, runs: int) -> None:
    def write() -> bytes:
        file = io.BytesIO()
        wire.write(capture, file)
        return file.getvalue()

    seconds_write, data = best(write, runs)
    seconds_inflate, raw = best(lambda: inflate(data), runs)
    seconds_read, _ = best(lambda: wire.read(io.BytesIO(data), len(data)), runs)
    print(f"  write .opscope     {seconds_write:8.3f} s   {len(data) / nodes:6.2f} B a node (at most 20)")
    print(f"  inflate members    {seconds_inflate:8.3f} s   {raw:,} bytes")
    print(f"  read and check     {seconds_read:8.3f} s   {seconds_read / seconds_inflate:6.2f} × inflation (at most 3)")


def report_rival(table: Rows, ours: float, singly: float, runs: int) -> None:
    import onnx_ir

    seconds, _ = best(lambda: build_onnx(table), runs)
    theirs = seconds / len(table.op)
    print(f"\nonnx_ir {onnx_ir.__version__}, {len(table.op):,} nodes")
    print(f"  build              {seconds:8.3f} s   {1e6 * theirs:6.2f} µs a node")
    print(f"  opscope / onnx_ir  {ours / theirs:8.3f}     (at most 0.2)")
    print(f"  one call per node  {singly / theirs:8.3f}     {1e6 * singly:6.2f} µs a node")


def report_jittor(runs: int) -> None:
    data = SAMPLE.read_bytes()
    seconds_load, _ = best(lambda: pickle.loads(data), runs)
    seconds_open, _ = best(lambda: opscope.open(SAMPLE), runs)
    print(f"\n{SAMPLE.name}, {len(data):,} bytes")
    print(f"  pickle.load        {seconds_load:8.3f} s")
    print(f"  opscope.open       {seconds_open:8.3f} s   (at most {10 * seconds_load + 0.5:.3f}: 10 × load + 0.5)")
    peak, allowed = open_peak(), 20 * len(data) + (50 << 20)
    print(f"  peak memory        {peak / 2**20:8.1f} MB above an idle interpreter (at most {allowed / 2**20:.0f})")


def open_peak() -> int:
    """What opening the sample adds to the peak memory of a fresh process."""
    program = (
        "import re, sys, opscope, opscope.readers.registry, opscope.readers.jittor\n"
        # Not getrusage: its peak is inherited from the process that started this one.
        "peak = lambda: 1024 * int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak(); cap = opscope.open(sys.argv[1]); print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(SAMPLE)], capture_output=True, text=True, check=True)
    return int(done.stdout)


if __name__ == "__main__":
    main()
