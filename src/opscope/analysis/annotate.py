"""The one step that adds what can be computed about a capture: what operators cost, what is alive when, what changed.

`view`, `show`, notebooks, `save` and `export` all show or write an annotated capture, so a file that is dropped on a
page has the same figures as one that is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import ROLE_ID, Capture, Column, Graph, Table, column, frozen, gaps_of
from opscope.ir.facts import COSTS, KINDS, LIFETIMES, ORIGINS, PARAMETERS, SAVINGS, UTILIZATION, VALUES, WORK
from opscope.ops import family_of, kinds_of

from .costs.achieved import work_table
from .costs.memory import Memory, activations_by_node
from .costs.operators import CostTable
from .costs.parameters import Parameters, first_users
from .costs.stats import GraphStats
from .diff import with_changes
from .origins import Origin, origins
from .savings import savings, tables_of
from .times import measured_stages
from .utilization import utilization, utilization_table, work_at

Kind = TypeVar("Kind", bound=Capture)

# Comparing takes about a second for 100,000 operators: stages of larger graphs are not compared on the way.
MOST_COMPARED = 500_000
_COMPUTED = (COSTS.name, LIFETIMES.name, PARAMETERS.name, KINDS.name, SAVINGS.name, WORK.name, UTILIZATION.name)


def annotate(capture: Kind, *, costs: bool = True) -> Kind:
    """The capture with costs, lifetimes, parameters and kinds of every graph, and the changes of every stage.

    Nothing is written to the capture that is given. Figures that a file brought are computed again, so that they are
    what `opscope stats` says today; a stage that cannot be counted has none, and a warning says why.
    """
    found = with_changes(capture) if _comparable(capture) else capture
    return with_origins(with_costs(found) if costs else with_kinds(found))


def with_kinds(capture: Kind) -> Kind:
    """The capture with what its operators do, which a drawing needs: it costs next to nothing."""
    tables = {name: table for name, table in capture.tables.items() if table.fact != KINDS.name}
    named = replace(capture, tables=tables)
    for number, stage in enumerate(capture.stages):
        for table in _kinds(number, stage.graph, capture.origin.framework):
            named.add(table)
    return named


def _comparable(capture: Capture) -> bool:
    derived = any(stage.after is not None for stage in capture.stages)
    return derived and all(stage.graph.n_nodes <= MOST_COMPARED for stage in capture.stages)


def with_costs(capture: Kind) -> Kind:
    tables = {name: table for name, table in capture.tables.items() if table.fact not in _COMPUTED}
    counted = replace(capture, tables=tables, warnings=list(capture.warnings))
    seen: set[int] = set()
    measured = set(measured_stages(capture))
    kept: dict[int, GraphStats] = {}
    for number, stage in enumerate(capture.stages):
        if id(stage.graph) in seen:  # stages that do not differ share a graph, and what it costs
            continue
        seen.add(id(stage.graph))
        for table in _kinds(number, stage.graph, capture.origin.framework):
            counted.add(table)
        try:
            stats = GraphStats(stage.graph, capture.origin.framework, gaps=gaps_of(capture, number))
            found = _tables(number, stats)
        except OpscopeError as error:
            warning = f"no costs for {stage.name}: {error}"
            counted.warnings += [warning] if warning not in counted.warnings else []
            continue
        if number in measured:
            kept[number] = stats
        for table in found:
            counted.add(table)
    for table in _measured(capture, kept):
        counted.add(table)
    return counted


def _measured(capture: Capture, counted: dict[int, GraphStats]) -> Iterator[Table]:
    """What a measured run made of its device, and where time could be won."""
    for stage, stats in counted.items():
        if (work := work_at(capture, stage, counted=stats)) is not None and len(work):
            yield work_table(stage, work)
    if (used := utilization(capture, counted=counted)) is not None:
        yield utilization_table(used)
    yield from tables_of(savings(capture, counted=counted))


def with_origins(capture: Kind) -> Kind:
    """Where NaN and infinite numbers were born, of stages whose tensors were counted."""
    tables = {name: table for name, table in capture.tables.items() if table.fact != ORIGINS.name}
    found: list[Table] = []
    for number in range(len(capture.stages)):
        if any("nan" in table.columns for table in capture.facts(VALUES.name, number)):
            found += _origins(number, origins(capture, number))
    if not found and len(tables) == len(capture.tables):
        return capture
    told = replace(capture, tables=tables)
    for table in found:
        told.add(table)
    return told


def _origins(stage: int, found: list[Origin]) -> list[Table]:
    if not found:
        return []
    columns = {
        "node": column(np.array([one.node if one.node >= 0 else next(iter(one.story), -1) for one in found])),
        "value": column(np.array([one.value for one in found])),
        "kind": column([one.kind for one in found]),
        "what": column([one.op for one in found]),
        "forward": column(np.array([one.forward.node if one.forward is not None else -1 for one in found])),
        "spread": column(np.array([one.spread for one in found])),
        "story": column([one.story for one in found]),
    }
    return [Table(stage, "row", frozen(range(len(found))), columns, ORIGINS.name)]


def costs_alone(capture: Capture) -> Capture:
    """The facts that `with_costs` adds and nothing else, for a page that has the rest already: not a file to open."""
    tables = {name: table for name, table in with_costs(capture).tables.items() if table.fact in _COMPUTED}
    return Capture(tables=tables, origin=capture.origin)


def _kinds(stage: int, graph: Graph, framework: str) -> Iterator[Table]:
    for by, kinds in zip(("op", "node"), kinds_of(framework, graph), strict=True):
        if kinds:
            rows = sorted(kinds)
            named = [kinds[row] for row in rows]
            columns = {"kind": column(named), "family": column(np.array([family_of(kind) for kind in named]))}
            yield Table(stage, by, frozen(rows), columns, KINDS.name)


def _tables(stage: int, stats: GraphStats) -> list[Table]:
    graph = stats.graph
    return [
        Table(stage, "node", frozen(range(graph.n_nodes)), _costs(graph, stats.costs, stats.memory), COSTS.name),
        _memory(stage, stats.memory),
        _parameters(stage, graph, stats.costs, stats.parameters),
    ]


def _costs(graph: Graph, costs: CostTable, memory: Memory) -> dict[str, Column]:
    _, activation_bytes = activations_by_node(graph, memory)
    is_sized = np.ones(graph.n_nodes, dtype=bool)
    is_sized[graph.value_producer[memory.unknown_activations]] = False
    counted, sized = ~costs.unknown, costs.bytes_known
    # Most graphs have no causal attention, and then there is nothing to say.
    is_causal = bool((costs.causal != costs.macs).any()) or not bool(costs.causal_known.all())
    causal = {"causal": Column(costs.causal, counted & costs.causal_known, "MACs")} if is_causal else {}
    communicates = bool(costs.wire.any()) or not bool(costs.wire_known.all())
    wire = {"wire": Column(costs.wire, costs.wire_known, "B")} if communicates else {}
    return {
        "macs": Column(costs.macs, counted, "MACs"),
        **causal,
        "other": Column(costs.other, counted, "FLOPs"),
        "read": Column(costs.read, sized, "B"),
        "written": Column(costs.written, sized, "B"),
        **wire,
        "activations": Column(activation_bytes, is_sized, "B"),
        "how": column(costs.how),
        "at least": column(costs.lower),
    }


def _memory(stage: int, found: Memory) -> Table:
    there = np.flatnonzero(found.size > 0)
    columns = {
        "bytes": column(found.size[there], "B"),
        "class": column(found.cls[there]),
        "born": column(found.born[there]),
        "dies": column(found.dies[there]),
    }
    return Table(stage, "value", frozen(found.owner[there]), columns, LIFETIMES.name)


def _parameters(stage: int, graph: Graph, costs: CostTable, found: Parameters) -> Table:
    of_value = costs.storages.of_value
    owners = list(dict.fromkeys(of_value[graph.value_role == ROLE_ID["parameter"]].tolist()))
    each = found.each[: len(owners)]
    user = first_users(graph, of_value)[owners] if owners else np.zeros(0, dtype=np.int64)
    columns = {
        "elements": _known([p.elements for p in each], ""),
        "bytes": _known([p.bytes for p in each], "B"),
        "node": column(user),
    }
    return Table(stage, "value", frozen(owners), columns, PARAMETERS.name)


def _known(figures: list[int | None], unit: str) -> Column:
    values = np.array([figure or 0 for figure in figures], dtype=np.int64)
    return Column(values, np.array([figure is not None for figure in figures], dtype=bool), unit)
