"""Only some phases of a capture: a training step without its backward pass, or nothing but the optimizer."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import PHASES, Body, Capture, Graph, Stage, StageLink, Table, verify
from opscope.ir.capture import ColumnValues
from opscope.ir.columns import Int8, Int32, frozen, frozen8
from opscope.ir.graph import NULL, PHASE_ID
from opscope.ir.relations import Groups, Links

from .summary import phase_counts

Kind = TypeVar("Kind", bound=Capture)
Mask = npt.NDArray[np.bool_]


class Cut(NamedTuple):
    """A part of a graph, and where its rows went: the new number by the old one, −1 for what was left out."""

    graph: Graph
    nodes: Int32
    values: Int32
    groups: dict[str, Int32]


def only_phases(capture: Kind, phases: Collection[str]) -> Kind:
    """A capture with the operators of these phases. What they read from others comes from outside; links, groups
    and tables keep what is about operators that are still there. Stages without any are left out."""
    unknown = [phase for phase in phases if phase not in PHASES]
    if unknown:
        raise OpscopeError(f"{unknown[0]!r} is not a phase (there are: {', '.join(PHASES)})")
    wanted = np.array([PHASE_ID[phase] for phase in phases], dtype=np.int8)
    cuts: dict[int, Cut] = {}  # by graph: stages that do not differ share one
    for stage in capture.stages:
        if id(stage.graph) not in cuts:
            cuts[id(stage.graph)] = cut(stage.graph, np.isin(stage.graph.node_phase, wanted))
    kept = [i for i, stage in enumerate(capture.stages) if cuts[id(stage.graph)].graph.n_nodes]
    before = sum(stage.graph.n_nodes for stage in capture.stages)
    if not kept:
        there = sorted({phase for stage in capture.stages for phase in phase_counts(stage.graph)}, key=PHASES.index)
        raise OpscopeError(
            f"no operator is in the phase {' or '.join(phases)} (there are: {', '.join(there) or 'no operators'})"
        )
    numbers = {old: new for new, old in enumerate(kept)}
    by_stage = [cuts[id(stage.graph)] for stage in capture.stages]
    stages = [_stage(capture.stages[i], by_stage[i], numbers) for i in kept]
    after = sum(stage.graph.n_nodes for stage in stages)
    given = {field.name: getattr(capture, field.name) for field in fields(Capture)}
    given["stages"] = stages
    given["stage_links"] = [
        _stage_link(link, by_stage, numbers)
        for link in capture.stage_links
        if link.before in numbers and link.after in numbers
    ]
    given["tables"] = {
        name: _table(table, by_stage[table.stage], numbers)
        for name, table in capture.tables.items()
        if table.stage in numbers
    }
    words = f"only {', '.join(phases)}: {before - after:,} of {before:,} operators, of other phases, were left out"
    given["warnings"] = [*capture.warnings, words]
    return type(capture)(**given)


def cut(graph: Graph, keep: Mask) -> Cut:
    """The part of a graph with these nodes."""
    use_kept = keep[graph.use_node]
    bodies = [body for body in graph.bodies if keep[body.node]]
    made: Mask = np.zeros(graph.n_values, dtype=bool)
    has_maker: Mask = graph.value_producer >= 0
    made[has_maker] = keep[graph.value_producer[has_maker]]
    value_kept: Mask = np.array(made)
    read = graph.use_value[use_kept]
    value_kept[read[read >= 0]] = True
    value_kept[[outside for body in bodies for _, outside in body.bindings if outside >= 0]] = True
    # What comes from outside and is read by nobody at all, an argument that the model ignores, stays.
    used: Mask = np.zeros(graph.n_values, dtype=bool)
    used[graph.use_value[graph.use_value >= 0]] = True
    value_kept |= ~has_maker & ~used

    nodes, values = _numbers(keep), _numbers(value_kept)
    counts = np.zeros(int(keep.sum()) + 1, dtype=np.int32)
    np.cumsum(np.diff(graph.use_start)[keep], out=counts[1:])
    producer = np.where(made, _mapped(nodes, graph.value_producer), NULL)[value_kept]
    outputs = _mapped(values, graph.outputs)
    groups = {kind: _groups(found, keep, nodes) for kind, found in graph.groups.items()}
    part = Graph(
        pools=graph.pools,
        node_op=frozen(graph.node_op[keep]),
        node_name=frozen(graph.node_name[keep]),
        node_scope=frozen(graph.node_scope[keep]),
        node_stack=frozen(graph.node_stack[keep]),
        node_attrs=frozen(graph.node_attrs[keep]),
        node_phase=_frozen8(graph.node_phase[keep]),
        use_start=frozen(counts),
        use_value=frozen(_mapped(values, read)),
        use_arg=frozen(graph.use_arg[use_kept]),
        value_producer=frozen(producer),
        value_slot=frozen(np.where(made, graph.value_slot, 0)[value_kept]),
        value_type=frozen(graph.value_type[value_kept]),
        value_name=frozen(graph.value_name[value_kept]),
        value_role=_frozen8(graph.value_role[value_kept]),
        value_storage=_storages(graph, value_kept, values),
        inputs=frozen(_kept(_mapped(values, graph.inputs))),
        outputs=frozen(_kept(outputs)) if len(_kept(outputs)) else _loose_ends(producer, _mapped(values, read)),
        links=MappingProxyType(
            {kind: found for kind, links in graph.links.items() if len(found := _links(links, nodes))}
        ),
        groups=MappingProxyType({kind: found for kind, (found, _) in groups.items() if len(found)}),
        bodies=tuple(_body(body, nodes, values) for body in bodies),
    )
    verify(part)
    return Cut(part, nodes, values, {kind: numbers for kind, (_, numbers) in groups.items()})


def _numbers(keep: Mask) -> Int32:
    """The new number of each row, or −1."""
    return frozen(np.where(keep, np.cumsum(keep) - 1, NULL))


def _mapped(numbers: Int32, old: Int32) -> Int32:
    """New numbers for old ones; −1 stays −1."""
    return frozen(np.append(numbers, NULL)[old])


def _kept(numbers: Int32) -> Int32:
    return frozen(numbers[numbers >= 0])


def _frozen8(column: Int8) -> Int8:
    return frozen8(np.ascontiguousarray(column))


def _storages(graph: Graph, keep: Mask, values: Int32) -> Int32:
    """The owner of each value's memory; where it was left out, the first one that is left has it."""
    owners: dict[int, int] = {}
    new: list[int] = []
    for old in graph.value_storage[keep].tolist():
        owner = int(values[old])
        new.append(owner if owner >= 0 else owners.setdefault(old, len(new)))
    return frozen(new)


def _loose_ends(producer: Int32, read: Int32) -> Int32:
    """None of the results is left: what nobody reads is what comes out."""
    unread = producer >= 0
    unread[read[read >= 0]] = False
    return frozen(np.flatnonzero(unread))


def _links(links: Links, nodes: Int32) -> Links:
    source, target = _mapped(nodes, links.source), _mapped(nodes, links.target)
    both = (source >= 0) & (target >= 0)
    return Links(links.kind, frozen(source[both]), frozen(target[both]))


def _groups(groups: Groups, keep: Mask, nodes: Int32) -> tuple[Groups, Int32]:
    """The groups that still have members, and their new numbers."""
    inside = keep[groups.member]
    owner = np.repeat(np.arange(len(groups)), np.diff(groups.start))
    sizes = np.bincount(owner[inside], minlength=len(groups))
    left = sizes > 0
    start = np.zeros(int(left.sum()) + 1, dtype=np.int32)
    np.cumsum(sizes[left], out=start[1:])
    found = Groups(
        groups.kind,
        name=frozen(groups.name[left]),
        code=frozen(groups.code[left]),
        attrs=frozen(groups.attrs[left]),
        start=frozen(start),
        member=frozen(_mapped(nodes, groups.member[inside])),
    )
    return found, _numbers(left)


def _body(body: Body, nodes: Int32, values: Int32) -> Body:
    bindings = tuple((inside, int(values[outside]) if outside >= 0 else outside) for inside, outside in body.bindings)
    return Body(int(nodes[body.node]), body.label, body.graph, bindings)


def _stage(stage: Stage, part: Cut, numbers: dict[int, int]) -> Stage:
    listings = {
        kind: _lines(text, part.nodes) if kind.endswith(".nodes") else text for kind, text in stage.listings.items()
    }
    after = numbers.get(stage.after) if stage.after is not None else None
    return replace(stage, graph=part.graph, after=after, listings=listings)


def _lines(text: str, nodes: Int32) -> str:
    """Which line of a listing is which node."""
    rows: list[tuple[int, int]] = json.loads(text)
    return json.dumps([[line, int(nodes[node])] for line, node in rows if nodes[node] >= 0], separators=(",", ":"))


def _stage_link(link: StageLink, parts: list[Cut], numbers: dict[int, int]) -> StageLink:
    source = _mapped(parts[link.before].nodes, link.source)
    target = _mapped(parts[link.after].nodes, link.target)
    both = (source >= 0) & (target >= 0)
    return replace(
        link,
        before=numbers[link.before],
        after=numbers[link.after],
        source=frozen(source[both]),
        target=frozen(target[both]),
    )


def _table(table: Table, part: Cut, numbers: dict[int, int]) -> Table:
    kind, _, group = table.by.partition(":")
    moved = {"node": part.nodes, "value": part.values}.get(kind, part.groups.get(group))
    index = table.index if moved is None else _mapped(moved, table.index)
    rows = np.flatnonzero(index >= 0)
    columns = {
        name: replace(column, values=_rows(column.values, rows), known=column.known[rows])
        for name, column in table.columns.items()
    }
    return replace(table, stage=numbers[table.stage], index=frozen(index[rows]), columns=columns)


def _rows(values: ColumnValues, rows: npt.NDArray[np.intp]) -> ColumnValues:
    if isinstance(values, np.ndarray):
        return values[rows]
    listed: list[Any] = list(values)
    return [listed[row] for row in rows.tolist()]
