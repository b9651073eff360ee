"""The profile that ONNX Runtime writes (`SessionOptions.enable_profiling`), as times of the model that it ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Capture, column
from opscope.ir.measurements import coverage_table, times_table
from opscope.readers import json_text
from opscope.readers.source import Source

_KERNEL = "_kernel_time"
_LONGEST = 1e15  # microseconds


class _Runs(NamedTuple):
    op: str
    provider: str
    microseconds: list[float]


def times(capture: Capture, path: Path) -> None:
    """Adds what every operator took, found by its name. What has no place is listed with the reason."""
    found = _read(path)
    graph = capture.stages[0].graph
    strings = graph.pools.strings
    by_name: dict[str, int] = {}
    for node in range(graph.n_nodes):
        by_name.setdefault(strings[int(graph.node_name[node])], node)
    by_name.pop("", None)
    placed = {by_name[name]: runs for name, runs in found.items() if name in by_name}
    placed = {
        node: runs
        for node, runs in placed.items()
        if runs.op in ("", strings[int(graph.node_op[node])].rpartition(".")[2])
    }
    if not placed:
        raise BadInput(
            f"{path}: a profile of another model: none of its {len(found):,} operators is in the graph. ONNX "
            "Runtime runs an optimized model: save that (SessionOptions.optimized_model_filepath) and open it with this"
        )
    nodes = sorted(placed)
    rows = [placed[node].microseconds for node in nodes]
    more = {
        "least": column(np.array([min(row) for row in rows]) * 1e3, "ns"),
        "most": column(np.array([max(row) for row in rows]) * 1e3, "ns"),
        "runs": column(np.array([len(row) for row in rows], dtype=np.int64)),
    }
    capture.add(times_table(0, "node", nodes, np.array([sum(row) / len(row) for row in rows]) * 1e3, more=more))
    capture.add(_coverage(capture, found, placed))
    lost = [name for name, runs in found.items() if runs not in placed.values()]
    if lost:
        capture.warnings.append(
            f"{len(lost):,} of {len(found):,} operators of the profile are not in this model ({', '.join(lost[:3])}): "
            "ONNX Runtime runs an optimized model, which SessionOptions.optimized_model_filepath saves"
        )


def _coverage(capture: Capture, found: dict[str, _Runs], placed: dict[int, _Runs]) -> Any:
    graph = capture.stages[0].graph
    rows: dict[tuple[str, str, str], list[float]] = {}
    nodes = {id(runs): node for node, runs in placed.items()}
    for name, runs in found.items():
        node = nodes.get(id(runs))
        key = ("by name", "", "") if node is not None else ("", name, "its operator is not in the model")
        row = rows.setdefault(key, [0, 0.0, 0, 0])
        row[0] += 1
        row[1] += sum(runs.microseconds) / len(runs.microseconds) * 1e-6
        if node is not None:
            row[2] += bool(graph.node_scope[node])
            row[3] += bool(graph.node_stack[node])
    return coverage_table(rows)


def _read(path: Path) -> dict[str, _Runs]:
    """Operator -> its runs."""
    source = Source.of(path).unpacked()
    parsed = json_text.parse(source.read(json_text.LARGEST))
    events = cast("dict[str, Any]", parsed).get("traceEvents") if isinstance(parsed, dict) else parsed
    found: dict[str, _Runs] = {}
    for event in cast("list[Any]", events) if isinstance(events, list) else []:
        if not isinstance(event, dict) or event.get("cat") != "Node":
            continue
        entry = cast("dict[str, Any]", event)
        name, took, args = entry.get("name"), entry.get("dur"), entry.get("args")
        if not isinstance(name, str) or not name.endswith(_KERNEL) or not isinstance(took, int | float):
            continue
        if isinstance(took, bool) or not 0 <= took < _LONGEST:
            continue
        told = cast("dict[str, Any]", args) if isinstance(args, dict) else {}
        runs = found.setdefault(
            name.removesuffix(_KERNEL), _Runs(str(told.get("op_name", "")), str(told.get("provider", "")), [])
        )
        runs.microseconds.append(float(took))
    if not found:
        raise BadInput(
            f"{path}: not a profile of ONNX Runtime: no operator has a time in it. To write one: "
            "SessionOptions.enable_profiling = True, and end_profiling() at the end"
        )
    return found
