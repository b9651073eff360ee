"""Training steps under torch.compile: is what opscope shows of them what the compiler had in memory?

    python tests/torch/campaigns/compiled.py [NAME …]

Each model runs in a process of its own, recorded while TORCH_TRACE writes its log. Printed for each:

- graphs: stages whose operators and edges are not those of the FX graph in memory (live), or not those that Python's
  own parser counts in the text (log);
- kernels: those without a module or a line, those whose operators are not the ones in the comment above their code, and
  operators of the last graph that no kernel computes;
- modules in the log against those in the process: right, the same but guessed, an outer one, wrong, each with and
  without the mark of a guess.
"""

from __future__ import annotations

import argparse
import ast
import os
import pickle
import re
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import opscope
from opscope.analysis import summary
from opscope.ir import Graph
from opscope.ir.attributes import MODULE_GUESSED

Rows = dict[str, list[str]]  # operators, and what each reads


# -- in the process ---------------------------------------------------------------------------------------


def run(name: str, folder: Path) -> None:
    import torch
    from compiled_models import MODELS

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, inputs, *rest = MODELS[name]()
    seen: dict[str, Rows] = {}
    original = torch.fx.GraphModule.print_readable

    def print_readable(module: Any, *args: Any, **kwargs: Any) -> str:
        text = original(module, *args, **kwargs)
        seen[text.strip()] = rows_of(module.graph)
        return text

    torch.fx.GraphModule.print_readable = print_readable
    compiled = torch.compile(model, **(rest[0] if rest else {}))
    with opscope.record(model) as capture:
        compiled(*inputs).float().square().mean().backward()
    capture.save(folder / "live.opscope")
    (folder / "graphs.pkl").write_bytes(pickle.dumps(seen))


def rows_of(graph: Any) -> Rows:
    """The calls of an FX graph with what each reads. To pick one of several results is no operator here."""
    import torch

    calls = [node for node in graph.nodes if node.op.startswith("call")]
    names = {node for node in graph.nodes if node.op != "get_attr" or isinstance(node.meta.get("val"), torch.Tensor)}
    picks = {
        node
        for node in calls
        if getattr(node.target, "__name__", "") == "getitem"
        and isinstance(node.args[0].target, torch._ops.OpOverload | torch._ops.HigherOrderOperator)
        and isinstance(node.args[0].meta.get("val", ()), tuple | list)
        and all(getattr(user.target, "__name__", "") == "getitem" for user in node.args[0].users)
    }
    found: Rows = {}
    for node in calls:
        if node not in picks:
            read: list[str] = []
            torch.fx.node.map_arg(
                (node.args, node.kwargs), lambda other, read=read: read.append(other.name) if other in names else None
            )
            found[node.name] = read
    return found


# -- in the text ------------------------------------------------------------------------------------------


def rows_in(text: str) -> Rows:
    """The same, counted by Python's own parser."""
    tree = ast.parse(textwrap.dedent(text))
    forward = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    known = {argument.arg for argument in forward.args.args} - {"self"}
    rows: Rows = {}
    picked: dict[str, str] = {}
    several: set[str] = set()
    same: dict[str, str] = {}
    for line in forward.body:
        target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
        value: Any = getattr(line, "value", None)
        if isinstance(line, ast.AnnAssign) and value is None and isinstance(target, ast.Name):
            known.add(target.id)
        if (
            not isinstance(target, ast.Name)
            or value is None
            or (isinstance(value, ast.Constant) and value.value is None)
        ):
            continue
        if isinstance(value, ast.Name) and not isinstance(line, ast.AugAssign):
            same[target.id] = same.get(value.id, value.id)
            known.add(target.id)
            continue
        is_attribute = (
            isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self"
        )
        if not is_attribute:
            read = [node.id for node in ast.walk(value) if isinstance(node, ast.Name) and node.id in known]
            rows[target.id] = sorted(same.get(name, name) for name in read)
            if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
                picked[target.id] = value.value.id
            if isinstance(line, ast.Assign) and isinstance(value, ast.Call) and "torch.ops." in ast.unparse(value.func):
                several.add(target.id)
        known.add(target.id)
    other = {name for row, read in rows.items() for name in read if picked.get(row) != name}
    return {row: read for row, read in rows.items() if picked.get(row, "") not in several - other}


def rows_shown(graph: Graph) -> Counter[tuple[str, int]]:
    starts = graph.use_start.tolist()
    live = graph.use_value >= 0
    return Counter((node.name, int(live[starts[i] : starts[i + 1]].sum())) for i, node in enumerate(graph.nodes))


def counted(rows: Rows) -> Counter[tuple[str, int]]:
    return Counter((name, len(read)) for name, read in rows.items())


# -- what is compared -------------------------------------------------------------------------------------


def graphs(capture: Any, real: dict[str, Rows] | None) -> tuple[int, list[str]]:
    """How many stages were compared, and those that differ."""
    compared, wrong = 0, []
    for stage in capture.stages:
        text = str(stage.listings["native"]).strip() if "native" in stage.listings else ""
        if stage.name.startswith(("kernels", "recorded")) or not text:
            continue
        rows = real.get(text) if real is not None else rows_in(text)
        if rows is None:
            continue
        compared += 1
        shown = rows_shown(stage.graph)
        if shown != counted(rows):
            only = list((shown - counted(rows)).items())[:3], list((counted(rows) - shown).items())[:3]
            wrong.append(f"{stage.name}: {only}")
    return compared, wrong


_FRAGMENT = re.compile(r"^#\s+%(\w+) : .*?= call_function\[", re.MULTILINE)


def kernels(capture: Any) -> list[str]:
    found: list[str] = []
    for stage, about in zip(capture.stages, summary.info(capture)["stages"], strict=True):
        cover = about["coverage"]
        for word in ("module", "line"):
            if cover["kernels"] != cover[f"kernels_with_{word}"]:
                found.append(f"{stage.name}: {cover['kernels'] - cover[f'kernels_with_{word}']} kernels, no {word}")
            if stage.name != "recorded" and cover["operators"] != cover[f"operators_with_{word}"]:
                found.append(
                    f"{stage.name}: {cover['operators'] - cover[f'operators_with_{word}']} operators, no {word}"
                )
        if not stage.name.startswith("post-grad") or "kernel" not in stage.graph.groups:
            continue
        groups = stage.graph.groups["kernel"]
        inside = {int(node) for i in range(len(groups)) for node in groups.members(i)}
        lost = [node.name for i, node in enumerate(stage.graph.nodes) if i not in inside and computes(node)]
        found += [f"{stage.name}: no kernel computes {', '.join(lost[:8])}"] if lost else []
    return found


def computes(node: Any) -> bool:
    """A view that nobody needs in memory, and a number of the shapes, are computed by no kernel."""
    from opscope.readers.torch.compiler.flow import LIKE_VIEWS
    from opscope.readers.torch.names import base_name

    return base_name(node.op) not in LIKE_VIEWS and not node.op.startswith(("operator.", "aten.sym_", "torch.sym"))


def modules(live: Any, log: Any) -> Counter[str]:
    real = {stage.name: stage.graph for stage in live.stages}
    found: Counter[str] = Counter()
    for stage in log.stages:
        graph = real.get(stage.name)
        if graph is None or graph.n_nodes != stage.graph.n_nodes:
            found["stages that are not there"] += 1
            continue
        for known, node in zip(graph.nodes, stage.graph.nodes, strict=True):
            (model, *wanted), (root, *path) = known.path.split("/"), node.path.split("/")
            # The log calls a model by its class, and what goes on after a break by the class of its module.
            is_right = path == wanted or (model != root and wanted[len(wanted) - len(path) :] == path)
            word = "right" if is_right else "outer" if wanted[: len(path)] == path else "wrong"
            found[f"{word}, guessed" if MODULE_GUESSED in node.attrs else word] += 1
    return found


def compare(name: str, folder: Path) -> Counter[str]:
    live, log = opscope.open(folder / "live.opscope"), opscope.open(folder / "log")
    real = pickle.loads((folder / "graphs.pkl").read_bytes())
    of_live, of_log = graphs(live, real), graphs(log, None)
    found = modules(live, log)
    total = sum(found.values())
    shares = ", ".join(f"{word} {count / total:.2%}" for word, count in sorted(found.items()))
    print(f"{name}: {of_live[0]} and {of_log[0]} graphs; modules of {total:,} operators: {shares}", flush=True)
    for where, texts in (("live", of_live[1] + kernels(live)), ("log", of_log[1] + kernels(log))):
        for text in texts:
            print(f"    {where}: {text}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path, help="a folder for captures and logs; what is there is not run again")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run(options.run, options.keep)
        return
    from compiled_models import MODELS

    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.names or MODELS:
            folder = (options.keep or Path(scratch)) / name
            if not (folder / "graphs.pkl").is_file():
                (folder / "log").mkdir(parents=True, exist_ok=True)
                command = [sys.executable, __file__, "--run", name, "--keep", str(folder)]
                ran = subprocess.run(command, env={**os.environ, "TORCH_TRACE": str(folder / "log")}, check=False)
                if ran.returncode:
                    print(f"{name}: failed")
                    continue
            total += compare(name, folder)
    count = sum(total.values())
    print("all:", ", ".join(f"{word} {n / count:.2%} ({n:,})" for word, n in sorted(total.items())))


if __name__ == "__main__":
    main()
