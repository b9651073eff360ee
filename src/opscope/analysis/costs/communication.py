"""What a graph sends to other ranks: each operator with its group, and sums by the dimensions of the mesh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opscope.ir import Graph
from opscope.ir.attributes import GROUP
from opscope.ops.formulas.communication import group_of

from .operators import CostTable

NO_DIMENSION = "?"  # of operators that do not say in which group they communicate


@dataclass(frozen=True)
class Peers:
    """A group of ranks, as an operator of one of them has it."""

    dimension: str
    size: int
    index: int
    ranks: str


def peers_of(graph: Graph) -> Iterator[tuple[int, Peers]]:
    """The operators that communicate, with their groups."""
    texts = graph.pools.attr_texts
    marked = [i for i in range(len(texts)) if f'"{GROUP}"' in texts[i]]
    groups = {i: found for i in marked if (found := _peers(graph, i)) is not None}
    for node in np.flatnonzero(np.isin(graph.node_attrs, list(groups))).tolist():
        yield node, groups[int(graph.node_attrs[node])]


def _peers(graph: Graph, attrs: int) -> Peers | None:
    found = group_of(graph.pools.attrs_of(attrs))
    size, index = found.get("size"), found.get("index")
    if not isinstance(size, int) or not isinstance(index, int):
        return None
    return Peers(str(found.get("dimension") or NO_DIMENSION), size, index, str(found.get("ranks") or ""))


def wire_by_dimension(graph: Graph, costs: CostTable) -> dict[str, int]:
    """Bytes sent by dimension, those without one last; dimensions in the order in which they are met."""
    dimension = {node: peers.dimension for node, peers in peers_of(graph)}
    sent: dict[str, int] = {}
    for node in np.flatnonzero((costs.wire > 0) | np.isin(np.arange(len(costs)), list(dimension))).tolist():
        name = dimension.get(node, NO_DIMENSION)
        sent[name] = sent.get(name, 0) + int(costs.wire[node])
    return sent
