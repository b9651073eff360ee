"""A part of a graph or a capture: some nodes, what they read, and everything that is known about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from .capture import Capture, Column, ColumnValues, Stage, StageLink, Table
from .check import verify
from .columns import Int8, Int32, frozen, frozen8
from .facts import FACTS, Field
from .graph import NULL, Body, Graph
from .relations import Groups, Links

Kind = TypeVar("Kind", bound=Capture)
Mask = npt.NDArray[np.bool_]


class Cut(NamedTuple):
    """A part of a graph, and where its rows went: the new number by the old one, −1 for what was left out."""

    graph: Graph
    nodes: Int32
    values: Int32
    groups: dict[str, Int32]


def cut_capture(capture: Kind, keep: Callable[[Graph], Mask]) -> Kind:
    """A capture with the nodes that `keep` marks. Stages without any are left out; links, groups, listings and tables
    keep what is about nodes that are still there."""
    cuts: dict[int, Cut] = {}  # by graph: stages that do not differ share one
    for stage in capture.stages:
        if id(stage.graph) not in cuts:
            cuts[id(stage.graph)] = cut(stage.graph, keep(stage.graph))
    by_stage = [cuts[id(stage.graph)] for stage in capture.stages]
    kept = [i for i, part in enumerate(by_stage) if part.graph.n_nodes]
    numbers = {old: new for new, old in enumerate(kept)}
    given = {field.name: getattr(capture, field.name) for field in fields(Capture)}
    given["stages"] = [_stage(capture.stages[i], by_stage[i], numbers) for i in kept]
    given["stage_links"] = [
        _stage_link(link, by_stage, numbers)
        for link in capture.stage_links
        if link.before in numbers and link.after in numbers
    ]
    given["tables"] = {
        name: moved
        for name, table in capture.tables.items()
        if table.stage in numbers and (moved := _table(table, capture, by_stage, numbers)) is not None
    }
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
    # What comes from outside and is never read, an argument that the model ignores, stays.
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
    """None of the results is left: what is never read is what comes out."""
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
    after = numbers.get(stage.after) if stage.after is not None else None
    return replace(stage, graph=part.graph, after=after)


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


def _table(table: Table, capture: Capture, parts: list[Cut], numbers: dict[int, int]) -> Table | None:
    before = capture.stages[table.stage].after
    if any(field.refers == "node before" for field in _fields(table)) and before not in numbers:
        return None  # it is about a stage that is not there any more
    part = parts[table.stage]
    kind, _, group = table.by.partition(":")
    moved = {"node": part.nodes, "value": part.values}.get(kind, part.groups.get(group))
    nodes = {"node": part.nodes, "node before": parts[before].nodes if before is not None else part.nodes}
    return replace(map_table(table, moved, nodes), stage=numbers[table.stage])


def map_table(table: Table, moved: Int32 | None, nodes: Mapping[str, Int32]) -> Table:
    """A table with new numbers: `moved` are those of its rows (None: they stay), `nodes` those that its columns refer
    to, each by the old number with −1 for what was left out. Rows that are about nothing any more go."""
    index = table.index if moved is None else _mapped(moved, table.index)
    columns = dict(table.columns)
    listed: list[Mask] = []
    for field in _fields(table):
        if field.refers and field.name in columns:
            columns[field.name] = found = _referring(columns[field.name], nodes[field.refers])
            if not isinstance(found.values, np.ndarray):
                listed.append(np.array([len(row) > 0 for row in found.values], dtype=bool))
    keep = index >= 0
    if listed:
        keep = keep & np.logical_or.reduce(listed)
    rows = np.flatnonzero(keep)
    columns = {
        name: replace(column, values=_rows(column.values, rows), known=column.known[rows])
        for name, column in columns.items()
    }
    index = np.arange(len(rows), dtype=np.int32) if table.by == "row" else index[rows]
    return replace(table, index=frozen(index), columns=columns)


def _fields(table: Table) -> tuple[Field, ...]:
    return FACTS[table.fact].fields if table.fact in FACTS else ()


def _referring(column: Column, nodes: Int32) -> Column:
    """A column of node numbers with the new ones. One number that is gone is not known; of a list, the rest stays."""
    # What lives to the end of the program names the node after the last one, then as before.
    ends = np.append(nodes, [np.count_nonzero(nodes >= 0), NULL])
    if isinstance(column.values, np.ndarray):
        old = np.clip(column.values.astype(np.int64), NULL, len(nodes))
        new = ends[old]
        return replace(column, values=new, known=column.known & ((new >= 0) | (old < 0)))
    lists = cast("Sequence[Sequence[int]]", column.values)
    return replace(column, values=[[int(nodes[old]) for old in row if nodes[old] >= 0] for row in lists])


def _rows(values: ColumnValues, rows: npt.NDArray[np.intp]) -> ColumnValues:
    if isinstance(values, np.ndarray):
        return values[rows]
    listed: list[Any] = list(values)
    return [listed[row] for row in rows.tolist()]
