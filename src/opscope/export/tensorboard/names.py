"""What nodes are called in a GraphDef: a path of scopes, unique, without the signs that mean something there."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from opscope.ir import Graph, scope_label
from opscope.ir.rows import Rows

_DEEPEST = 256  # scopes that a name may spell out

# `:` comes before an output index, `^` before a control edge, `/` between scopes; TensorBoard keeps `__` for itself.
_NOT_IN_NAMES = re.compile(r"[^\w.\-\[\]<>(){},#]+|__+")


class Names:
    """The names of all nodes, and of the values that no node makes (inputs and parameters are nodes there)."""

    def __init__(self, graph: Graph) -> None:
        self._rows, self._pools = Rows(graph), graph.pools
        self._taken: dict[str, int] = {}  # and how often each was asked for
        paths = graph.pools.scope_paths(lambda scope: safe(scope_label(scope)))
        self._scopes = [path.replace("…", "_") for path in paths]  # what is left out of a long chain
        self._safe = lru_cache(1 << 14)(safe)
        self._prefix = lru_cache(1 << 14)(self._dotted)
        self.values: dict[int, str] = {}  # those without a producer
        first = _first_readers(graph)
        nodes = [self._node(i) for i in range(graph.n_nodes)]
        for index in np.flatnonzero(graph.value_producer < 0).tolist():
            self.values[index] = self._unique(self._outside(index, int(first[index])))
        self.nodes: list[str] = [self._unique(name) for name in nodes]

    def source(self, value: int) -> str:
        """How an input names the value: the node, and which of its outputs unless it is the first."""
        producer, slot = self._rows.producer[value], self._rows.slot[value]
        if producer < 0:
            return self.values[value]
        return f"{self.nodes[producer]}:{slot}" if slot else self.nodes[producer]

    def _node(self, index: int) -> str:
        rows = self._rows
        name, scope = rows.strings[rows.name[index]], rows.scope[index]
        return _joined(self._scopes[scope], self._safe(self._own(name, scope) or rows.strings[rows.op[index]]))

    def _outside(self, value: int, reader: int) -> str:
        """A parameter is next to the operator that reads it first; an input is outside of all modules."""
        rows = self._rows
        name, role = rows.strings[rows.value_name[value]], rows.role(value)
        if role == "input" or reader < 0:
            return safe(name or role)
        scope = rows.scope[reader]
        return _joined(self._scopes[scope], safe(self._own(name, scope) or role))

    def _own(self, name: str, scope: int) -> str:
        """`layer1.0.conv1.weight` inside the scope layer1/0/conv1 is `weight`."""
        prefix = self._prefix(scope) if name and scope else ""
        return name[len(prefix) :] if prefix and name.startswith(prefix) and len(name) > len(prefix) else name

    def _dotted(self, scope: int) -> str:
        """The scopes as the name of a parameter has them; of a chain that no name spells out, nothing."""
        if self._pools.scope_chains.level[scope] > _DEEPEST:
            return ""
        return ".".join(entry.name for entry in self._pools.scope_chain(scope)) + "."

    def _unique(self, name: str) -> str:
        taken = self._taken
        count = taken.get(name)
        if count is None:
            taken[name] = 0
            return name
        found = name
        while found in taken:
            count += 1
            found = f"{name}_{count}"
        taken[name], taken[found] = count, 0
        return found


def safe(name: str) -> str:
    cleaned = _NOT_IN_NAMES.sub("_", name).strip("_")[:200]
    return cleaned or "unnamed"


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _first_readers(graph: Graph) -> npt.NDArray[np.int64]:
    """The first node that reads each value, or −1."""
    found = np.full(graph.n_values, -1, dtype=np.int64)
    read = np.flatnonzero(graph.use_value >= 0)[::-1]
    found[graph.use_value[read]] = graph.use_node[read]
    return found
