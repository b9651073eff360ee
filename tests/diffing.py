"""Graphs for the tests of the diff: the same in another order and with other names, and with edits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from opscope.ir import NULL, ROLES, Graph, GraphBuilder, Pools


def rebuilt(graph: Graph, order: Sequence[int], names: str = "other") -> Graph:
    """The same graph with its nodes in another order, other names and pools of its own."""
    pools = Pools()
    pools.string("something else first")
    b = GraphBuilder(pools)
    values = list(range(graph.n_values))
    random.Random(len(order)).shuffle(values)
    new = [0] * graph.n_values
    for old in values:
        type_ = graph.value(old).type
        kind = pools.type(type_.dtype, type_.shape)
        new[old] = b.value(kind, name=f"{names}{old}", role=ROLES[int(graph.value_role[old])])
    b.inputs += [new[v] for v in graph.inputs.tolist()]
    for place, old in enumerate(order):
        node = graph.node(old)
        scope = 0
        for entry in node.scopes:
            scope = pools.scope(scope, entry.name, entry.cls, entry.call)
        row = range(int(graph.use_start[old]), int(graph.use_start[old + 1]))
        made = b.node(
            node.op,
            [NULL if graph.use_value[use] < 0 else new[int(graph.use_value[use])] for use in row],
            args=[use.arg for use in node.uses],
            name=f"{names}{place}",
            scope=scope,
            attrs=dict(reversed(node.attrs.items())),
            phase=node.phase,
        )
        for value in graph.node_outputs.row(old).tolist():
            b.produce(made, new[value])
        for body in node.bodies:
            inner = list(range(body.graph.n_nodes))
            b.body(made, body.label, moved(rebuilt(body.graph, inner[::-1], names), pools))
    b.outputs += [new[v] for v in graph.outputs.tolist()]
    return b.freeze()


def moved(graph: Graph, pools: Pools) -> Graph:
    """The same graph in other pools."""
    b = GraphBuilder(pools)
    new = [
        b.value(pools.type(*graph.value(v).type), name=graph.value(v).name, role=graph.value(v).role)
        for v in range(graph.n_values)
    ]
    b.inputs += [new[v] for v in graph.inputs.tolist()]
    for node in graph.nodes:
        inputs = [NULL if value is None else new[value.index] for value in node.inputs]
        args = [use.arg for use in node.uses]
        scope = 0
        for entry in node.scopes:
            scope = pools.scope(scope, entry.name, entry.cls, entry.call)
        made = b.node(node.op, inputs, args=args, name=node.name, scope=scope, attrs=node.attrs, phase=node.phase)
        for value in node.outputs:
            b.produce(made, new[value.index])
        for body in node.bodies:
            b.body(made, body.label, moved(body.graph, pools))
    b.outputs += [new[v] for v in graph.outputs.tolist()]
    return b.freeze()


@dataclass
class Row:
    """An operator before it is built: `reads` are rows, -1 the input of the graph."""

    op: str
    reads: list[int]
    shape: tuple[int, ...] = (4, 8)
    width: int = 0  # of a weight that it also reads; 0: none
    axis: int = 0


def network(rng: random.Random, count: int) -> list[Row]:
    """A network with branches and skips; operators repeat, as they do in real ones."""
    ops = ["conv", "relu", "add", "matmul", "norm", "mul"]
    rows: list[Row] = []
    for i in range(count):
        op = rng.choice(ops)
        near = list(range(max(-1, i - 4), i))
        reads = [rng.choice(near) for _ in range(2 if op in ("add", "mul") else 1)]
        rows.append(
            Row(op, reads, (4, rng.choice([8, 16, 32])), 8 if op in ("conv", "matmul") else 0, rng.randrange(3))
        )
    return rows


def built(rows: Sequence[Row]) -> Graph:
    pools = Pools()
    b = GraphBuilder(pools)
    x = b.input(pools.type("float32", (4, 8)), name="x")
    made: list[int] = []
    for i, row in enumerate(rows):
        inputs = [x if r < 0 else made[r] for r in row.reads]
        if row.width:
            inputs.append(b.value(pools.type("float32", (row.width, 8)), name=f"w{i}", role="parameter"))
        node = b.node(row.op, inputs, name=f"{row.op}_{i}", attrs={"axis": row.axis, "i": row.axis})
        made.append(b.output(node, pools.type("float32", row.shape)))
    read = {r for row in rows for r in row.reads}
    b.outputs += [value for i, value in enumerate(made) if i not in read]
    return b.freeze()
