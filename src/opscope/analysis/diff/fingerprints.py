"""What a node is, as numbers: fingerprints of operators, and of ever larger neighbourhoods around them.

Names are left out on purpose: compilers number them, so they say more about the order than about the operator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opscope.ir import Graph
from opscope.ir.columns import Int32

Hash: TypeAlias = npt.NDArray[np.uint64]
Index: TypeAlias = npt.NDArray[np.int64]

RADIUS = 5  # how far a fingerprint looks


class Vocabulary:
    """Numbers for what two graphs have in common, whatever pools they come from: the same in every run."""

    def __init__(self) -> None:
        self._ids: dict[Hashable, int] = {}
        self._sides: list[Side] = []  # the last two

    def side(self, graph: Graph) -> Side:
        """A graph to be compared; it is often the one that something was compared with just before."""
        found = next((side for side in self._sides if side.graph is graph), None) or side_of(graph, self)
        self._sides = [*self._sides[-1:], found]
        return found

    def of(self, thing: Hashable) -> int:
        known = self._ids.get(thing)
        if known is None:
            digest = blake2b(repr(thing).encode("utf-8", "backslashreplace"), digest_size=8).digest()
            known = self._ids[thing] = int.from_bytes(digest, "little")
        return known

    def column(self, kind: str, ids: npt.NDArray[Any], look_up: Callable[[int], Hashable]) -> Hash:
        """A column of pool ids as hashes; each distinct id is looked up once."""
        distinct, places = np.unique(ids, return_inverse=True)
        known = np.array([self.of((kind, look_up(int(i)))) for i in distinct.tolist()], dtype=np.uint64)
        return scramble(known)[places.reshape(-1)] if len(distinct) else np.zeros(0, dtype=np.uint64)


def scramble(numbers: Hash) -> Hash:
    """Spreads bits (the finaliser of splitmix64)."""
    x = numbers + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def mixed(*parts: Hash) -> Hash:
    """Several columns as one; which is where matters."""
    out = parts[0]
    for part in parts[1:]:
        out = scramble(out * np.uint64(0x100000001B3) + part)
    return out


def sums(values: Hash, rows: Index, count: int) -> Hash:
    """The sum of the values of each row: the order in which they come does not matter."""
    out = np.zeros(count, dtype=np.uint64)
    if len(rows):
        order = np.argsort(rows, kind="stable")
        by_row = rows[order]
        first = np.flatnonzero(np.diff(by_row, prepend=-1))
        out[by_row[first]] = np.add.reduceat(values[order], first)
    return out


@dataclass(eq=False)
class Side:
    """One of the two graphs. Items are its nodes, and behind them the values that no node makes ("leaves")."""

    graph: Graph
    exact: Hash  # by item: operator, attributes, output types, arguments, bodies; leaves: role and type
    loose: Hash  # by item: only the operator and its arguments; leaves: only the role
    source: Index  # by use that is not null: the item that is read …
    slot: Index  # … its output …
    target: Index  # … the node that reads it …
    port: Index  # … at this position
    leaves: Index  # the value of each leaf
    is_output: Index  # items (repeated) that the graph gives back

    @property
    def n_nodes(self) -> int:
        return self.graph.n_nodes

    @property
    def size(self) -> int:
        return self.graph.n_nodes + len(self.leaves)

    def colours(self, start: Hash, radius: int = RADIUS) -> list[Hash]:
        """`start`, and then what the neighbours up to 1, 2, … edges away add to it."""
        found = [start]
        wiring = scramble((self.slot * 4096 + self.port).astype(np.uint64))
        outputs = sums(np.full(len(self.is_output), 0x1234567, dtype=np.uint64), self.is_output, self.size)
        for _ in range(radius):
            now = found[-1]
            read = sums(mixed(now[self.source], wiring), self.target, self.size)
            readers = sums(mixed(wiring, now[self.target]), self.source, self.size)
            found.append(mixed(now, read, readers + outputs))
        return found

    @cached_property
    def exact_colours(self) -> list[Hash]:
        return self.colours(self.exact)

    @cached_property
    def loose_colours(self) -> list[Hash]:
        return self.colours(self.loose)

    @cached_property
    def closed(self) -> Hash:
        """The strictest fingerprint: everything that an item is computed from, and everything it leads to."""
        up, down = _closures(self)
        return self.colours(mixed(self.exact, up, down), 2)[-1]

    # -- neighbours, for walking ------------------------------------------------------------------

    @cached_property
    def reads(self) -> list[list[tuple[int, int, int]]]:
        """By item: (port, source, slot), by port."""
        table: list[list[tuple[int, int, int]]] = [[] for _ in range(self.size)]
        columns = (self.target.tolist(), self.port.tolist(), self.source.tolist(), self.slot.tolist())
        for target, port, source, slot in zip(*columns, strict=True):
            table[target].append((port, source, slot))
        return table

    @cached_property
    def read_by(self) -> list[list[tuple[int, int, int]]]:
        """By item: (slot, port, reader), in the order of execution."""
        table: list[list[tuple[int, int, int]]] = [[] for _ in range(self.size)]
        columns = (self.source.tolist(), self.slot.tolist(), self.port.tolist(), self.target.tolist())
        for source, slot, port, target in zip(*columns, strict=True):
            table[source].append((slot, port, target))
        return table

    @cached_property
    def outputs(self) -> set[int]:
        return set(self.is_output.tolist())

    @cached_property
    def scopes(self) -> Int32:
        """By item; leaves are in none."""
        return np.concatenate([self.graph.node_scope, np.zeros(len(self.leaves), dtype=np.int32)])


def side_of(graph: Graph, words: Vocabulary) -> Side:
    n = graph.n_nodes
    leaves = _leaves(graph)
    item_of_value = graph.value_producer.astype(np.int64)
    item_of_value[leaves] = n + np.arange(len(leaves))
    rows = np.flatnonzero(graph.use_value >= 0)
    read = graph.use_value[rows]
    target = graph.use_node[rows].astype(np.int64)
    position = np.arange(len(graph.use_value)) - np.repeat(graph.use_start[:-1], np.diff(graph.use_start))
    exact, loose = _labels(graph, words, leaves, position)
    outputs = item_of_value[graph.outputs]
    return Side(
        graph=graph,
        exact=exact,
        loose=loose,
        source=item_of_value[read],
        slot=graph.value_slot[read].astype(np.int64),
        target=target,
        port=position[rows].astype(np.int64),
        leaves=leaves,
        is_output=outputs[outputs >= 0],
    )


def _leaves(graph: Graph) -> Index:
    """Values that no node makes and that are read or inputs of the graph."""
    wanted = np.zeros(graph.n_values, dtype=bool)
    wanted[graph.use_value[graph.use_value >= 0]] = True
    wanted[graph.inputs] = True
    wanted[graph.outputs] = True
    return np.flatnonzero(wanted & (graph.value_producer < 0))


def _labels(graph: Graph, words: Vocabulary, leaves: Index, position: npt.NDArray[Any]) -> tuple[Hash, Hash]:
    pools, n = graph.pools, graph.n_nodes
    op = words.column("op", graph.node_op, lambda i: pools.strings[i])
    attrs = words.column("attrs", graph.node_attrs, lambda i: canonical(pools.attr_texts[i]))
    types = words.column("type", graph.value_type, lambda i: tuple(pools.types[i]))
    names = words.column("arg", graph.use_arg, lambda i: pools.strings[i])
    phase = scramble(graph.node_phase.astype(np.uint64))
    null = (graph.use_value < 0).astype(np.uint64)
    places = scramble(position.astype(np.uint64) * np.uint64(2) + null)
    arguments = sums(mixed(names, places), graph.use_node.astype(np.int64), n)
    made = np.flatnonzero(graph.value_producer >= 0)
    slots = scramble(graph.value_slot[made].astype(np.uint64))
    makes = sums(mixed(types[made], slots), graph.value_producer[made].astype(np.int64), n)
    makes_any = sums(slots, graph.value_producer[made].astype(np.int64), n)
    role = scramble(graph.value_role[leaves].astype(np.uint64))
    exact = mixed(op, attrs, makes, arguments, phase, _bodies(graph, words))
    loose = mixed(op, arguments, makes_any)
    return np.concatenate([exact, mixed(role, types[leaves])]), np.concatenate([loose, scramble(role)])


def _bodies(graph: Graph, words: Vocabulary) -> Hash:
    """What is inside of nodes, as one number each."""
    inside = np.zeros(graph.n_nodes, dtype=np.uint64)
    for body in graph.bodies:
        whole = fingerprint(body.graph, words)
        number = words.of(("body", body.label, whole))
        # A sum of columns: of two single numbers numpy would warn where it passes 64 bits.
        inside[[body.node]] += scramble(np.array([number], dtype=np.uint64))
    return inside


def fingerprint(graph: Graph, words: Vocabulary) -> int:
    """The whole graph as one number, whatever the order of its rows and the names in it."""
    side = side_of(graph, words)
    last = side.colours(side.exact, 3)[-1]
    return int(np.bitwise_xor.reduce(scramble(last))) if len(last) else 0


def canonical(text: str) -> str:
    """Attributes in one order. Most sets are written in it already, or have one entry."""
    if text.count(":") <= 1:
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _closures(side: Side) -> tuple[Hash, Hash]:
    """Hashes of all that is above and of all that is below each item. What lies in a loop stops at itself."""
    label = side.exact.astype(np.int64).tolist()
    reads, read_by = side.reads, side.read_by
    order = execution_order(side)
    up = list(label)
    for item in order:
        if reads[item]:
            up[item] = hash((label[item], *[(port, slot, up[source]) for port, source, slot in reads[item]]))
    down = list(label)
    outputs = side.outputs
    for item in reversed(order):
        below = sorted([(slot, port, down[reader]) for slot, port, reader in read_by[item]])
        down[item] = hash((label[item], item in outputs, *below))
    return _unsigned(up), _unsigned(down)


def execution_order(side: Side) -> Sequence[int]:
    """Items, each behind what it reads, as far as there are no loops; leaves first."""
    n, size = side.n_nodes, side.size
    made_by_node = side.source < n
    if not (side.source[made_by_node] >= side.target[made_by_node]).any():
        return [*range(n, size), *range(n)]
    waiting = [0] * size
    for target in side.target.tolist():
        waiting[target] += 1
    ready = [item for item in range(size - 1, -1, -1) if not waiting[item]]
    order: list[int] = []
    while ready:
        item = ready.pop()
        order.append(item)
        for _, _, reader in side.read_by[item]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return order


def _unsigned(numbers: list[int]) -> Hash:
    return np.array(numbers, dtype=np.int64).astype(np.uint64)


def attributes(graph: Graph, node: int) -> dict[str, Any]:
    return graph.pools.attrs_of(int(graph.node_attrs[node]))
