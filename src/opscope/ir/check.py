"""verify(graph): every invariant of a graph and of a capture, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError

from .capture import Capture, Column, Table
from .columns import Int32
from .enumerations import EVIDENCE, PHASES, ROLES, STAGE_LINK_KINDS
from .facts import BY, FACTS, TIME_UNITS, Fact, Field
from .graph import COLUMNS, Body, Graph
from .pools import Pools
from .relations import Groups

_SHOWN = 5  # this many problems go into one error message


class InvalidGraph(OpscopeError):
    """A graph or capture that breaks an invariant; says which."""


def verify(graph: Graph) -> None:
    _raise_on(list(problems(graph)))


def verify_capture(capture: Capture) -> None:
    _raise_on(list(capture_problems(capture)))


def _raise_on(found: list[str]) -> None:
    if found:
        more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
        raise InvalidGraph("not a valid graph: " + "; ".join(found[:_SHOWN]) + more)


def problems(graph: Graph) -> Iterator[str]:
    """Every invariant that does not hold. The checks are on whole columns: a million nodes take 50 ms."""
    yield from _lengths(graph)
    pools, n_nodes, n_values = graph.pools, graph.n_nodes, graph.n_values
    strings = len(pools.strings)
    yield from _range("op of node", graph.node_op, 0, strings)
    yield from _range("name of node", graph.node_name, 0, strings)
    yield from _range("scope of node", graph.node_scope, 0, len(pools.scopes))
    yield from _range("stack of node", graph.node_stack, 0, len(pools.stacks))
    yield from _range("attributes of node", graph.node_attrs, 0, len(pools.attr_texts))
    yield from _range("phase of node", graph.node_phase, 0, len(PHASES))
    yield from _starts("the uses", graph.use_start, len(graph.use_value))
    yield from _range("value of use", graph.use_value, -1, n_values)
    yield from _range("argument of use", graph.use_arg, 0, strings)
    yield from _range("type of value", graph.value_type, 0, len(pools.types))
    yield from _range("name of value", graph.value_name, 0, strings)
    yield from _range("role of value", graph.value_role, 0, len(ROLES))
    yield from _producers(graph)
    yield from _storages(graph)
    yield from _range("graph input", graph.inputs, 0, n_values)
    yield from _range("graph output", graph.outputs, 0, n_values)
    yield from _inputs(graph)
    for kind, links in graph.links.items():
        if len(links.source) != len(links.target):
            yield f"{kind} links: {len(links.source)} sources but {len(links.target)} targets"
        yield from _range(f"source of {kind} link", links.source, 0, n_nodes)
        yield from _range(f"target of {kind} link", links.target, 0, n_nodes)
    for groups in graph.groups.values():
        yield from _groups(groups, pools, n_nodes)
    for body in graph.bodies:
        yield from _body(body, graph)


def _lengths(graph: Graph) -> Iterator[str]:
    for prefix, count in (("node_", graph.n_nodes), ("value_", graph.n_values)):
        for name in COLUMNS:
            column = getattr(graph, name)
            if name.startswith(prefix) and len(column) != count:
                yield f"column {name} has {len(column)} rows instead of {count}"
    if len(graph.use_arg) != len(graph.use_value):
        yield f"column use_arg has {len(graph.use_arg)} rows instead of {len(graph.use_value)}"
    if len(graph.use_start) != graph.n_nodes + 1:
        yield f"column use_start has {len(graph.use_start)} rows instead of {graph.n_nodes + 1}"


def _range(what: str, column: npt.NDArray[Any], low: int, high: int) -> Iterator[str]:
    """All entries are at least `low` and below `high`."""
    if len(column) and (column.min() < low or column.max() >= high):
        at = int(np.flatnonzero((column < low) | (column >= high))[0])
        yield f"{what} {at} is {column[at]}, outside {low} to {high - 1}"


def _starts(what: str, start: npt.NDArray[Any], count: int) -> Iterator[str]:
    if len(start) == 0 or start[0] != 0 or start[-1] != count or (np.diff(start) < 0).any():
        yield f"the start column of {what} does not rise from 0 to {count}"


def _producers(graph: Graph) -> Iterator[str]:
    """A node makes its outputs in the slots 0, 1, 2 …, each once."""
    producer, slot = graph.value_producer, graph.value_slot
    found = [*_range("producer of value", producer, -1, graph.n_nodes)]
    yield from found
    if found or len(slot) != len(producer):
        return
    loose = np.flatnonzero((producer < 0) & (slot != 0))
    if len(loose):
        yield f"value {loose[0]} has no producer but output slot {slot[loose[0]]}"
    made = np.flatnonzero(producer >= 0)
    wrong = _first_out_of_turn(producer[made], slot[made])
    if wrong is not None:  # perhaps only the order of the rows: most builders make values in node order
        made = made[np.lexsort((slot[made], producer[made]))]
        wrong = _first_out_of_turn(producer[made], slot[made])
    if wrong is not None:
        at = made[wrong]
        yield f"value {at} has output slot {slot[at]}: the outputs of node {producer[at]} do not number 0, 1, 2 …"


def _first_out_of_turn(makers: Int32, slots: Int32) -> int | None:
    """The first row that does not go on counting where the row before it was."""
    first = np.ones(len(makers), dtype=bool)
    first[1:] = makers[1:] != makers[:-1]
    follows = np.diff(slots, prepend=0) == 1
    turn: npt.NDArray[np.bool_] = (first & (slots == 0)) | (~first & follows)
    turn[1:] &= makers[1:] >= makers[:-1]
    return None if turn.all() else int(np.argmin(turn))


def _storages(graph: Graph) -> Iterator[str]:
    found = [*_range("storage of value", graph.value_storage, 0, graph.n_values)]
    yield from found
    if not found:
        wrong = np.flatnonzero(graph.value_storage[graph.value_storage] != graph.value_storage)
        if len(wrong):
            owner = graph.value_storage[wrong[0]]
            yield f"value {wrong[0]} has the storage of value {owner}, which does not own one itself"


def _inputs(graph: Graph) -> Iterator[str]:
    inside = graph.inputs[(graph.inputs >= 0) & (graph.inputs < min(graph.n_values, len(graph.value_producer)))]
    made = inside[graph.value_producer[inside] >= 0]
    if len(made):
        yield f"graph input {made[0]} is made by node {graph.value_producer[made[0]]}: an input comes from outside"
    if len(np.unique(inside)) != len(inside):
        yield "a value is listed twice among the graph inputs"


def _groups(groups: Groups, pools: Pools, n_nodes: int) -> Iterator[str]:
    kind, count = groups.kind, len(groups)
    if len(groups.code) != count or len(groups.attrs) != count or len(groups.start) != count + 1:
        yield f"{kind} groups: the columns have different lengths"
        return
    yield from _range(f"name of {kind} group", groups.name, 0, len(pools.strings))
    yield from _range(f"code of {kind} group", groups.code, 0, len(pools.strings))
    yield from _range(f"attributes of {kind} group", groups.attrs, 0, len(pools.attr_texts))
    yield from _starts(f"the {kind} groups", groups.start, len(groups.member))
    yield from _range(f"member of {kind} group", groups.member, 0, n_nodes)


def _body(body: Body, graph: Graph) -> Iterator[str]:
    if not 0 <= body.node < graph.n_nodes:
        yield f"body {body.label!r} belongs to node {body.node}, outside 0 to {graph.n_nodes - 1}"
    if body.graph.pools is not graph.pools:
        yield f"body {body.label!r} of node {body.node} has other pools than its graph"
        return
    for inside, outside in body.bindings:
        if not 0 <= inside < body.graph.n_values or not 0 <= outside < graph.n_values:
            yield f"body {body.label!r} of node {body.node} binds value {inside} to {outside}, which do not both exist"
    for problem in problems(body.graph):
        yield f"in body {body.label!r} of node {body.node}: {problem}"


def pool_problems(pools: Pools) -> Iterator[str]:
    """Trees are written parents first, and point at entries that exist."""
    for i, scope in enumerate(pools.scopes):
        if not (scope.parent == -1 if i == 0 else 0 <= scope.parent < i):
            yield f"scope {i} has the parent {scope.parent}, which does not come before it"
    for i, stack in enumerate(pools.stacks):
        if not (stack.parent == -1 if i == 0 else 0 <= stack.parent < i):
            yield f"stack {i} has the parent {stack.parent}, which does not come before it"
        if not 0 <= stack.frame < len(pools.frames):
            yield f"stack {i} has the frame {stack.frame}, outside 0 to {len(pools.frames) - 1}"


def capture_problems(capture: Capture) -> Iterator[str]:
    """Invariants of the whole capture: its pools, its graphs, its stages and tables."""
    yield from pool_problems(capture.pools)
    names = [stage.name for stage in capture.stages]
    if len(set(names)) != len(names):
        yield "two stages have the same name"
    seen: set[int] = set()
    for i, stage in enumerate(capture.stages):
        if stage.after is not None and not 0 <= stage.after < i:
            yield f"stage {i} ({stage.name}) comes after stage {stage.after}, which is not before it"
        if stage.graph.pools is not capture.pools:
            yield f"stage {i} ({stage.name}) has other pools than its capture"
        elif id(stage.graph) not in seen:
            seen.add(id(stage.graph))
            for problem in problems(stage.graph):
                yield f"stage {i} ({stage.name}): {problem}"
    for link in capture.stage_links:
        if not (0 <= link.before < len(names) and 0 <= link.after < len(names)):
            yield f"a stage link joins the stages {link.before} and {link.after}, which do not both exist"
            continue
        if link.kind not in STAGE_LINK_KINDS or link.evidence not in EVIDENCE:
            yield f"a stage link has the kind {link.kind!r} and the evidence {link.evidence!r}"
        yield from _range("first node of stage link", link.source, 0, capture.stages[link.before].graph.n_nodes)
        yield from _range("second node of stage link", link.target, 0, capture.stages[link.after].graph.n_nodes)
        if len(link.source) != len(link.target):
            yield "a stage link has columns of different lengths"
    for name, table in capture.tables.items():
        yield from _table(name, table, capture)


def _table(name: str, table: Table, capture: Capture) -> Iterator[str]:
    if not 0 <= table.stage < len(capture.stages):
        yield f"table {name!r} belongs to stage {table.stage}, which does not exist"
        return
    graph = capture.stages[table.stage].graph
    kind, _, group = table.by.partition(":")
    if kind not in BY or (kind == "group" and group not in graph.groups):
        yield f"table {name!r} is by {table.by!r}, which its stage does not have"
        return
    rows = {
        "node": graph.n_nodes,
        "value": graph.n_values,
        "scope": len(graph.pools.scopes),
        "group": len(graph.groups[group]) if kind == "group" else 0,
        "op": len(graph.pools.strings),
        "row": len(table.index),
    }[kind]
    yield from _range(f"row of table {name!r}: {kind}", table.index, 0, rows)
    for label, column in table.columns.items():
        if len(column.values) != len(table.index) or len(column.known) != len(table.index):
            yield f"table {name!r}: column {label!r} has {len(column.values)} rows instead of {len(table.index)}"
    if table.fact in FACTS:  # a newer opscope may know others
        yield from _fact(name, table, FACTS[table.fact], capture)


def _fact(name: str, table: Table, fact: Fact, capture: Capture) -> Iterator[str]:
    """A fact has the columns that its declaration says, and points at what exists."""
    if table.by not in fact.by:
        yield f"table {name!r}: {fact.name} are by {' or '.join(fact.by)}, not by {table.by}"
    for field in fact.fields:
        column = table.columns.get(field.name)
        if column is None:
            if not field.optional:
                yield f"table {name!r}: {fact.name} have a column {field.name!r}, which is missing"
            continue
        if field.unit == "time" and column.unit not in TIME_UNITS:
            units = ", ".join(TIME_UNITS)
            yield f"table {name!r}: column {field.name!r} has the unit {column.unit!r}, not one of {units}"
        if field.unit not in ("", "time", column.unit):
            yield f"table {name!r}: column {field.name!r} has the unit {column.unit!r}, not {field.unit!r}"
        if len(column.values) != len(table.index):
            continue  # said above
        if len(column.values) and (holds := _holds(column)) != field.holds:
            yield f"table {name!r}: column {field.name!r} holds {holds}, not {field.holds}"
            continue
        if field.least is not None:
            known = np.asarray(column.values)[column.known]
            if len(known) and known.min() < field.least:
                yield f"table {name!r}: column {field.name!r} holds {known.min()}, less than {field.least}"
        if field.refers:
            yield from _references(f"table {name!r}: column {field.name!r}", table, column, field, capture)
        elif field.members:
            values = column.values
            numbers = np.asarray(values)[column.known] if isinstance(values, np.ndarray) else _flat(values)
            yield from _range(f"table {name!r}: row of column {field.name!r}", numbers, 0, len(field.members))


def _holds(column: Column) -> str:
    """What is in the rows of a column, in the words of `facts.Field.holds`."""
    if isinstance(column.values, np.ndarray):
        return "numbers" if column.values.dtype.kind in "biuf" else "text"
    return "text" if isinstance(column.values[0], str) else "lists"


def _references(what: str, table: Table, column: Column, field: Field, capture: Capture) -> Iterator[str]:
    stage: int | None = table.stage
    if field.refers == "node before":
        stage = capture.stages[table.stage].after
        if stage is None:
            yield f"{what} names nodes of the stage before, and there is none"
            return
    values = column.values
    numbers = np.asarray(values)[column.known] if isinstance(values, np.ndarray) else _flat(values)
    # -1 is "none"; what lives to the end of the program may name the node after the last one.
    yield from _range(f"{what}: node", numbers, -1, capture.stages[stage].graph.n_nodes + 1)


def _flat(rows: Sequence[Any]) -> npt.NDArray[np.int64]:
    return np.array([number for row in rows for number in row], dtype=np.int64)
