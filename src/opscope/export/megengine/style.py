"""`opscope stats --style megengine`: three tables with bars, shares and running sums, for any framework.

By MegEngine's convention one multiply-accumulate is one operation, and element-wise operations are added to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from opscope.analysis.costs.stats import GraphStats
from opscope.ir import Graph, Node, Value
from opscope.ir.dtypes import bits_of
from opscope.ops import canonical

from .rows import ModuleStats, Row, TotalStats, activation_row, finished, param_row

_LONGEST_BAR = 20


def print_stats(stats: GraphStats, by: str = "module", *, as_json: bool = False) -> tuple[TotalStats, ModuleStats]:
    """Print the tables, or one JSON object; `by` says what the rows of the FLOPs are: module, op, kind or node."""
    total, details = finished(
        list(_params(stats)),
        _flops(stats, by),
        list(_activations(stats)),
        which=(True, True, True),
        bar_length_max=_LONGEST_BAR,
        logging=not as_json,
        has_input=False,
        ops=stats.graph.n_nodes,
    )
    if as_json:
        found = {"total": total._asdict(), **details._asdict()}
        if stats.unknown_ops or stats.gaps:
            found |= {key: figure for key, figure in stats.totals().items() if key in ("unknown_ops", "gaps")}
        print(json.dumps(found, ensure_ascii=False, indent=2, default=str))
        return total, details
    if stats.unknown_ops:
        print("not counted: " + ", ".join(f"{op} ×{count}" for op, count in stats.unknown_ops.items()))
    for gap in stats.gaps:
        print(f"not counted: {gap.sentence(stats.graph.pools)}")
    if stats.total.at_least:
        print("so the totals are lower bounds")
    return total, details


def _params(stats: GraphStats) -> Iterator[Row]:
    shapes = {value.name: value.type.shape for value in stats.graph.values if value.role == "parameter"}
    for parameter in stats.parameters.each:
        if parameter.elements is not None:
            shape = shapes.get(parameter.names[0]) if parameter.names else None
            name = parameter.names[0] if parameter.names else "parameter"
            yield _sized(param_row(name, parameter.dtype, (), parameter.elements, "", ""), shape, parameter.bytes)


def _sized(row: Row, shape: Any, size: int | None) -> Row:
    return {**row, "shape": tuple(shape or ()), "size": row["size"] if size is None else size}


def _flops(stats: GraphStats, by: str) -> list[Row]:
    graph, costs = stats.graph, stats.costs
    rows: dict[str, Row] = {}
    for index in np.flatnonzero((costs.macs + costs.other > 0) & ~costs.unknown).tolist():
        node = graph.node(index)
        key, class_name = _key(graph, node, stats.framework, by)
        row = rows.setdefault(
            key, {"name": key.split("\0")[0], "class_name": class_name, "input_shapes": _shapes(node.inputs)}
        )
        row["flops_num"] = row.get("flops_num", 0) + int(costs.macs[index]) + int(costs.other[index])
        row["output_shapes"] = _shapes(node.outputs[-1:])
    return list(rows.values())


def _key(graph: Graph, node: Node, framework: str, by: str) -> tuple[str, str]:
    if by == "op":
        return node.op, canonical(framework, node.op)
    if by == "kind":
        return canonical(framework, node.op), ""
    if by == "node" or not node.path:
        # Outside of all modules every operator stands for itself; names may repeat.
        return f"{node.name or node.op}\0{node.index}", node.op
    return node.path.replace("/", "."), node.scopes[-1].cls


def _shapes(values: Any) -> list[tuple[Any, ...]]:
    shapes = [value.type.shape for value in values if value is not None and value.role == "activation"]
    return [tuple(shape) for shape in shapes if shape is not None and all(isinstance(size, int) for size in shape)]


def _activations(stats: GraphStats) -> Iterator[Row]:
    """What operators make in memory: a view makes nothing."""
    graph, costs = stats.graph, stats.costs
    for index in np.flatnonzero(~costs.view).tolist():
        node = graph.node(index)
        for value in node.outputs:
            count, bits = value.type.elements, bits_of(value.type.dtype)
            if count and bits is not None and not costs.inside[value.index]:
                row = activation_row(_name(node, value), node.op, value.type.dtype, value.type.shape or (), count)  # type: ignore[arg-type]
                yield {**row, "nbits": bits, "size": -(-count * bits // 8)}


def _name(node: Node, value: Value) -> str:
    return value.name or node.name or f"{node.path.replace('/', '.')}.{node.op}".lstrip(".")
