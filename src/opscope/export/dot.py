"""Graphviz: every operator, in clusters by module; or, with a depth, one box per module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from opscope.analysis.collapse import collapse
from opscope.export import edge_words
from opscope.files import replacing
from opscope.ir import Capture, Graph, Node, Value, scope_label
from opscope.ir.places import users_frame

from .registry import Options

_USUAL = ("shape",)  # what stands on edges
_FILL = {
    "init": "#eceff1",
    "forward": "#e3f2fd",
    "backward": "#fff3e0",
    "recompute": "#fce4ec",
    "optimizer": "#e8f5e9",
    "other": "#fafafa",
}
_HEAD = """digraph opscope {
  rankdir=TB; compound=true; fontname="Helvetica"; bgcolor="white";
  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10, color="#90a4ae"];
  edge [fontname="Helvetica", fontsize=8, color="#607d8b", arrowsize=0.6];"""


def export(capture: Capture, path: Path, options: Options) -> None:
    stage = capture.stage(options.stage)
    graph = stage.graph
    number = next(i for i, other in enumerate(capture.stages) if other is stage)
    words = edge_words.checked(options.look.edges)
    if words is None:
        words = edge_words.suiting(capture, number) or _USUAL
    lines = (
        _whole(graph, edge_words.by_value(capture, number, words))
        if options.depth is None
        else _boxes(graph, options.depth)
    )
    with replacing(path) as file:
        for line in lines:
            file.write(f"{line}\n".encode())


def _whole(graph: Graph, words: list[str] | None = None) -> Iterator[str]:
    words = edge_words.types_by_value(graph, _USUAL) if words is None else words
    yield _HEAD
    children: dict[int, list[int]] = {}
    for i, scope in enumerate(graph.pools.scopes):
        if i:
            children.setdefault(scope.parent, []).append(i)
    nodes: dict[int, list[int]] = {}
    for node, scope in enumerate(graph.node_scope.tolist()):
        nodes.setdefault(scope, []).append(node)
    yield from _cluster(graph, children, nodes)
    for index in graph.inputs.tolist():
        value = graph.value(index)
        label = quoted(f"{value.name or 'input'}\n{value.type}")
        yield f'  v{index} [label={label}, shape=ellipse, fillcolor="#fffde7"];'
    inputs = set(graph.inputs.tolist())
    for node in graph.nodes:
        for use in node.uses:
            if use.value is not None and (use.value.producer is not None or use.value.index in inputs):
                yield f"  {_end(use.value)} -> n{node.index} [label={quoted(words[use.value.index])}];"
    for source, target in zip(
        graph.links_of("grad").source.tolist(), graph.links_of("grad").target.tolist(), strict=True
    ):
        yield f'  n{source} -> n{target} [style=dotted, color="#fb8c00", constraint=false, arrowhead=none];'
    yield "}"


def _cluster(graph: Graph, children: dict[int, list[int]], nodes: dict[int, list[int]]) -> Iterator[str]:
    """Clusters from the root down, without recursion: scopes may be nested as deep as somebody likes."""
    full = _scopes_with_nodes(graph, nodes)
    todo: list[tuple[int, bool]] = [(0, True)]
    while todo:
        scope, opening = todo.pop()
        if not opening:
            yield "  }"
            continue
        if scope:
            entry = graph.pools.scopes[scope]
            title = scope_label(entry) + (f" ({entry.cls})" if entry.cls and entry.name else "")
            yield f'  subgraph cluster_{scope} {{ label={quoted(title)}; style=rounded; color="#b0bec5"; fontsize=11;'
            todo.append((scope, False))
        for node in nodes.get(scope, ()):
            yield _node(graph.node(node))
        todo += [(child, True) for child in reversed(children.get(scope, [])) if child in full]


def _scopes_with_nodes(graph: Graph, nodes: dict[int, list[int]]) -> set[int]:
    full: set[int] = set()
    for scope in nodes:
        while scope >= 0 and scope not in full:
            full.add(scope)
            scope = graph.pools.scopes[scope].parent
    return full


def _node(node: Node) -> str:
    made = ", ".join(f"{value.name + ': ' if value.name else ''}{value.type}" for value in node.outputs)
    place = users_frame(node.frames)
    where = f"{place.file}:{place.line}" if place is not None else ""
    label = quoted(f"{node.op}\n{made}" if made else node.op)
    return f'  n{node.index} [label={label}, fillcolor="{_FILL[node.phase]}", tooltip={quoted(where or node.op)}];'


def _end(value: Value) -> str:
    producer = value.producer
    return f"v{value.index}" if producer is None else f"n{producer.index}"


def _boxes(graph: Graph, depth: int) -> Iterator[str]:
    drawn = collapse(graph, depth)
    widest = max((n for *_, n in drawn.edges), default=1)
    yield _HEAD
    for i, box in enumerate(drawn.boxes):
        name = graph.pools.scope_path(box.scope) or "outside any module"
        ops = ", ".join(f"{op} ×{n}" for op, n in box.ops)
        label = quoted(f"{name}\n{box.phase}, {box.nodes} ops\n{ops}")
        yield f'  b{i} [label={label}, fillcolor="{_FILL[box.phase]}"];'
    for source, target, count in drawn.edges:
        width = 1 + 3 * float(np.log1p(count) / np.log1p(widest))
        yield f'  b{source} -> b{target} [label="{count}", penwidth={width:.1f}];'
    yield "}"


def quoted(text: str) -> str:
    """A DOT string: quotes and backslashes escaped, control characters gone, overlong text cut."""
    text = text if len(text) <= 400 else text[:399] + "…"
    safe = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
