"""What modules hand out: of the values that are made inside and read outside, the largest; of these the last."""

from __future__ import annotations

import numpy as np

from opscope.ir import PHASE_ID, ROLE_ID, Graph

from .rollup import Tree
from .sizes import Ints, element_counts


def outputs(graph: Graph, tree: Tree) -> list[str]:
    """The shape by scope, such as `8×64×112×112`; empty where nothing is made, or the shape is not known."""
    begin, _ = tree.span
    late = np.isin(graph.node_phase, [PHASE_ID[phase] for phase in ("init", "backward", "recompute", "optimizer")])
    state = np.isin(graph.value_role, [ROLE_ID[role] for role in ("parameter", "buffer", "state")])
    made = np.flatnonzero((graph.value_producer >= 0) & ~state)
    made = made[~late[graph.value_producer[made]]]
    if not len(made):  # only gradients were captured: then these
        made, late = np.flatnonzero(graph.value_producer >= 0), np.zeros(graph.n_nodes, dtype=bool)
    first = np.full(graph.n_values, len(tree.parent), dtype=np.int64)  # the range of scopes that read it
    last = np.full(graph.n_values, -1, dtype=np.int64)
    read = np.flatnonzero(graph.use_value >= 0)
    read = read[~late[graph.use_node[read]]]
    reader = begin[graph.node_scope[graph.use_node[read]]]
    np.minimum.at(first, graph.use_value[read], reader)
    np.maximum.at(last, graph.use_value[read], reader)
    first[graph.outputs] = -1

    producer, elements = graph.value_producer[made], element_counts(graph)[made]
    best = _Best(graph, tree)
    by_size = made[np.lexsort((made, producer, elements))[::-1]]
    best.claim(by_size, first[by_size], last[by_size])
    # Where nobody outside reads anything: the last thing that was made.
    by_time = made[np.lexsort((made, elements, producer))[::-1]]
    best.claim(by_time, np.full(len(made), -1), last[by_time])
    types = graph.pools.types
    shapes: dict[int, str] = {}
    found: list[str] = []
    for value in best.of_scope:
        type_ = int(graph.value_type[value]) if value >= 0 else 0
        if type_ not in shapes:
            shape = types[type_].shape
            shapes[type_] = (
                "" if shape is None else "×".join("?" if dim is None else str(dim) for dim in shape) or "number"
            )
        found.append(shapes[type_] if value >= 0 else "")
    return found


class _Best:
    """The best value of every scope. A value is handed out by the scopes around it up to the one that holds all of its
    readers: it is offered to these from the inside out, the best value first, and who has one is stepped over."""

    def __init__(self, graph: Graph, tree: Tree) -> None:
        self._home = graph.node_scope, graph.value_producer
        begin, end = tree.span
        self._begin, self._end = begin.tolist(), end.tolist()
        self._parent: list[int] = tree.parent.tolist()
        self.of_scope = [-1] * len(self._parent)
        self._free = list(range(len(self._parent)))  # the nearest scope around that has none, as far as that is known

    def claim(self, values: Ints, first: Ints, last: Ints) -> None:
        """`first` and `last` are the range of scopes (as numbered by `span`) that read each value."""
        scope_of_node, producer = self._home
        scopes = scope_of_node[producer[values]].tolist()
        begin, end, of_scope, parent = self._begin, self._end, self.of_scope, self._parent
        for value, scope, low, high in zip(values.tolist(), scopes, first.tolist(), last.tolist(), strict=True):
            at = self._nearest(scope)
            while at >= 0 and (low < begin[at] or high >= end[at]):
                of_scope[at] = value
                self._free[at] = parent[at]
                at = self._nearest(parent[at]) if at else -1

    def _nearest(self, scope: int) -> int:
        """The nearest scope at or around this one that has no value yet; −1: none."""
        free = self._free
        at = scope
        while at >= 0 and free[at] != at:
            at = free[at]
        while scope >= 0 and scope != at:  # the way is shorter next time
            free[scope], scope = at, free[scope]
        return at
