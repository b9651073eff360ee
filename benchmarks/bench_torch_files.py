"""Reading PyTorch's files without PyTorch: a .pt2 of 10,000 nodes, and the real samples of the tests.

    python benchmarks/bench_torch_files.py [--nodes 10000] [--runs 5] [--keep big.pt2]

Seconds are process CPU seconds, the best of the runs: opening the archive, parsing the JSON, building and checking the
graph. The large file is made of copies of a real one (tests/data/torch/net.pt2), each with its own names, modules,
weights and source lines, as a deep model has them.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import re
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from calibrate import calibrate
from opscope.readers import registry
from opscope.readers.source import Options, Source

DATA = Path(__file__).parent.parent / "tests" / "data" / "torch"


def large(nodes: int) -> bytes:
    """The model.json of a program with at least this many nodes."""
    with zipfile.ZipFile(DATA / "net.pt2") as archive:
        program: dict[str, Any] = json.loads(archive.read("net/models/model.json"))
    graph, signature = program["graph_module"]["graph"], program["graph_module"]["signature"]
    template = copy.deepcopy(graph)
    specs = signature["input_specs"]
    copies = -(-nodes // len(template["nodes"]))
    # Everything in it has a name of its own, but the values that the user gives.
    given = {argument["as_tensor"]["name"] for argument in template["inputs"][-2:]}
    names = sorted(set(template["tensor_values"]) - given, key=len, reverse=True)
    text = json.dumps({"nodes": template["nodes"], "inputs": template["inputs"][:-2], "specs": specs[:-2]})
    values = {name: meta for name, meta in template["tensor_values"].items() if name not in given}
    pattern = re.compile(r'"(?:' + "|".join(map(re.escape, names)) + r')"')
    graph["nodes"], graph["inputs"], graph["tensor_values"] = [], [], {n: template["tensor_values"][n] for n in given}
    signature["input_specs"] = []
    for i in range(copies):
        own = pattern.sub(lambda found, i=i: f'"{found[0][1:-1]}_{i}"', text)
        own = re.sub(r",(layers|tok|shared|head)\b", rf",blocks.{i}.\1", own)  # module paths
        own = re.sub(r"line (\d+), in forward", lambda found, i=i: f"line {int(found[1]) + 100 * i}, in forward", own)
        part = json.loads(own)
        graph["nodes"] += part["nodes"]
        graph["inputs"] += part["inputs"]
        signature["input_specs"] += part["specs"]
        graph["tensor_values"] |= {f"{name}_{i}": meta for name, meta in values.items()}
    graph["inputs"] += template["inputs"][-2:]
    signature["input_specs"] += specs[-2:]
    last = [{"as_tensor": {"name": f"{output['as_tensor']['name']}_{copies - 1}"}} for output in template["outputs"]]
    graph["outputs"] = last
    signature["output_specs"] = [{"user_output": {"arg": output}} for output in last]
    return json.dumps(program).encode()


def best(path: Path, runs: int) -> tuple[float, Any]:
    seconds, capture = float("inf"), None
    for _ in range(runs):
        capture = None
        gc.collect()
        start = time.process_time()
        capture = registry.read(Source.of(path), Options())
        seconds = min(seconds, time.process_time() - start)
    return seconds, capture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="write the large file here")
    args = parser.parse_args()
    print(f"calibration loop  {calibrate():.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = args.keep or Path(folder, "large.pt2")
        data = large(args.nodes)
        with zipfile.ZipFile(path, "w") as archive:  # stored, as torch does
            archive.writestr("large/archive_format", "pt2")
            archive.writestr("large/models/model.json", data)
        seconds, capture = best(path, args.runs)
        graph = capture.graph
        print(
            f".pt2 of {graph.n_nodes:,} nodes, {graph.n_edges:,} edges, {len(capture.pools.scopes):,} scopes, "
            f"{len(capture.pools.frames):,} source lines, {len(data) / 1e6:.1f} MB of JSON"
        )
        print(f"  read  {seconds:.3f} s  (at most 0.500)")
        gc.disable()  # as the reader does
        start = time.process_time()
        json.loads(data)
        print(f"  of which json.loads  {time.process_time() - start:.3f} s")
        gc.enable()
    for path in sorted([*DATA.glob("*.pt2"), *DATA.glob("[!sm]*.pt"), DATA / "chakra.json"]):
        seconds, capture = best(path, args.runs)
        print(f"{path.name:16} {sum(s.graph.n_nodes for s in capture.stages):5} nodes  {seconds * 1000:7.2f} ms")
    assert "torch" not in sys.modules


if __name__ == "__main__":
    main()
