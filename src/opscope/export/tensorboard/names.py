"""What nodes are called in a GraphDef: a path of scopes, unique, without the signs that mean something there."""

from __future__ import annotations

import re

import numpy as np

from opscope.ir import Graph, Value, scope_label

# `:` comes before an output index, `^` before a control edge, `/` between scopes; TensorBoard keeps `__` for itself.
_NOT_IN_NAMES = re.compile(r"[^\w.\-\[\]<>(){},#]+|__+")


class Names:
    """The names of all nodes, and of the values that no node makes (inputs and parameters are nodes there)."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._taken: set[str] = set()
        self._scopes = _paths(graph)
        self.values: dict[int, str] = {}  # those without a producer
        first = _first_readers(graph)
        nodes = [self._node(i) for i in range(graph.n_nodes)]
        for index in np.flatnonzero(graph.value_producer < 0).tolist():
            value = graph.value(index)
            self.values[index] = self._unique(self._outside(value, first.get(index)))
        self.nodes: list[str] = [self._unique(name) for name in nodes]

    def source(self, value: Value) -> str:
        """How an input names the value: the node, and which of its outputs unless it is the first."""
        producer = value.producer
        if producer is None:
            return self.values[value.index]
        return self.nodes[producer.index] + (f":{value.slot}" if value.slot else "")

    def _node(self, index: int) -> str:
        node = self._graph.node(index)
        path = self._scopes[int(self._graph.node_scope[index])]
        return _joined(path, safe(_own(node.name, [s.name for s in node.scopes]) or node.op))

    def _outside(self, value: Value, reader: int | None) -> str:
        """A parameter is next to the operator that reads it first; an input is outside of all modules."""
        if value.role == "input" or reader is None:
            return safe(value.name or value.role)
        scope = int(self._graph.node_scope[reader])
        parts = [s.name for s in self._graph.pools.scope_chain(scope)]
        return _joined(self._scopes[scope], safe(_own(value.name, parts) or value.role))

    def _unique(self, name: str) -> str:
        found, count = name, 0
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found


def safe(name: str) -> str:
    cleaned = _NOT_IN_NAMES.sub("_", name).strip("_")[:200]
    return cleaned or "unnamed"


def _own(name: str, scopes: list[str]) -> str:
    """`layer1.0.conv1.weight` inside the scope layer1/0/conv1 is `weight`."""
    prefix = ".".join(scopes) + "."
    return name[len(prefix) :] if scopes and name.startswith(prefix) and len(name) > len(prefix) else name


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _paths(graph: Graph) -> list[str]:
    paths: list[str] = []
    for i, scope in enumerate(graph.pools.scopes):
        paths.append(_joined(paths[scope.parent], safe(scope_label(scope))) if i else "")
    return paths


def _first_readers(graph: Graph) -> dict[int, int]:
    found: dict[int, int] = {}
    for node, value in zip(graph.use_node.tolist(), graph.use_value.tolist(), strict=True):
        if value >= 0:
            found.setdefault(value, node)
    return found
