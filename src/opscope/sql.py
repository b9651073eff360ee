"""SQL over captures: their tables as views of DuckDB, those of several captures and all their stages together.

Every view has the columns `capture` (the file's name) and `stage`. Only the views that a query names are made. The
database is in memory and may not touch files or the network, whatever the query says.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opscope.analysis.annotate import annotate
from opscope.errors import OpscopeError
from opscope.export import frames
from opscope.export.frames import Coded, Frame, Lists, Masked
from opscope.ir import Capture
from opscope.ir.enumerations import CHANGE_CLASSES, FAMILIES, HOW
from opscope.ir.facts import CHANGES, COSTS, KINDS, TIME_UNITS, TIMES

if TYPE_CHECKING:
    import arro3.core as ac

Named = tuple[str, Capture]


class Answer(NamedTuple):
    columns: list[str]
    rows: list[tuple[Any, ...]]
    is_cut: bool  # there are more rows than were asked for


def query(captures: Sequence[Named], text: str, most: int | None = None) -> Answer:
    """What a query gives, at most so many rows of it. OpscopeError says in one line what is wrong with the query."""
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError:
        raise OpscopeError("opscope sql needs DuckDB: pip install 'opscope[sql]'") from None
    wanted = [view for view in VIEWS if re.search(rf"\b{view}\b", text, re.IGNORECASE)]
    database = duckdb.connect(":memory:")
    try:
        for view in wanted:
            rows = _rows(captures, view)
            if rows is None:
                _empty(database, view)
                continue
            database.register("_arrow", rows)
            database.execute(f'CREATE TABLE "{view}" AS SELECT * FROM _arrow')
            database.unregister("_arrow")
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        found = database.execute(text)
        columns = [column[0] for column in found.description or ()]
        rows = found.fetchall() if most is None else found.fetchmany(most + 1)
    except duckdb.Error as error:
        raise OpscopeError(f"the query cannot be answered: {_one_line(error)}; views: {', '.join(VIEWS)}") from None
    finally:
        database.close()
    is_cut = most is not None and len(rows) > most
    return Answer(columns, rows[:most], is_cut)


def _one_line(error: Exception) -> str:
    return " ".join(line.strip() for line in str(error).splitlines()[:2] if line.strip())


def _empty(database: Any, view: str) -> None:
    """A view that these captures have no rows of still has its columns."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in EMPTY[view].items())
    database.execute(f'CREATE TABLE "{view}" (capture VARCHAR, stage VARCHAR, {columns})')


def _rows(captures: Sequence[Named], view: str) -> ac.Table | None:
    parts: list[Frame] = []
    for name, capture in captures:
        prepared = annotate(capture) if view in COMPUTED else capture
        for number, stage in enumerate(prepared.stages):
            for part in VIEWS[view](prepared, number):
                count = frames.length(part)
                if count:
                    parts.append({"capture": _same(name, count), "stage": _same(stage.name, count), **part})
    return frames.to_arrow(_joined(parts)) if parts else None


def _joined(parts: list[Frame]) -> Frame:
    """Captures may have columns that others do not have: those that all have are kept."""
    shared = [name for name in parts[0] if all(name in part for part in parts)]
    return frames.joined([{name: part[name] for name in shared} for part in parts])


def _same(text: str, count: int) -> Coded:
    return Coded(np.zeros(count, dtype=np.int32), [text])


# -- the views --------------------------------------------------------------------------------------------


def _table(name: str) -> Callable[[Capture, int], Iterator[Frame]]:
    def make(capture: Capture, stage: int) -> Iterator[Frame]:
        yield frames.of_graph(name, capture.stages[stage].graph)

    return make


def _nodes(capture: Capture, stage: int) -> Iterator[Frame]:
    """Operators, with what they do (`kind`, `family`)."""
    graph = capture.stages[stage].graph
    kinds, families = _kinds(capture, stage)
    yield {**frames.of_graph("nodes", graph), "kind": kinds, "family": families}


def _kinds(capture: Capture, stage: int) -> tuple[Coded, Coded]:
    graph = capture.stages[stage].graph
    found: list[tuple[str, str]] = [("", "")] * len(graph.pools.strings)
    own: dict[int, str] = {}
    for table in capture.facts(KINDS.name, stage):
        kinds, families = table.columns["kind"].values, table.columns.get("family")
        for row, index in enumerate(table.index.tolist()):
            if table.by == "op":
                family = _family(int(np.asarray(families.values)[row])) if families is not None else ""
                found[int(index)] = (str(kinds[row]), family)
            else:
                own[index] = str(kinds[row])
    ops: list[int] = graph.node_op.tolist()
    return _coded([own.get(node, found[op][0]) for node, op in enumerate(ops)]), _coded([found[op][1] for op in ops])


def _coded(words: Sequence[str]) -> Coded:
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(word, len(numbers)) for word in words]
    return Coded(np.array(codes, dtype=np.int32), list(numbers))


def _family(number: int) -> str:
    return FAMILIES[number] if 0 <= number < len(FAMILIES) else ""


def _edges(capture: Capture, stage: int) -> Iterator[Frame]:
    """A row for each tensor that one operator hands to another."""
    graph = capture.stages[stage].graph
    uses = np.flatnonzero(graph.use_value >= 0)
    values = graph.use_value[uses]
    uses = uses[graph.value_producer[values] >= 0]
    values = graph.use_value[uses]
    types = list(graph.pools.types)
    yield {
        "source": graph.value_producer[values],
        "target": graph.use_node[uses],
        "value": values,
        "arg": Coded(graph.use_arg[uses], graph.pools.strings.rows()),
        "dtype": Coded(graph.value_type[values], [type_.dtype for type_ in types]),
        "shape": Coded(
            graph.value_type[values],
            [str(type_).partition("[")[2][:-1] if type_.shape is not None else "" for type_ in types],
        ),
    }


def _kernels(capture: Capture, stage: int) -> Iterator[Frame]:
    """A row for each operator of each kernel, kernels in the order in which they ran."""
    graph = capture.stages[stage].graph
    groups = graph.groups.get("kernel")
    if groups is None:
        return
    sizes = np.diff(groups.start)
    number = np.repeat(np.arange(len(groups), dtype=np.int32), sizes)
    strings = graph.pools.strings.rows()
    yield {
        "kernel": number,
        "name": Coded(groups.name[number], strings),
        "node": groups.member,
        "nodes": sizes[number].astype(np.int32),
        "code": Coded(groups.code[number], strings),
    }


def _costs(capture: Capture, stage: int) -> Iterator[Frame]:
    for table in capture.facts(COSTS.name, stage):
        how = np.asarray(table.columns["how"].values, dtype=np.int32)
        names = {"macs": "macs", "other": "other_flops", "read": "read_bytes", "written": "written_bytes"}
        columns: dict[str, Any] = {"node": table.index}
        for name, called in names.items():
            column = table.columns[name]
            columns[called] = Masked(np.asarray(column.values), column.known)
        yield {**columns, "how": Coded(how, HOW)}


def _times(capture: Capture, stage: int) -> Iterator[Frame]:
    """Seconds of operators and kernels: `what` says which of them `number` counts."""
    for table in capture.facts(TIMES.name, stage):
        column = table.columns.get("time")
        if column is None:
            continue
        seconds = np.asarray(column.values, dtype=np.float64) * TIME_UNITS.get(column.unit, 1.0)
        what = table.by.removeprefix("group:")
        yield {
            "what": _same(what, len(seconds)),
            "number": table.index,
            "seconds": Masked(seconds, column.known),
        }


def _changes(capture: Capture, stage: int) -> Iterator[Frame]:
    """What a stage changed in the one it was made from."""
    for table in capture.facts(CHANGES.name, stage):
        yield {
            "class": Coded(np.asarray(table.columns["class"].values, dtype=np.int32), CHANGE_CLASSES),
            "before": Lists([list(row) for row in _lists(table.columns["before"].values)]),
            "after": Lists([list(row) for row in _lists(table.columns["after"].values)]),
            "detail": Masked([str(text) for text in table.columns["detail"].values], table.columns["detail"].known),
        }


def _lists(values: Any) -> Sequence[Sequence[float]]:
    return values


VIEWS: dict[str, Callable[[Capture, int], Iterator[Frame]]] = {
    "nodes": _nodes,
    "edges": _edges,
    "values": _table("values"),
    "modules": _table("scopes"),
    "links": _table("links"),
    "kernels": _kernels,
    "costs": _costs,
    "times": _times,
    "changes": _changes,
}
COMPUTED = ("nodes", "costs", "changes")
EMPTY: dict[str, dict[str, str]] = {
    "nodes": {
        "node": "INT",
        "op": "VARCHAR",
        "name": "VARCHAR",
        "kind": "VARCHAR",
        "phase": "VARCHAR",
        "scope": "VARCHAR",
    },
    "edges": {
        "source": "INT",
        "target": "INT",
        "value": "INT",
        "arg": "VARCHAR",
        "dtype": "VARCHAR",
        "shape": "VARCHAR",
    },
    "values": {
        "value": "INT",
        "name": "VARCHAR",
        "role": "VARCHAR",
        "dtype": "VARCHAR",
        "shape": "VARCHAR",
        "bytes": "BIGINT",
    },
    "modules": {"scope": "INT", "parent": "INT", "path": "VARCHAR", "class": "VARCHAR", "call": "INT"},
    "links": {"kind": "VARCHAR", "source": "INT", "target": "INT"},
    "kernels": {"kernel": "INT", "name": "VARCHAR", "node": "INT", "nodes": "INT", "code": "VARCHAR"},
    "costs": {
        "node": "INT",
        "macs": "BIGINT",
        "other_flops": "BIGINT",
        "read_bytes": "BIGINT",
        "written_bytes": "BIGINT",
        "how": "VARCHAR",
    },
    "times": {"what": "VARCHAR", "number": "INT", "seconds": "DOUBLE"},
    "changes": {"class": "VARCHAR", "before": "INT[]", "after": "INT[]", "detail": "VARCHAR"},
}
