"""Model Explorer's graph JSON, so that the same graph can be opened there.

It has no place for everything: gradient links, tables, the code of kernels, and all but the innermost source
line stay behind.
What opscope needs to read the file back as it was (`readers/model_explorer.py`) is kept in attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from opscope.analysis.summary import used_scopes
from opscope.files import replacing
from opscope.ir import Capture, Graph, Scope, scope_label
from opscope.ir.columns import view
from opscope.ir.rows import Rows
from opscope.ir.text import frame_text

from .registry import Options

OUR_KEYS = ("phase", "name", "source", "kernel", "role", "input")
PRODUCER = "opscope 1"  # the reader gives our attributes their meaning back where it finds this


def export(capture: Capture, path: Path, options: Options) -> None:
    """All stages, or the one that is named; bodies of operators are graphs of their own."""
    stages = capture.stages if options.stage is None else [capture.stage(options.stage)]
    with replacing(path) as file:
        file.write(f'{{"label":{_text(path.stem)},"producer":{_text(PRODUCER)},"graphs":['.encode())
        first = True
        for stage in stages:
            for name, graph in _with_bodies(stage.name, stage.graph):
                file.write(b"\n" if first else b",\n")
                first = False
                for piece in _graph(name, graph):
                    file.write(piece.encode())
        file.write(b"\n]}\n")


def _with_bodies(name: str, graph: Graph) -> Iterator[tuple[str, Graph]]:
    yield name, graph
    for i, body in enumerate(graph.bodies):
        yield from _with_bodies(_body_name(name, graph, i), body.graph)


def _body_name(name: str, graph: Graph, body: int) -> str:
    return f"{name} › {graph.bodies[body].node} {graph.bodies[body].label or body} #{body}"


def _graph(name: str, graph: Graph) -> Iterator[str]:
    """The JSON of one graph in pieces: a large one is not held in memory twice."""
    writer = _Writer(name, graph)
    yield f'{{"id":{_text(name)},"nodes":['
    first = True
    for node in writer.nodes():
        yield ("\n" if first else ",\n") + _text(node)
        first = False
    yield f'\n],"groupNodeAttributes":{_text(writer.group_attributes())}}}'


class _Writer:
    def __init__(self, name: str, graph: Graph) -> None:
        self.name = name
        self.graph = graph
        self.rows = Rows(graph)
        self.namespaces = graph.pools.scope_paths(_namespace)
        strings = self.rows.strings
        used: list[int] = np.unique(graph.node_name).tolist()
        # Names as ids where they can be: data that others keep by node id then still fits.
        self.named = len(used) == graph.n_nodes and all(_can_be_id(strings[name]) for name in used)
        self.kernels = _kernels_by_node(graph)
        self.metadata = lru_cache(1 << 14)(self._metadata)
        self.own_attrs = lru_cache(1 << 14)(self._own_attrs)
        self.bodies: dict[int, list[str]] = {}
        for i, body in enumerate(graph.bodies):
            self.bodies.setdefault(body.node, []).append(_body_name(name, graph, i))

    def nodes(self) -> Iterator[dict[str, Any]]:
        graph = self.graph
        reader = np.full(graph.n_values, -1, dtype=np.int64)  # the first node that reads each value
        read = np.flatnonzero(graph.use_value >= 0)[::-1]
        reader[graph.use_value[read]] = graph.use_node[read]
        listed = {value: i for i, value in enumerate(graph.inputs.tolist())}
        for value in np.flatnonzero(graph.value_producer < 0).tolist():
            yield self._outside(value, int(reader[value]), listed.get(value))
        for node in range(graph.n_nodes):
            yield self._node(node)
        if len(graph.outputs):
            edges = [self._edge(value, i) for i, value in enumerate(graph.outputs.tolist())]
            attrs = _pairs({"role": "outputs"})
            yield {"id": "<outputs>", "label": "outputs", "namespace": "", "attrs": attrs, "incomingEdges": edges}

    def _outside(self, value: int, reader: int, place: int | None) -> dict[str, Any]:
        """A parameter, an input: a node of its own there, beside the first operator that reads it."""
        rows = self.rows
        role = rows.role(value)
        return {
            "id": f"%{value}",
            "label": rows.strings[rows.value_name[value]] or role,
            "namespace": self.namespaces[rows.scope[reader]] if role != "input" and reader >= 0 else "",
            "attrs": _pairs({"role": role, **({} if place is None else {"input": place})}),
            "outputsMetadata": [self._output(value)],
        }

    def _node(self, node: int) -> dict[str, Any]:
        rows = self.rows
        strings, frame = rows.strings, rows.frame(node)
        attrs: dict[str, Any] = {"phase": rows.phase(node)}
        if rows.name[node] and not self.named:
            attrs["name"] = strings[rows.name[node]]
        if frame is not None:
            attrs["source"] = frame_text(frame)
        if node in self.kernels:
            attrs["kernel"] = "\n".join(self.kernels[node])
        written: dict[str, Any] = {
            "id": self._id(node),
            "label": strings[rows.op[node]],
            "namespace": self.namespaces[rows.scope[node]],
            "attrs": _pairs(attrs) + self.own_attrs(rows.attrs[node]),
        }
        used = rows.used(node)
        if used:
            written["incomingEdges"] = [self._edge(value, i) for i, value in enumerate(used) if value >= 0]
            written["inputsMetadata"] = [
                {"id": str(i), "attrs": [] if (arg := strings[name]) == str(i) else [_pair("__tensor_tag", arg)]}
                for i, name in enumerate(rows.arguments(node))
            ]
        made = rows.made(node)
        if made:
            written["outputsMetadata"] = [self._output(value) for value in made]
        if node in self.bodies:
            written["subgraphIds"] = self.bodies[node]
        return written

    def _own_attrs(self, attrs: int) -> list[dict[str, str]]:
        return _pairs({_attr_key(key): value for key, value in self.graph.pools.attrs_of(attrs).items()})

    def _id(self, node: int) -> str:
        return self.rows.strings[self.rows.name[node]] if self.named else str(node)

    def _edge(self, value: int, place: int) -> dict[str, str]:
        producer = self.rows.producer[value]
        return {
            "sourceNodeId": f"%{value}" if producer < 0 else self._id(producer),
            "sourceNodeOutputId": str(self.rows.slot[value]),
            "targetNodeInputId": str(place),
        }

    def _output(self, value: int) -> dict[str, Any]:
        rows = self.rows
        return self.metadata(rows.slot[value], rows.value_type[value], rows.value_name[value], rows.role(value))

    def _metadata(self, slot: int, type_: int, name: int, role: str) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        kind = self.graph.pools.types[type_]
        if kind.dtype or kind.shape is not None:
            attrs["tensor_shape"] = str(kind)
        if name:
            attrs["tensor_name"] = self.rows.strings[name]
        if role != "activation":
            attrs["role"] = role
        return {"id": str(slot), "attrs": [{"key": k, "value": v} for k, v in attrs.items()]}

    def group_attributes(self) -> dict[str, dict[str, str]]:
        """The class of every module that has operators inside."""
        scopes = self.graph.pools.scopes
        inside = sorted(used_scopes(self.graph))
        return {self.namespaces[i]: {"class": scopes[i].cls} for i in inside if scopes[i].cls}


def _namespace(scope: Scope) -> str:
    """A slash in a name would be another level: it is written as ∕."""
    return scope_label(scope).replace("/", "∕")


def _can_be_id(name: str) -> bool:
    """Our own ids are numbers, and begin with % or < where they stand for values."""
    return 0 < len(name) <= 200 and name[0] not in "%<" and not name.isdigit()


def _kernels_by_node(graph: Graph) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    groups = graph.groups.get("kernel")
    if groups is not None:
        strings, start, member = graph.pools.strings, view(groups.start), view(groups.member)
        for i, name in enumerate(groups.name.tolist()):
            label = f"#{i} {' '.join(strings[name].split())}".rstrip()
            for node in member[start[i] : start[i + 1]].tolist():
                found.setdefault(node, []).append(label)
    return found


def _attr_key(key: str) -> str:
    """An attribute of an operator may be called like one of ours."""
    return f"attr.{key}" if key in OUR_KEYS or key.startswith("attr.") else key


def _pairs(attrs: dict[str, Any]) -> list[dict[str, str]]:
    return [_pair(key, value) for key, value in attrs.items()]


def _pair(key: str, value: Any) -> dict[str, str]:
    """Model Explorer has only text. A text that would read as JSON is quoted, so that it comes back as text."""
    if isinstance(value, str) and not _reads_as_json(value):
        return {"key": key, "value": value}
    return {"key": key, "value": _text(value)}


def _reads_as_json(text: str) -> bool:
    if text[:1] not in '"-0123456789[{tfnNI':
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(data: Any) -> str:
    """JSON, in ASCII: a lone surrogate is not UTF-8, but it is JSON."""
    return _ENCODER.encode(data)


_ENCODER = json.JSONEncoder(separators=(",", ":"))
