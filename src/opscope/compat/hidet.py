"""`hidet.utils.netron.dump` for any capture: the JSON that Hidet's own build of the Netron viewer reads."""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO, TypeAlias, cast

from opscope import ir
from opscope.errors import OpscopeError

Json: TypeAlias = dict[str, Any]
DIALECTS = ("0.6", "0.2")
_CATEGORIES = {
    "layer": ("Conv2d", "Matmul"),
    "activation": ("Relu",),
    "pool": ("MaxPool2d", "AvgPool2d"),
    "transform": ("Squeeze", "Unsqueeze", "Add", "Sub", "Multiply", "Rsqrt"),
}


def dump(graph: Any, fp: TextIO, *, dialect: str = "0.6") -> None:
    """Write a graph for the viewer: a hidet FlowGraph as Hidet itself does, or the graph of any capture.

    `dialect` says in which of Hidet's two ways: of version 0.6 (sizes as text), or of 0.2 (sizes as numbers).
    """
    if dialect not in DIALECTS:
        raise OpscopeError(f"dialect={dialect!r}: there are {' and '.join(DIALECTS)}")
    if isinstance(graph, ir.Capture | ir.Stage):
        texts = _tasks(graph, 0) if isinstance(graph, ir.Capture) and graph.stages else {}
        json.dump(_model(graph.graph, dialect, texts), fp, indent=2)
    elif isinstance(graph, ir.Graph):
        json.dump(_model(graph, dialect, {}), fp, indent=2)
    elif "hidet" in sys.modules and isinstance(graph, sys.modules["hidet"].FlowGraph):
        from opscope.tracers import trace

        if dialect == DIALECTS[0]:
            from importlib import import_module

            import_module("hidet.utils.netron").dump(graph, fp)
        else:
            dump(trace(graph), fp, dialect=dialect)
    else:
        kind = cast("type[Any]", type(graph))
        raise OpscopeError(f"{kind.__module__}.{kind.__qualname__} is neither a hidet FlowGraph nor a capture or graph")


def _tasks(capture: ir.Capture, number: int) -> dict[int, list[str]]:
    """The definitions that the stage has, by node."""
    lines = capture.stages[number].listings.get("code", "").split("\n")
    found: dict[int, list[str]] = {}
    starts: dict[int, list[int]] = {}
    for line, node in ir.lines_of(capture, number, "code"):
        if 0 < line <= len(lines) and lines[line - 1].startswith("# "):
            starts.setdefault(line, []).append(node)
    for line, nodes in starts.items():
        end = line
        while end < len(lines) and lines[end]:
            end += 1
        for node in nodes:
            found[node] = lines[line:end]
    return found


def _model(graph: ir.Graph, dialect: str, tasks: dict[int, list[str]]) -> Json:
    return {
        "graphs": [_Writer(graph, dialect, tasks).graph_json()],
        "description": "Converted from FlowGraph",
        "author": "",
        "company": "",
        "license": "",
        "domain": "",
        "source": "Hidet",
        "format": "netron",
    }


class _Writer:
    def __init__(self, graph: ir.Graph, dialect: str, tasks: dict[int, list[str]]) -> None:
        self._graph, self._dialect, self._tasks = graph, dialect, tasks
        self._names: dict[int, str] = {value: f"input:{i}" for i, value in enumerate(graph.inputs.tolist())}
        self._constants = 0
        self._ops: dict[str, int] = {}

    def graph_json(self) -> Json:
        graph = self._graph
        inputs = [self._parameter(f"input:{i}", graph.value(v)) for i, v in enumerate(graph.inputs.tolist())]
        nodes = [self._node(node) for node in graph.nodes]
        outputs = [self._parameter(f"output:{i}", graph.value(v)) for i, v in enumerate(graph.outputs.tolist())]
        return {"name": "", "inputs": inputs, "outputs": outputs, "nodes": nodes}

    def _node(self, node: ir.Node) -> Json:
        self._ops[node.op] = self._ops.get(node.op, 0) + 1
        is_old = self._dialect == "0.2"
        name = f"{node.op}{self._ops[node.op]}" if is_old else f"{node.index}_{node.op}"
        for k, value in enumerate(node.outputs):
            self._names[value.index] = f"{name}:{k}"
        read = [value for value in node.inputs if value is not None]
        return {
            "name": name,
            "type": {"name": node.op, "category": _category(node.op)},
            "inputs": [self._parameter(str(k), value) for k, value in enumerate(read)],
            "outputs": [self._parameter(str(k), value) for k, value in enumerate(node.outputs)],
            "attributes": self._fused(node) + [_attribute(name, value) for name, value in node.attrs.items()],
            "description": self._tasks.get(node.index, [""]),
        }

    def _fused(self, node: ir.Node) -> list[Json]:
        if self._dialect == "0.2" or "fusion" in node.attrs:
            return []
        from opscope.analysis.diff.inline import fused_body

        body = fused_body(self._graph, node.index)
        return [] if body is None else [_entry("fused_graph", "FlowGraph", _printed(body.graph))]

    def _parameter(self, name: str, value: ir.Value) -> Json:
        shape = value.type.shape or ()
        texts = ["?" if d is None else str(d) for d in shape]
        dims: list[Any] = texts if self._dialect == "0.6" else [d if isinstance(d, int) else str(d) for d in shape]
        dtype = value.type.dtype
        string = f"{dtype}{texts}" if self._dialect == "0.6" else f"{dtype}{tuple(dims)}"
        is_constant = value.producer is None and value.index not in self._names
        if is_constant:
            self._names[value.index] = f"const:{self._constants}"
            self._constants += 1
        known = self._names.setdefault(value.index, name)
        argument: Json = {
            "name": known,
            "type": {"string": string, "shape": {"dimensions": dims}, "dataType": dtype},
        }
        if known.startswith("const:"):
            argument["initializer"] = {"kind": "Initializer", "value": "<>"}
        return {"name": name, "arguments": [argument], "visible": True}


def _category(op: str) -> str | None:
    if op.startswith("Fused") or " " in op:
        return "dropout"
    if op.startswith(("Conv2dGemm", "Conv2dWinograd")):
        return "custom"
    return next((category for category, ops in _CATEGORIES.items() if op in ops), None)


def _attribute(name: str, value: Any) -> Json:
    if isinstance(value, list | tuple):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return _entry(name, f"Sequence[{type(items[0]).__name__ if items else ''}]", str(items))
    # `8.0f` is how Hidet prints a constant of its own; everything else is what it is.
    is_constant = isinstance(value, str) and value[:-1].replace(".", "", 1).isdigit() and value.endswith("f")
    return _entry(name, "Constant" if is_constant else type(value).__name__, str(value))


def _entry(name: str, kind: str, value: str) -> Json:
    return {"name": name, "type": kind, "value": value, "visible": True, "description": ""}


def _printed(graph: ir.Graph) -> str:
    """A graph as Hidet prints it."""
    names: dict[int, str] = {}

    def name(value: ir.Value) -> str:
        return names.setdefault(value.index, f"x_{len(names)}" if names else "x")

    head = ", ".join(f"{name(v)}: {_type(v)}" for v in map(graph.value, graph.inputs.tolist()))
    lines = [f"Graph({head}){{"]
    for node in graph.nodes:
        made = ", ".join(f"{name(v)}: {_type(v)}" for v in node.outputs)
        items = [name(v) for v in node.inputs if v is not None]
        items += [
            f'{key}="{v}"' if isinstance(v, str) and not v[:1].isdigit() else f"{key}={v}"
            for key, v in node.attrs.items()
        ]
        lines.append(f"  {made} = {node.op}({', '.join(items)})  ")
    lines += [f"  return {', '.join(name(v) for v in map(graph.value, graph.outputs.tolist()))}", "}"]
    return "\n".join(lines)


def _type(value: ir.Value) -> str:
    return f"{value.type.dtype}[{', '.join('?' if d is None else str(d) for d in value.type.shape or ())}]"
