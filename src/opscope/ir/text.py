"""The readable dump of a capture: for eyes, for `opscope ir`, and the language of the golden tests.

    graph trace: 2 nodes, 3 values, 2 edges
      in  %0 x: float32[1,3]
      %1: float32[1,3] = relu(%0 x)  forward  net/act(ReLU)  model.py:12
      out %1

It is deterministic: the same capture gives the same text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from .capture import Capture, Column, Stage, Table
from .facts import LINES
from .graph import Body, Graph
from .pools import Frame, Scope
from .rows import Rows

_ON_A_LINE = 25
_LONGEST_NAME = 120
_KEPT = 1 << 14  # texts that many nodes share


def dump(capture: Capture) -> str:
    return "".join(f"{line}\n" for line in lines(capture))


def lines(capture: Capture) -> Iterator[str]:
    """The dump line by line: a million operators are never held as text."""
    return map(_printable, _capture(capture))


def stage_lines(stage: Stage) -> Iterator[str]:
    return map(_printable, _stage(stage, 0, {}))


def _printable(line: str) -> str:
    """Names come from files: nothing in them may break a line, steer a terminal, or turn the reading direction."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _capture(capture: Capture) -> Iterator[str]:
    origin = capture.origin
    parts = [origin.format, origin.framework, origin.version, origin.how]
    yield "capture " + " · ".join(part for part in parts if part)
    for warning in capture.warnings:
        yield f"warning: {warning}"
    shown: dict[int, str] = {}
    for i, stage in enumerate(capture.stages):
        yield ""
        yield from _stage(stage, i, shown)
    for link in capture.stage_links:
        pairs = " ".join(f"{s}->{t}" for s, t in zip(link.source.tolist(), link.target.tolist(), strict=True))
        yield ""
        yield f"{link.kind} from stage {link.before} to {link.after} ({link.evidence}): {pairs}"
    for name, table in capture.tables.items():
        yield ""
        yield from _table(name, table)
    if capture.sources:
        yield ""
        for path, text in sorted(capture.sources.items()):
            yield f"source {path}: {len(text.splitlines())} lines"
    for name, data in capture.extra.items():
        yield f"kept {name}: {len(data)} bytes"


def _stage(stage: Stage, index: int, shown: dict[int, str]) -> Iterator[str]:
    graph = stage.graph
    after = "" if stage.after is None else f" after stage {stage.after}"
    seconds = "" if stage.seconds is None else f", {stage.seconds:g} s"
    yield f"stage {index} {stage.name}{after}{seconds}"
    yield from (f"  warning: {warning}" for warning in stage.warnings)
    yield from (f"  listing {kind}: {len(text.splitlines())} lines" for kind, text in stage.listings.items())
    if id(graph) in shown:
        yield f"  the graph of stage {shown[id(graph)]}"
        return
    shown[id(graph)] = f"{index} {stage.name}"
    yield from (f"  {line}" for line in graph_lines(graph))


def graph_lines(graph: Graph) -> Iterator[str]:
    """A graph line by line: inputs, nodes in execution order, outputs, links, groups."""
    yield f"graph: {graph.n_nodes} nodes, {graph.n_values} values, {graph.n_edges} edges"
    words = _Words(graph)
    for index in graph.inputs.tolist():
        yield f"in  {words.declared(index)}"
    loose = graph.value_producer < 0
    loose[graph.inputs] = False
    for index in np.flatnonzero(loose).tolist():
        yield f"has {words.declared(index)}"
    bodies = graph.bodies_by_node
    for node in range(graph.n_nodes):
        yield words.node(node)
        for body in bodies.get(node, ()):
            yield from _body(body)
    if len(graph.outputs):
        yield "out " + " ".join(f"%{v}" for v in graph.outputs.tolist())
    for kind, links in graph.links.items():
        pairs = " ".join(f"{s}->{t}" for s, t in zip(links.source.tolist(), links.target.tolist(), strict=True))
        yield f"{kind} links: {pairs}"
    strings = graph.pools.strings
    for kind, groups in graph.groups.items():
        first: dict[int, int] = {}  # attributes -> the first group that has them: kernels run many times
        for i in range(len(groups)):
            members = " ".join(map(str, groups.members(i).tolist()))
            code = strings[int(groups.code[i])]
            note = f"  code of {len(code.splitlines())} lines" if code else ""
            attrs = int(groups.attrs[i])
            like = first.setdefault(attrs, i)
            details = _json(graph.pools.attrs_of(attrs)) if like == i else f"  like {kind} {like}" if attrs else ""
            yield f"{kind} {i} {_quoted(strings[int(groups.name[i])])}: {members}{note}{details}"


def _body(body: Body) -> Iterator[str]:
    bound = ", ".join(f"%{inside}=%{outside}" for inside, outside in body.bindings)
    yield f"  body {body.label} ({bound})"
    yield from (f"    {line}" for line in graph_lines(body.graph))


class _Words:
    """The nodes and values of a graph in words."""

    def __init__(self, graph: Graph) -> None:
        pools = graph.pools
        self._rows = Rows(graph)

        @lru_cache(_KEPT)
        def attrs_text(attrs: int) -> str:
            return _json(pools.attrs_of(attrs)).strip() if attrs else ""

        @lru_cache(_KEPT)
        def scope_text(scope: int) -> str:
            return pools.scope_path(scope, _scope_text)

        @lru_cache(_KEPT)
        def stack_text(stack: int) -> str:
            return " < ".join(reversed(pools.stack_lines(stack, frame_text)))

        self._attrs, self._scope, self._stack = attrs_text, scope_text, stack_text

    def node(self, index: int) -> str:
        rows = self._rows
        strings, name = rows.strings, rows.name[index]
        made = ", ".join(map(self.declared, rows.made(index)))
        used = list(map(self._used, rows.used(index)))
        names = [strings[arg] for arg in rows.arguments(index)]
        if any(arg != str(place) for place, arg in enumerate(names)):
            used = [f"{arg}={text}" for arg, text in zip(names, used, strict=True)]
        parts = [
            f"{index}: {made or 'nothing'} = {strings[rows.op[index]]}({', '.join(used)})",
            _quoted(strings[name]) if name else "",
            self._attrs(rows.attrs[index]),
            rows.phase(index),
            self._scope(rows.scope[index]),
            self._stack(rows.stack[index]),
        ]
        return "  ".join(filter(None, parts))

    def declared(self, value: int) -> str:
        rows = self._rows
        name, role, storage = rows.value_name[value], rows.role(value), rows.storage[value]
        text = f"%{value} {_quoted(rows.strings[name])}: " if name else f"%{value}: "
        text += rows.type_text(rows.value_type[value])
        if role != "activation":
            text += f" ({role})"
        return text if storage == value else f"{text} in %{storage}"

    def _used(self, value: int) -> str:
        name = self._rows.value_name[value] if value >= 0 else 0
        if name:
            return f"%{value} {_quoted(self._rows.strings[name])}"
        return f"%{value}" if value >= 0 else "null"


def _scope_text(scope: Scope) -> str:
    return f"{scope.name}{f'#{scope.call + 1}' if scope.call else ''}({scope.cls})"


def frame_text(frame: Frame) -> str:
    where = f"{frame.file}:{frame.line}" if frame.line else frame.file
    return f"{where} {frame.function}" if frame.function else where


def _lines(table: Table) -> Iterator[str]:
    """`  code: 1->0 2->0 4->1`, the operators of each line."""
    kinds, lines = (table.columns[name].values for name in ("listing", "line"))
    pairs: dict[str, list[str]] = {}
    for kind, line, node in zip(kinds, lines, table.index.tolist(), strict=True):
        pairs.setdefault(str(kind), []).append(f"{line}->{node}")
    yield from (f"  {kind}: {' '.join(found)}" for kind, found in pairs.items())


def _table(name: str, table: Table) -> Iterator[str]:
    columns = ", ".join(f"{label}{f' [{c.unit}]' if c.unit else ''}" for label, c in table.columns.items())
    yield f"table {name} of stage {table.stage} by {table.by}: {columns}"
    index = table.index.tolist()
    if table.fact == LINES.name:
        yield from _lines(table)
        return
    if len(table.columns) == 1 and index == list(range(len(index))):  # one figure for each row: many on a line
        cells = [_cell(column, i) for column in table.columns.values() for i in range(len(index))]
        yield from (f"  {i}: " + " ".join(cells[i : i + _ON_A_LINE]) for i in range(0, len(cells), _ON_A_LINE))
        return
    for i, row in enumerate(index):
        yield f"  {row}: " + " | ".join(_cell(column, i) for column in table.columns.values())


def _cell(column: Column, row: int) -> str:
    if not column.known[row]:
        return "unknown"
    value = column.values[row]
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Sequence):
        return f"{len(cast('Sequence[float]', value))} numbers"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _json(attrs: dict[str, object]) -> str:
    return f"  {json.dumps(attrs, ensure_ascii=False)}" if attrs else ""


def _quoted(text: str) -> str:
    """Names as they are; in quotes where they have spaces or are empty."""
    short = text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"
    return short if short and " " not in short else json.dumps(short, ensure_ascii=False)
