"""Model Explorer's graph JSON, so that the same graph can be opened there.

It has no place for everything: gradient links, tables, the code of kernels, and all but the innermost source
line stay behind.
What opscope needs to read the file back as it was (`readers/model_explorer.py`) is kept in attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opscope.analysis.summary import used_scopes
from opscope.files import replacing
from opscope.ir import Capture, Graph, Node, Value, scope_label
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
        self.namespaces = _namespaces(graph)
        names = [node.name for node in graph.nodes]
        # Names as ids where they can be: data that others keep by node id then still fits.
        self.named = len(set(names)) == len(names) and all(map(_can_be_id, names))
        self.names = names
        self.kernels = _kernels_by_node(graph)
        self.bodies: dict[int, list[str]] = {}
        for i, body in enumerate(graph.bodies):
            self.bodies.setdefault(body.node, []).append(_body_name(name, graph, i))

    def nodes(self) -> Iterator[dict[str, Any]]:
        graph = self.graph
        used: dict[int, int] = {}  # a value that no node makes -> the first node that reads it
        for node, value in zip(graph.use_node.tolist(), graph.use_value.tolist(), strict=True):
            if value >= 0 and graph.value_producer[value] < 0:
                used.setdefault(value, node)
        listed = {int(v): i for i, v in enumerate(graph.inputs)}
        for value in graph.values:
            if value.producer is None:
                yield self._outside(value, used.get(value.index), listed.get(value.index))
        for node in graph.nodes:
            yield self._node(node)
        if len(graph.outputs):
            edges = [self._edge(graph.value(int(v)), i) for i, v in enumerate(graph.outputs)]
            attrs = _pairs({"role": "outputs"})
            yield {"id": "<outputs>", "label": "outputs", "namespace": "", "attrs": attrs, "incomingEdges": edges}

    def _outside(self, value: Value, reader: int | None, place: int | None) -> dict[str, Any]:
        """A parameter, an input: a node of its own there, beside the first operator that reads it."""
        inside = value.role != "input" and reader is not None
        return {
            "id": f"%{value.index}",
            "label": value.name or value.role,
            "namespace": self.namespaces[int(self.graph.node_scope[reader])] if inside and reader is not None else "",
            "attrs": _pairs({"role": value.role, **({} if place is None else {"input": place})}),
            "outputsMetadata": [self._metadata(value)],
        }

    def _node(self, node: Node) -> dict[str, Any]:
        frames = node.frames
        attrs: dict[str, Any] = {"phase": node.phase}
        if node.name and not self.named:
            attrs["name"] = node.name
        if frames:
            attrs["source"] = frame_text(frames[-1])
        if node.index in self.kernels:
            attrs["kernel"] = "\n".join(self.kernels[node.index])
        written: dict[str, Any] = {
            "id": self._id(node.index),
            "label": node.op,
            "namespace": self.namespaces[int(self.graph.node_scope[node.index])],
            "attrs": _pairs(attrs) + _pairs({_attr_key(key): value for key, value in node.attrs.items()}),
        }
        uses = node.uses
        if uses:
            read = [(i, use.value) for i, use in enumerate(uses)]
            written["incomingEdges"] = [self._edge(value, i) for i, value in read if value is not None]
            written["inputsMetadata"] = [
                {"id": str(i), "attrs": [] if use.arg == str(i) else [_pair("__tensor_tag", use.arg)]}
                for i, use in enumerate(uses)
            ]
        if node.outputs:
            written["outputsMetadata"] = [self._metadata(value) for value in node.outputs]
        if node.index in self.bodies:
            written["subgraphIds"] = self.bodies[node.index]
        return written

    def _id(self, node: int) -> str:
        return self.names[node] if self.named else str(node)

    def _edge(self, value: Value, place: int) -> dict[str, str]:
        producer = value.producer
        source = f"%{value.index}" if producer is None else self._id(producer.index)
        return {
            "sourceNodeId": source,
            "sourceNodeOutputId": str(value.slot),
            "targetNodeInputId": str(place),
        }

    def _metadata(self, value: Value) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        if value.type.dtype or value.type.shape is not None:
            attrs["tensor_shape"] = str(value.type)
        if value.name:
            attrs["tensor_name"] = value.name
        if value.role != "activation":
            attrs["role"] = value.role
        return {"id": str(value.slot), "attrs": [{"key": k, "value": v} for k, v in attrs.items()]}

    def group_attributes(self) -> dict[str, dict[str, str]]:
        """The class of every module that has operators inside."""
        scopes = self.graph.pools.scopes
        inside = sorted(used_scopes(self.graph))
        return {self.namespaces[i]: {"class": scopes[i].cls} for i in inside if scopes[i].cls}


def _namespaces(graph: Graph) -> list[str]:
    """The path of every scope. A slash in a name would be another level: it is written as ∕."""
    paths: list[str] = []
    for i, scope in enumerate(graph.pools.scopes):
        label = scope_label(scope).replace("/", "∕")
        above = paths[scope.parent] if i else ""
        paths.append("" if not i else f"{above}/{label}" if above else label)
    return paths


def _can_be_id(name: str) -> bool:
    """Our own ids are numbers, and begin with % or < where they stand for values."""
    return 0 < len(name) <= 200 and name[0] not in "%<" and not name.isdigit()


def _kernels_by_node(graph: Graph) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    groups = graph.groups.get("kernel")
    if groups is not None:
        for i in range(len(groups)):
            name = " ".join(graph.pools.strings[int(groups.name[i])].split())
            for node in groups.members(i).tolist():
                found.setdefault(node, []).append(f"#{i} {name}".rstrip())
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
    return json.dumps(data, separators=(",", ":"))
