"""A capture as flat tables that other tools read: names spelled out, one row per node, value, use …

Columns are numpy arrays or `Coded` text (small integers into a list of distinct strings), so that the
same table becomes Arrow, Parquet or pandas without being built three times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import PHASES, ROLES, Capture, Graph, dtypes
from opscope.ir.columns import Int32
from opscope.wire.arrow import to_array

if TYPE_CHECKING:
    import arro3.core as ac


class Coded(NamedTuple):
    """Text by number: row i is texts[codes[i]]."""

    codes: Int32
    texts: Sequence[str]


class Lists(NamedTuple):
    """A list of numbers in each row; None where it is not known."""

    rows: Sequence[Sequence[float] | None]


class Masked(NamedTuple):
    """Figures of which some are not known."""

    values: npt.NDArray[Any] | Sequence[str]
    known: npt.NDArray[np.bool_]


Frame = Mapping[str, "npt.NDArray[Any] | Coded | Lists | Masked"]


def names(capture: Capture) -> list[str]:
    """The tables that a capture has."""
    return [*_TABLES, *capture.tables]


def frame(capture: Capture, table: str, stage: str | None = None) -> Frame:
    """One table of one stage (the first, unless named)."""
    make = _TABLES.get(table)
    if make is None and table in capture.tables:
        return _stored(capture, table)
    if make is None:
        raise OpscopeError(f"no table {table!r} in this capture (there are: {', '.join(names(capture))})")
    return make(capture.stage(stage).graph)


def of_graph(table: str, graph: Graph) -> Frame:
    """One of the tables that every graph has."""
    return _TABLES[table](graph)


# -- the tables -----------------------------------------------------------------------------------


def _nodes(graph: Graph) -> Frame:
    pools = graph.pools
    frames = [pools.frames[stack.frame] for stack in pools.stacks]  # the innermost; the empty stack has the empty one
    return {
        "node": _rows(graph.n_nodes),
        "op": _strings(graph, graph.node_op),
        "name": _strings(graph, graph.node_name),
        "phase": Coded(graph.node_phase.astype(np.int32), PHASES),
        "scope": Coded(graph.node_scope, pools.scope_paths()),
        "class": Coded(graph.node_scope, [scope.cls for scope in pools.scopes]),
        "attrs": Coded(graph.node_attrs, pools.attr_texts.rows()),
        "file": Coded(graph.node_stack, [frame.file for frame in frames]),
        "line": np.array([frame.line for frame in frames], dtype=np.int32)[graph.node_stack],
        "function": Coded(graph.node_stack, [frame.function for frame in frames]),
    }


def _values(graph: Graph) -> Frame:
    types = list(graph.pools.types)
    elements = [t.elements for t in types]
    count = np.array([-1 if e is None else min(e, 2**62) for e in elements], dtype=np.int64)[graph.value_type]
    sizes = [None if e is None else dtypes.bytes_of(t.dtype, e) for t, e in zip(types, elements, strict=True)]
    size = np.array([-1 if s is None else min(s, 2**62) for s in sizes], dtype=np.int64)[graph.value_type]
    return {
        "value": _rows(graph.n_values),
        "name": _strings(graph, graph.value_name),
        "role": Coded(graph.value_role.astype(np.int32), ROLES),
        "dtype": Coded(graph.value_type, [t.dtype for t in types]),
        "shape": Coded(graph.value_type, [str(t).partition("[")[2][:-1] if t.shape is not None else "" for t in types]),
        "elements": Masked(count, count >= 0),
        "bytes": Masked(size, size >= 0),
        "producer": Masked(graph.value_producer, graph.value_producer >= 0),
        "slot": graph.value_slot,
        "storage": graph.value_storage,
    }


def _uses(graph: Graph) -> Frame:
    if (graph.use_value >= 0).all():
        return {"node": graph.use_node, "value": graph.use_value, "arg": _strings(graph, graph.use_arg)}
    known = graph.use_value >= 0
    return {"node": graph.use_node, "value": Masked(graph.use_value, known), "arg": _strings(graph, graph.use_arg)}


def _scopes(graph: Graph) -> Frame:
    scopes = list(graph.pools.scopes)
    rows = _rows(len(scopes))
    return {
        "scope": rows,
        "parent": Masked(np.array([s.parent for s in scopes], dtype=np.int32), rows > 0),
        "path": Coded(rows, graph.pools.scope_paths()),
        "class": Coded(rows, [s.cls for s in scopes]),
        "call": np.array([s.call for s in scopes], dtype=np.int32),
    }


def _links(graph: Graph) -> Frame:
    kinds = list(graph.links)
    sizes = [len(graph.links[kind]) for kind in kinds]
    return {
        "kind": Coded(np.repeat(_rows(len(kinds)), sizes), kinds),
        "source": _joined([graph.links[kind].source for kind in kinds]),
        "target": _joined([graph.links[kind].target for kind in kinds]),
    }


def _groups(graph: Graph) -> Frame:
    kinds = list(graph.groups)
    sets = [graph.groups[kind] for kind in kinds]
    return {
        "kind": Coded(np.repeat(_rows(len(kinds)), [len(g) for g in sets]), kinds),
        "group": _joined([_rows(len(g)) for g in sets]),
        "name": _strings(graph, _joined([g.name for g in sets])),
        "nodes": _joined([np.diff(g.start) for g in sets]),
        "attrs": Coded(_joined([g.attrs for g in sets]), graph.pools.attr_texts.rows()),
        "code": _strings(graph, _joined([g.code for g in sets])),
    }


def _members(graph: Graph) -> Frame:
    kinds = list(graph.groups)
    sets = [graph.groups[kind] for kind in kinds]
    return {
        "kind": Coded(np.repeat(_rows(len(kinds)), [len(g.member) for g in sets]), kinds),
        "group": _joined([np.repeat(_rows(len(g)), np.diff(g.start)) for g in sets]),
        "node": _joined([g.member for g in sets]),
    }


_TABLES: dict[str, Callable[[Graph], Frame]] = {
    "nodes": _nodes,
    "values": _values,
    "uses": _uses,
    "scopes": _scopes,
    "links": _links,
    "groups": _groups,
    "members": _members,
}


def _stored(capture: Capture, name: str) -> Frame:
    table = capture.tables[name]
    columns: dict[str, Any] = {table.by.partition(":")[0]: table.index}
    for label, column in table.columns.items():
        values = column.values
        if not isinstance(values, np.ndarray) and len(values) and not isinstance(values[0], str):
            rows = cast("Sequence[Sequence[float]]", values)
            columns[label] = Lists([row if known else None for row, known in zip(rows, column.known, strict=True)])
        else:
            columns[label] = Masked(cast("npt.NDArray[Any] | Sequence[str]", values), column.known)
    return columns


def _strings(graph: Graph, codes: Int32) -> Coded:
    return Coded(codes, graph.pools.strings.rows())


def _rows(count: int) -> Int32:
    return np.arange(count, dtype=np.int32)


def _joined(columns: Sequence[npt.NDArray[Any]]) -> Int32:
    return np.concatenate([np.zeros(0, np.int32), *columns]).astype(np.int32, copy=False)


def length(table: Frame) -> int:
    """How many rows it has."""
    column = next(iter(table.values()))
    return len(column[0] if isinstance(column, tuple) else column)


def joined(tables: Sequence[Frame]) -> Frame:
    """The rows of several tables of one kind, one after the other."""
    if len(tables) == 1:
        return tables[0]
    return {name: _one_column([table[name] for table in tables]) for name in tables[0]}


def _one_column(parts: Sequence[npt.NDArray[Any] | Coded | Lists | Masked]) -> Any:
    if isinstance(parts[0], Coded):
        return _one_text(cast("Sequence[Coded]", parts))
    if isinstance(parts[0], Lists):
        return Lists([row for part in cast("Sequence[Lists]", parts) for row in part.rows])
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(cast("Sequence[npt.NDArray[Any]]", parts))
    masked = [part if isinstance(part, Masked) else _all_known(cast("npt.NDArray[Any]", part)) for part in parts]
    values: Any = [part.values for part in masked]
    is_text = any(not isinstance(part, np.ndarray) for part in values)
    together = [text for part in values for text in part] if is_text else np.concatenate(values)
    return Masked(together, np.concatenate([part.known for part in masked]))


def _all_known(values: npt.NDArray[Any]) -> Masked:
    return Masked(values, np.ones(len(values), dtype=bool))


def _one_text(parts: Sequence[Coded]) -> Coded:
    """Stages of one capture share their texts, nearly always."""
    texts: list[str] = []
    begin, last, codes = 0, None, list[Int32]()
    for part in parts:
        if last is None or (part.texts is not last and part.texts != last):
            begin, last = len(texts), part.texts
            texts.extend(last)
        codes.append(part.codes + np.int32(begin))
    return Coded(np.concatenate(codes), texts)


# -- what they become -----------------------------------------------------------------------------


def to_arrow(table: Frame) -> ac.Table:
    import arro3.core as ac

    return ac.Table.from_pydict({name: _arrow(column) for name, column in table.items()})


def _arrow(column: npt.NDArray[Any] | Coded | Lists | Masked) -> ac.Array:
    import arro3.core as ac

    if isinstance(column, Coded):
        codes, texts = _compact(column)
        plain = ac.Array(texts, type=ac.DataType.utf8())
        if len(texts) > len(codes) // 2:  # mostly distinct: a dictionary would only add to it
            return plain.take(to_array(codes))
        coded = plain.cast(ac.DataType.dictionary(ac.DataType.int32(), ac.DataType.utf8()))
        return coded.take(to_array(codes))
    if isinstance(column, Lists):
        lists = [row or () for row in column.rows]
        start = np.zeros(len(lists) + 1, dtype=np.int32)
        np.cumsum([len(row) for row in lists], out=start[1:])
        found = ac.list_array(to_array(start), to_array(np.array([x for row in lists for x in row], dtype=np.float64)))
        if all(row is not None for row in column.rows):
            return found
        # A row that is not known is taken from nowhere, which gives null.
        places = [None if row is None else i for i, row in enumerate(column.rows)]
        return found.take(ac.Array(places, type=ac.DataType.int32()))
    if isinstance(column, Masked):
        values, known = column
        if isinstance(values, np.ndarray):
            if known.all():
                return to_array(values)
            kind = to_array(values[:0]).type
            return ac.Array([v if k else None for v, k in zip(values.tolist(), known, strict=True)], type=kind)
        return ac.Array([v if k else None for v, k in zip(values, known, strict=True)], type=ac.DataType.utf8())
    return to_array(column)


def _compact(column: Coded) -> tuple[Int32, list[str]]:
    """Only the texts that occur: a pool also holds those of all other columns."""
    codes, texts = column
    used = np.flatnonzero(np.bincount(codes, minlength=1)) if len(codes) else np.zeros(0, dtype=np.int64)
    new = np.zeros(int(used[-1]) + 1 if len(used) else 1, dtype=np.int32)
    new[used] = np.arange(len(used), dtype=np.int32)
    kept: list[int] = used.tolist()
    return new[codes], [texts[i] for i in kept]


def to_pandas(table: Frame) -> Any:
    try:
        import pandas as pd  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
    except ImportError:
        raise OpscopeError("pandas is not installed: pip install 'opscope[pandas]'") from None
    columns: dict[str, Any] = {}
    for name, column in table.items():
        if isinstance(column, Coded):
            codes, texts = _compact(column)
            columns[name] = np.array(texts or [""], dtype=object)[codes] if len(codes) else np.zeros(0, dtype=object)
        elif isinstance(column, Lists):
            columns[name] = pd.Series(list(column.rows), dtype=object)
        elif isinstance(column, Masked) and not column.known.all():
            columns[name] = pd.Series(list(column.values)).where(column.known, None)
        else:
            columns[name] = column.values if isinstance(column, Masked) else column
    return pd.DataFrame(columns)
