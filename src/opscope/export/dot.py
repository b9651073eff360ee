"""Graphviz: every operator, in clusters by module; or, with a depth, one box per module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.analysis.collapse import collapse
from opscope.analysis.costs.rollup import Tree
from opscope.export import edge_words
from opscope.files import replacing
from opscope.ir import PHASES, Capture, Graph, scope_label
from opscope.ir.graph import Csr
from opscope.ir.rows import Rows

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
        _whole(graph, edge_words.by_value(capture, number, words), options.look.parameters)
        if options.depth is None
        else _boxes(graph, options.depth)
    )
    with replacing(path) as file:
        for line in _with_legend(lines, graph) if options.look.legend else lines:
            file.write(f"{line}\n".encode())


def _with_legend(lines: Iterable[str], graph: Graph) -> Iterator[str]:
    """A box for each phase that is there, before the end."""
    present = [phase for i, phase in enumerate(PHASES) if bool((graph.node_phase == i).any())]
    for line in lines:
        if line == "}":
            yield '  subgraph cluster_legend { label="phases"; style=rounded; color="#b0bec5"; fontsize=11;'
            for phase in present:
                yield f'  legend_{phase} [label="{phase}", fillcolor="{_FILL[phase]}"];'
            yield "  }"
        yield line


def _whole(graph: Graph, words: list[str] | None = None, parameters: bool = False) -> Iterator[str]:
    words = edge_words.types_by_value(graph, _USUAL) if words is None else words
    yield _HEAD
    rows = _Words(graph)
    yield from _cluster(graph, rows)
    for index in graph.inputs.tolist():
        value = graph.value(index)
        label = quoted(f"{value.name or 'input'}\n{value.type}")
        yield f'  v{index} [label={label}, shape=ellipse, fillcolor="#fffde7"];'
    inputs = set(graph.inputs.tolist())
    if parameters:
        for index in sorted(set(graph.use_value[graph.use_value >= 0].tolist()) - inputs):
            if rows.read.producer[index] < 0:
                value = graph.value(index)
                label = quoted(f"{value.name or value.role}\n{value.type}")
                yield f'  v{index} [label={label}, shape=note, fillcolor="#f3e5f5"];'
                inputs.add(index)
    for node in range(graph.n_nodes):
        for value in rows.read.used(node):
            if value >= 0 and (rows.read.producer[value] >= 0 or value in inputs):
                yield f"  {rows.end(value)} -> n{node} [label={rows.quoted(words[value])}];"
    for source, target in zip(
        graph.links_of("grad").source.tolist(), graph.links_of("grad").target.tolist(), strict=True
    ):
        yield f'  n{source} -> n{target} [style=dotted, color="#fb8c00", constraint=false, arrowhead=none];'
    yield "}"


def _by_scope(column: npt.NDArray[Any], scopes: int) -> Csr:
    """The rows of each scope, in order."""
    start = np.zeros(scopes + 1, dtype=np.int32)
    np.cumsum(np.bincount(column, minlength=scopes), out=start[1:])
    return Csr(start, np.argsort(column, kind="stable").astype(np.int32))


def _cluster(graph: Graph, rows: _Words) -> Iterator[str]:
    """Clusters from the root down, without recursion: scopes may be nested to any depth."""
    tree = Tree(graph)
    scopes, full = graph.pools.scopes.rows(), tree.has_nodes
    nodes = _by_scope(graph.node_scope, len(scopes))
    children = _by_scope(np.maximum(tree.parent, 0), len(scopes))
    todo: list[tuple[int, bool]] = [(0, True)]
    while todo:
        scope, opening = todo.pop()
        if not opening:
            yield "  }"
            continue
        if scope:
            entry = scopes[scope]
            title = scope_label(entry) + (f" ({entry.cls})" if entry.cls and entry.name else "")
            yield f'  subgraph cluster_{scope} {{ label={quoted(title)}; style=rounded; color="#b0bec5"; fontsize=11;'
            todo.append((scope, False))
        yield from map(rows.node, nodes.row(scope).tolist())
        todo += [(child, True) for child in reversed(children.row(scope).tolist()) if child and full[child]]


class _Words:
    """Operators and values as DOT has them."""

    def __init__(self, graph: Graph) -> None:
        self.read = Rows(graph)
        self.quoted = lru_cache(1 << 14)(quoted)  # what many values share

    def node(self, node: int) -> str:
        read = self.read
        made = ", ".join([self._made(value) for value in read.made(node)])
        place, op = read.users_frame(node), read.strings[read.op[node]]
        where = f"{place.file}:{place.line}" if place is not None else ""
        label = quoted(f"{op}\n{made}" if made else op)
        return f'  n{node} [label={label}, fillcolor="{_FILL[read.phase(node)]}", tooltip={quoted(where or op)}];'

    def _made(self, value: int) -> str:
        name = self.read.value_name[value]
        text = self.read.type_text(self.read.value_type[value])
        return f"{self.read.strings[name]}: {text}" if name else text

    def end(self, value: int) -> str:
        producer = self.read.producer[value]
        return f"v{value}" if producer < 0 else f"n{producer}"


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
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
