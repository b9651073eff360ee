"""What a page is sent beside the capture: the cost of every operator, what is alive when, and a few devices.

These are tables of the copy that is shown; the user's capture and file stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from opscope.analysis.cost import CostTable
from opscope.analysis.devices import DEVICES, Device
from opscope.analysis.memory import CLASSES, Memory, activations_by_node
from opscope.analysis.parameters import Parameters
from opscope.analysis.sizes import Ints
from opscope.analysis.stats import GraphStats
from opscope.errors import OpscopeError
from opscope.ir import Capture, Column, Graph, Table, column
from opscope.ir.graph import PHASE_ID, ROLE_ID

_NAMES = ("opscope: cost", "opscope: memory", "opscope: parameters")


def with_costs(capture: Capture) -> Capture:
    """The same graphs with tables of what they cost. One that cannot be counted is shown without."""
    tables = dict(capture.tables)
    warnings = list(capture.warnings)
    seen: set[int] = set()
    for number, stage in enumerate(capture.stages):
        if id(stage.graph) in seen:  # stages that do not differ share a graph, and what it costs
            continue
        seen.add(id(stage.graph))
        try:
            found = _tables(number, GraphStats(stage.graph, capture.origin.framework))
        except OpscopeError as error:
            warnings.append(f"no costs for {stage.name}: {error}")
            continue
        for name, table in zip(_NAMES, found, strict=True):
            tables[f"{name} {number}"] = table
    return replace(capture, tables=tables, warnings=warnings)


def costs_alone(capture: Capture) -> Capture:
    """The tables of costs with nothing else, for a page that has the rest already: no reader takes that as a file."""
    known = set(capture.tables)
    tables = {name: table for name, table in with_costs(capture).tables.items() if name not in known}
    return Capture(tables=tables, origin=capture.origin)


def _tables(stage: int, stats: GraphStats) -> list[Table]:
    graph = stats.graph
    return [
        Table(stage, "node", _rows(graph.n_nodes), _costs(stats.graph, stats.costs, stats.memory)),
        _memory(stage, stats.memory),
        _parameters(stage, graph, stats.costs, stats.parameters),
    ]


def _costs(graph: Graph, costs: CostTable, memory: Memory) -> dict[str, Column]:
    _, activation_bytes = activations_by_node(graph, memory)
    counted, sized = ~costs.unknown, costs.bytes_known
    # Most graphs have no causal attention, and then there is nothing to say.
    is_causal = bool((costs.causal != costs.macs).any()) or not bool(costs.causal_known.all())
    causal = {"causal": Column(costs.causal, counted & costs.causal_known, "MACs")} if is_causal else {}
    return {
        "macs": Column(costs.macs, counted, "MACs"),
        **causal,
        "other": Column(costs.other, counted, "FLOPs"),
        "read": Column(costs.read, sized, "B"),
        "written": Column(costs.written, sized, "B"),
        "activations": column(activation_bytes, "B"),
        "how": column(costs.how),  # a place in ops.cost.HOW
        "at least": column(costs.lower),
    }


def _memory(stage: int, found: Memory) -> Table:
    """One row for every storage, by the value that owns it: its class (a place in CLASSES), and the nodes at which it
    is there first and last."""
    there = np.flatnonzero(found.size > 0)
    columns = {
        "bytes": column(found.size[there], "B"),
        "class": column(found.cls[there]),
        "born": column(found.born[there]),
        "dies": column(found.dies[there]),
    }
    assert len(CLASSES) == 8  # the page has a name and a colour for each
    return Table(stage, "value", found.owner[there].astype(np.int32), columns)


def _parameters(stage: int, graph: Graph, costs: CostTable, found: Parameters) -> Table:
    """One row for every parameter, by the value that owns it: its numbers, and the operator that uses it first (−1:
    none)."""
    of_value = costs.storages.of_value
    owners = list(dict.fromkeys(of_value[graph.value_role == ROLE_ID["parameter"]].tolist()))
    each = found.each[: len(owners)]
    user = _first_user(graph, of_value)[owners] if owners else np.zeros(0, dtype=np.int64)
    columns = {
        "elements": _known([p.elements for p in each], ""),
        "bytes": _known([p.bytes for p in each], "B"),
        "node": column(user),
    }
    return Table(stage, "value", np.array(owners, dtype=np.int32), columns)


def _first_user(graph: Graph, of_value: Ints) -> Ints:
    """By storage: the node whose module analysis.parameters counts it in."""
    read = np.flatnonzero(graph.use_value >= 0)
    node = graph.use_node[read]
    late = np.isin(graph.node_phase[node], [PHASE_ID["init"], PHASE_ID["optimizer"], PHASE_ID["backward"]])
    order = np.argsort(late, kind="stable")[::-1]
    first = np.full(graph.n_values, -1, dtype=np.int64)
    first[of_value[graph.use_value[read[order]]]] = node[order]
    return first


def _known(figures: list[int | None], unit: str) -> Column:
    values = np.array([figure or 0 for figure in figures], dtype=np.int64)
    return Column(values, np.array([figure is not None for figure in figures], dtype=bool), unit)


def _rows(count: int) -> Any:
    return np.arange(count, dtype=np.int32)


def devices() -> list[dict[str, Any]]:
    """For the roofline: what each device can do at most."""
    return [_device(device) for device in DEVICES.values()]


def _device(device: Device) -> dict[str, Any]:
    names = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8", "uint8", "qint8", "quint8")
    return {
        "name": device.name,
        "title": device.title,
        "peaks": {name: device.peak(name) for name in names},
        "other": device.other,
        "bandwidth": device.bandwidth,
        "memory": device.memory,
        "source": device.source,
    }
