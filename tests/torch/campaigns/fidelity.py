"""What the campaigns share: whether something computes the same with the recorder as without, and what is said of it.

A campaign runs many items in slices of one process each. Every item leaves a line in a file of results, so that a
campaign goes on where it was stopped, and an item that ends its process is known by name.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import signal
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import opscope
from opscope.ir.check import capture_problems

# -- the same to the bit -----------------------------------------------------------------------------------


def tensors(result: Any) -> list[Tensor | None]:
    """All tensors in a result."""
    if result is None or isinstance(result, Tensor):
        return [result]
    if isinstance(result, dict):
        return [tensor for item in result.values() for tensor in tensors(item)]
    if isinstance(result, list | tuple):
        return [tensor for item in result for tensor in tensors(item)]
    if hasattr(result, "__dict__") and (hasattr(result, "__dataclass_fields__") or hasattr(result, "key_cache")):
        return [tensor for item in vars(result).values() for tensor in tensors(item)]
    return []


def bits(tensor: Tensor) -> Any:
    tensor = tensor.detach()
    if tensor.is_nested:
        return "nested", [bits(part) for part in tensor.unbind()]
    if tensor.is_quantized:
        return "quantized", bits(tensor.int_repr())
    if tensor.is_mkldnn:
        return bits(tensor.to_dense())
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()
        return "coo", tuple(tensor.shape), bits(tensor.indices()), bits(tensor.values())
    if tensor.layout is not torch.strided:
        return str(tensor.layout), bits(tensor.to_dense())
    if tensor.is_meta:
        return "meta", str(tensor.dtype), tuple(tensor.shape), tensor.stride()
    dense = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.resolve_conj().resolve_neg())
    digest = hashlib.blake2b(dense.reshape(-1).view(torch.uint8).numpy().tobytes(), digest_size=16).hexdigest()
    return str(tensor.dtype), tuple(tensor.shape), tensor.stride(), digest


def difference(ours: Sequence[Tensor | None], theirs: Sequence[Tensor | None]) -> str:
    """Nothing, or what differs first."""
    if len(ours) != len(theirs):
        return f"{len(ours)} tensors instead of {len(theirs)}"
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if (a is None) != (b is None) or (a is not None and b is not None and bits(a) != bits(b)):
            return f"tensor {place} of {len(ours)}"
    return ""


# -- what a capture says -------------------------------------------------------------------------------------


class Numbers(TorchDispatchMode):
    """An independent log of the operators that ran, with a digest of each tensor that they read and made."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[str, list[Any], list[Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with torch._C._DisableTorchDispatch():
            read = _digests([args, kwargs])
        out = func(*args, **kwargs)
        with torch._C._DisableTorchDispatch():
            made = _digests(out)
        self.rows.append((str(func), read, made))
        return out


def _digests(held: Any) -> list[Any]:
    found: list[Any] = []
    for tensor in tensors(held):
        if tensor is not None:
            try:
                found.append(bits(tensor))
            except (RuntimeError, NotImplementedError, TypeError):
                found.append(None)
    return found


def wrong_edges(cap: Any, log: Numbers) -> list[str]:
    """Edges between operators whose numbers are not those that the consumer read."""
    graph = cap.graph
    rows = iter(log.rows)
    by_node: dict[int, tuple[str, list[Any], list[Any]]] = {}
    for node in graph.nodes:
        # Questions about a tensor are in the log and not in the graph.
        row = next((row for row in rows if _same_op(row[0], node.op)), None)
        if row is None:
            return [f"{node.op} is not in an independent log"]
        by_node[node.index] = row
    found: list[str] = []
    for node in graph.nodes:
        read = by_node[node.index][1]
        shown = {digest for digest in map(_content, read) if digest is not None}
        read_of = Counter(value.storage.index for value in node.inputs if value is not None)
        for value in node.inputs:
            if value is not None and read_of[value.storage.index] > 1:
                continue  # parts of one memory, written one after the other
            producer = value.producer if value is not None else None
            if producer is None or producer.index not in by_node:
                continue
            made = by_node[producer.index][2]
            slots = [place for place, output in enumerate(producer.outputs) if output.index == value.index]
            if slots and slots[0] < len(made) and made[slots[0]] is not None and None not in read:
                digest = _content(made[slots[0]])
                if digest not in shown and not producer.op.endswith("_") and "_." not in producer.op:
                    found.append(f"{producer.op} -> {node.op}")
    return found


def _content(digest: Any) -> Any:
    return None if digest is None else json.dumps(digest[:2] + digest[3:] if len(digest) == 4 else digest)


def _same_op(logged: str, op: str) -> bool:
    return logged == op or logged.removesuffix(".default") == op


def said(cap: Any) -> dict[str, Any]:
    """What is wrong or missing in a capture, whatever was recorded."""
    graph = cap.graph
    links = graph.links_of("grad")
    linked = set(links.target.tolist()) | set(graph.links_of("recompute").target.tolist())
    backward = [node for node in graph.nodes if node.phase == "backward"]
    reasons = Counter(str(node.attrs.get("unpaired", "")) for node in backward if node.index not in linked)
    names = {value.index: value.name for value in graph.values}
    unnamed = [value for value in graph.values if value.producer is None and value.users and not names[value.index]]
    return {
        "nodes": graph.n_nodes,
        "backward": len(backward),
        "linked": sum(node.index in linked for node in backward),
        "silent": [node.op for node in backward if node.index not in linked and not node.attrs.get("unpaired")],
        "before": sum(count for reason, count in reasons.items() if "before the recording" in reason),
        "misled": sorted(set(misled(cap))),
        "unnamed": len(unnamed),
        "problems": list(capture_problems(cap))[:3],
        "warnings": list(cap.all_warnings()),
        "gaps": len(cap.stats().gaps),
    }


def misled(cap: Any) -> Iterator[str]:
    """Gradient functions that are linked to an operator with another name, although one of their own name ran."""
    graph = cap.graph
    links = graph.links_of("grad")
    forward = {_letters(node.op) for node in graph.nodes if node.phase == "forward"}
    for source, target in zip(links.source.tolist(), links.target.tolist(), strict=True):
        function = str(graph.node(target).attrs.get("autograd", ""))
        wanted = re.sub(r"backward\d*$", "", function.lower()).replace("_", "")
        op = graph.node(source).op
        if wanted in forward and _letters(op) != wanted:
            yield f"{function} -> {op}"


def _letters(op: str) -> str:
    return op.split(".")[1].replace("_", "").lower() if "." in op else op


# -- running -------------------------------------------------------------------------------------------------


class TooLong(BaseException):
    pass


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise TooLong(f"over {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def seed() -> None:
    import random

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def campaign(
    about: str | None, items: Callable[[], Sequence[str]], check: Callable[[str], dict[str, Any]], *, seconds: float
) -> None:
    """The command line of a campaign. `check` tells of one item: "verdict" is "faithful", "not run: …" or a fault."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="lines of JSON; what is in it is not run again")
    parser.add_argument("--slice", type=int, default=40, help="items in one process")
    parser.add_argument("--most", type=int, default=0, help="stop after so many items")
    parser.add_argument("--only", nargs="*", default=[], help="names of items")
    parser.add_argument("--again", action="store_true", help="run what failed once more")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.work:
        for name in options.work:
            _run(name, check, options.results, seconds)
        return
    done = _read(options.results)
    if options.again:
        done = {name: row for name, row in done.items() if row["verdict"] == "faithful"}
    todo = [name for name in (options.only or items()) if name not in done or options.only]
    todo = todo[: options.most] if options.most else todo
    while todo:
        part, todo = todo[: options.slice], todo[options.slice :]
        command = [sys.executable, *sys.argv[:1], "--results", str(options.results), "--work", *part]
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        if ended:  # the last one that began ended the process
            begun = next(name for name in reversed(part) if name in _read(options.results))
            todo = part[part.index(begun) + 1 :] + todo
    tell(_read(options.results))


def _run(name: str, check: Callable[[str], dict[str, Any]], results: Path, seconds: float) -> None:
    _write(results, {"name": name, "verdict": "ended the process"})
    try:
        with limit(seconds):
            row = check(name)
    except TooLong as error:
        row = {"verdict": f"not run: {error}"}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        row = {"verdict": f"{type(error).__name__}: {error}"[:300], "at": f"{Path(last.filename).name}:{last.lineno}"}
    _write(results, {"name": name, **row})


def _write(results: Path, row: dict[str, Any]) -> None:
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _read(results: Path) -> dict[str, dict[str, Any]]:
    if not results.exists():
        return {}
    rows = map(json.loads, results.read_text(encoding="utf-8").splitlines())
    return {row["name"]: row for row in rows}


def tell(rows: dict[str, dict[str, Any]]) -> None:
    not_run = {name: row for name, row in rows.items() if row["verdict"].startswith("not run")}
    faithful = [name for name, row in rows.items() if row["verdict"] == "faithful"]
    for name, row in sorted(rows.items()):
        if row["verdict"] != "faithful":
            print(f"{name}: {row['verdict']} {row.get('at', '')}")
    sums: Counter[str] = Counter()
    for row in rows.values():
        sums.update({key: value for key, value in row.items() if isinstance(value, int)})
    print(f"torch {torch.__version__}, opscope {opscope.__version__}; {dict(sums)}")
    print(f"{len(faithful)} of {len(rows) - len(not_run)} faithful; {len(not_run)} not run")
