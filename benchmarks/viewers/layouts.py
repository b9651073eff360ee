"""The layout engines, each on one graph in a process of its own: viewer/bench/layout_bench.mjs does the work."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from calibrate import is_there

VIEWER = Path(__file__).parent.parent.parent / "viewer"
ENGINES = {"ours": "opscope", "dagre": "dagre", "elk": "ELK", "dot": "Graphviz dot"}
if not is_there("dot"):
    del ENGINES["dot"]


def lay_out(engine: str, graph: Path, limit: float, repeat: int = 5, measured: bool = True) -> dict[str, Any]:
    """seconds, first, crossings, through, length … or `failed`."""
    options = ["--with", engine, "--limit", f"{limit:.0f}", "--repeat", str(repeat)]
    command = ["node", "--max-old-space-size=9000", "--stack-size=60000", "bench/layout_bench.mjs", *options]
    if not measured:
        command.append("--no-measure")
    # dot runs inside and is stopped by the script; the margin is for counting crossings
    seconds = limit * max(1, repeat if engine == "ours" else 1) + 30
    script = f'ulimit -s unlimited; ulimit -t {seconds:.0f}; exec "$@"'
    try:
        done = subprocess.run(
            ["bash", "-c", script, "bash", *command, str(graph)],
            cwd=VIEWER, capture_output=True, text=True, timeout=6 * seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"failed": f"no result in {limit:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        # Stopped by its limit of CPU: the script itself, or the program that it runs.
        stopped = done.returncode in (-24, -9, 137, 152) or "Killed" in last
        return {"failed": f"no result in {limit:.0f} s" if stopped else last[:100]}
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    if answer.get("seconds", 0) > limit:
        return {"failed": f"no result in {limit:.0f} s"}
    return answer


def versions() -> dict[str, str]:
    def package(name: str) -> str:
        return json.loads((VIEWER / "node_modules" / name / "package.json").read_text())["version"]

    found: dict[str, str] = {}
    if is_there("node"):
        node = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
        found = {"dagre": package("@dagrejs/dagre"), "elkjs": package("elkjs"), "Node": node.lstrip("v")}
    if "dot" in ENGINES:
        dot = subprocess.run(
            ["dot", "-V"], capture_output=True, text=True
        ).stderr  # "dot - graphviz version 2.43.0 (0)"
        found["Graphviz"] = dot.split("version")[-1].split()[0]
    return found
