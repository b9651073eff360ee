"""The dot files of `backward(dump_backward_graph_path=…)`: one node or edge a line, always written the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from opscope.errors import BadInput

from .backward import Edge, GradNode
from .names import dtype

_NODE = re.compile(r'\s*node_(\d{1,10})\s*\[label="((?:[^"\\]|\\.)*)"(.*)\]\s*')
_EDGE = re.compile(r'\s*node_(\d{1,10})\s*->\s*node_(\d{1,10})\s*\[label="((?:[^"\\]|\\.)*)".*\]\s*')
_POINTER = re.compile(r"(?:Ptr|GradNode):\s*(0x[0-9a-fA-F]{1,16})")
_TYPE = re.compile(r"([a-z]\w*)\s*\[((?:-?\d{1,18}(?:,\s*-?\d{1,18})*)?)\]")
_MOST = 5_000_000


@dataclass
class DotGraph:
    nodes: list[GradNode] = field(default_factory=list[GradNode])
    by_pointer: dict[str, int] = field(default_factory=dict[str, int])
    is_forward: bool = False
    ended: bool = False
    unread: int = 0  # lines that are neither node nor edge
    lost: int = 0  # edges of nodes that are not in the file


def parse(lines: Iterable[str]) -> DotGraph:
    """The graph of a backward or a ref_forward file; what cannot be read is counted."""
    graph = DotGraph()
    numbers: dict[str, int] = {}
    edges: list[tuple[str, str, str]] = []
    for number, line in enumerate(lines):
        if number > _MOST:
            raise BadInput(f"more than {_MOST:,} lines")
        if (found := _NODE.fullmatch(line)) is not None:
            if found[1] not in numbers:
                numbers[found[1]] = len(graph.nodes)
                graph.nodes.append(_node(found[2], graph))
        elif (found := _EDGE.fullmatch(line)) is not None:
            edges.append((found[1], found[2], found[3]))
        elif line.strip().startswith("}"):
            graph.ended = True
        elif line.strip() and not line.lstrip().startswith("digraph"):
            graph.unread += 1
    for source, target, label in edges:
        if source in numbers and target in numbers:
            graph.nodes[numbers[source]].edges.append(_edge(numbers[target], label))
        else:
            graph.lost += 1
    return graph


def _node(label: str, graph: DotGraph) -> GradNode:
    name, *rest = label.split("\\n")
    pointer = _POINTER.search(" ".join(rest) or label)
    graph.is_forward |= "GradNode:" in label
    node = GradNode(name.strip() or "unnamed", pointer[1].lower() if pointer else "")
    if node.ptr:
        graph.by_pointer.setdefault(node.ptr, len(graph.nodes))
    return node


def _edge(target: int, label: str) -> Edge:
    """`name\\nPlace(cpu)\\nfloat32[1, 10]`, without name, or without place."""
    edge = Edge(target)
    for part in label.split("\\n"):
        if part.startswith("Place("):
            edge.place = part
        elif (found := _TYPE.fullmatch(part.strip())) is not None and dtype(found[1]):
            edge.dtype = dtype(found[1])
            edge.shape = tuple(int(size) for size in found[2].split(",") if size.strip())
            edge.evidence = "reported"
        elif part.strip():
            edge.name = part.strip()
    return edge
