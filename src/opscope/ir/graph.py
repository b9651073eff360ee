"""Graph: frozen columns. Node and Value are two-field handles into it.

A graph of a million nodes is about a dozen numpy arrays (62 bytes for a node with two inputs and one
output) instead of millions of Python objects. Nothing here changes after `GraphBuilder.freeze()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .columns import Int8, Int32, frozen
from .enumerations import PHASES, ROLES
from .pools import Frame, Pools, Scope, Type
from .relations import Groups, Links, no_links

NULL = -1  # a use of no value, or a value that no node made


class Csr(NamedTuple):
    """Lists of integers by row: row i has item[start[i]:start[i + 1]]."""

    start: Int32
    item: Int32

    def row(self, index: int) -> Int32:
        return self.item[self.start[index] : self.start[index + 1]]


@dataclass(frozen=True, eq=False)
class Body:
    """A graph inside a node: a branch, the body of a loop, what a fused operator is made of."""

    node: int
    label: str
    graph: Graph
    bindings: tuple[tuple[int, int], ...] = ()  # (value inside, value outside)


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in execution order, the values between them, and what relates them.

    Columns are named `node_…`, `use_…`, `value_…`. The uses of node i are the rows
    `use_start[i]` up to `use_start[i + 1]`, in argument order, repeats kept.
    """

    pools: Pools
    node_op: Int32
    node_name: Int32
    node_scope: Int32
    node_stack: Int32
    node_attrs: Int32
    node_phase: Int8
    use_start: Int32
    use_value: Int32
    use_arg: Int32
    value_producer: Int32
    value_slot: Int32
    value_type: Int32
    value_name: Int32
    value_role: Int8
    value_storage: Int32  # the value that owns the memory: itself, or the first one that had it
    inputs: Int32
    outputs: Int32
    links: Mapping[str, Links] = field(default_factory=lambda: MappingProxyType({}))
    groups: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
    bodies: tuple[Body, ...] = ()

    # -- sizes ----------------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        return len(self.node_op)

    @property
    def n_values(self) -> int:
        return len(self.value_type)

    @property
    def n_edges(self) -> int:
        """Uses that are not null."""
        return int(np.count_nonzero(self.use_value >= 0))

    def columns(self) -> dict[str, Int32 | Int8]:
        """Every column by name: what the graph takes in memory and what its file holds."""
        return {name: getattr(self, name) for name in COLUMNS}

    # -- handles --------------------------------------------------------------------------------

    def node(self, index: int) -> Node:
        if not 0 <= index < self.n_nodes:
            raise IndexError(f"node {index}: the graph has {self.n_nodes} nodes")
        return Node(self, index)

    def value(self, index: int) -> Value:
        if not 0 <= index < self.n_values:
            raise IndexError(f"value {index}: the graph has {self.n_values} values")
        return Value(self, index)

    @property
    def nodes(self) -> Iterator[Node]:
        return (Node(self, i) for i in range(self.n_nodes))

    @property
    def values(self) -> Iterator[Value]:
        return (Value(self, i) for i in range(self.n_values))

    def links_of(self, kind: str) -> Links:
        return self.links.get(kind) or no_links(kind)

    # -- indexes, made when first asked for -----------------------------------------------------

    @cached_property
    def use_node(self) -> Int32:
        """The node of each use."""
        return frozen(np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.use_start)))

    @cached_property
    def node_outputs(self) -> Csr:
        """The values that each node makes, by output slot."""
        made = np.flatnonzero(self.value_producer >= 0)
        order = made[np.lexsort((self.value_slot[made], self.value_producer[made]))]
        return _csr(self.value_producer[order], order, self.n_nodes)

    @cached_property
    def value_uses(self) -> Csr:
        """The rows in `use_…` that read each value, in execution order."""
        read = np.flatnonzero(self.use_value >= 0)
        order = read[np.argsort(self.use_value[read], kind="stable")]
        return _csr(self.use_value[order], order, self.n_values)

    @cached_property
    def bodies_by_node(self) -> Mapping[int, tuple[Body, ...]]:
        by_node: dict[int, tuple[Body, ...]] = {}
        for body in self.bodies:
            by_node[body.node] = (*by_node.get(body.node, ()), body)
        return MappingProxyType(by_node)


COLUMNS = (
    "node_op",
    "node_name",
    "node_scope",
    "node_stack",
    "node_attrs",
    "node_phase",
    "use_start",
    "use_value",
    "use_arg",
    "value_producer",
    "value_slot",
    "value_type",
    "value_name",
    "value_role",
    "value_storage",
    "inputs",
    "outputs",
)


def _csr(rows: Int32, items: np.ndarray[Any, Any], count: int) -> Csr:
    start = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=start[1:])
    return Csr(frozen(start), frozen(items))


class Use(NamedTuple):
    """One argument of a node: its path (`0`, `weight`, `tensors[1]`) and the value, or None."""

    arg: str
    value: Value | None


@dataclass(frozen=True, slots=True)
class Node:
    """An operator."""

    graph: Graph
    index: int

    @property
    def op(self) -> str:
        return self.graph.pools.strings[int(self.graph.node_op[self.index])]

    @property
    def name(self) -> str:
        return self.graph.pools.strings[int(self.graph.node_name[self.index])]

    @property
    def phase(self) -> str:
        return PHASES[int(self.graph.node_phase[self.index])]

    @property
    def attrs(self) -> dict[str, Any]:
        return self.graph.pools.attrs_of(int(self.graph.node_attrs[self.index]))

    @property
    def scopes(self) -> list[Scope]:
        """The modules that contain it, outermost first."""
        return self.graph.pools.scope_chain(int(self.graph.node_scope[self.index]))

    @property
    def path(self) -> str:
        """The scopes as a readable path."""
        return self.graph.pools.scope_path(int(self.graph.node_scope[self.index]))

    @property
    def frames(self) -> list[Frame]:
        """The call stack, outermost first."""
        return self.graph.pools.frames_of(int(self.graph.node_stack[self.index]))

    @property
    def uses(self) -> list[Use]:
        graph, strings = self.graph, self.graph.pools.strings
        rows = range(graph.use_start[self.index], graph.use_start[self.index + 1])
        return [
            Use(
                strings[int(graph.use_arg[row])],
                Value(graph, int(value)) if (value := graph.use_value[row]) >= 0 else None,
            )
            for row in rows
        ]

    @property
    def inputs(self) -> list[Value | None]:
        return [use.value for use in self.uses]

    @property
    def outputs(self) -> list[Value]:
        return [Value(self.graph, int(v)) for v in self.graph.node_outputs.row(self.index)]

    @property
    def bodies(self) -> tuple[Body, ...]:
        return self.graph.bodies_by_node.get(self.index, ())

    def __repr__(self) -> str:
        return f"<node {self.index} {self.op}{f' in {self.path}' if self.path else ''}>"


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor between operators."""

    graph: Graph
    index: int

    @property
    def name(self) -> str:
        return self.graph.pools.strings[int(self.graph.value_name[self.index])]

    @property
    def type(self) -> Type:
        return self.graph.pools.types[int(self.graph.value_type[self.index])]

    @property
    def role(self) -> str:
        return ROLES[int(self.graph.value_role[self.index])]

    @property
    def producer(self) -> Node | None:
        producer = int(self.graph.value_producer[self.index])
        return Node(self.graph, producer) if producer >= 0 else None

    @property
    def slot(self) -> int:
        return int(self.graph.value_slot[self.index])

    @property
    def storage(self) -> Value:
        """The value that owns the memory: itself unless this is a view or an in-place update."""
        return Value(self.graph, int(self.graph.value_storage[self.index]))

    @property
    def users(self) -> list[Node]:
        """The nodes that read it, once for each use."""
        return [Node(self.graph, int(self.graph.use_node[row])) for row in self.graph.value_uses.row(self.index)]

    def __repr__(self) -> str:
        return f"<value {self.index} {self.name or ''}: {self.type}>"
