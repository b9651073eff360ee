"""A graph with some fused operators opened: replaced by what was inside of them."""

from __future__ import annotations

from collections.abc import Collection

from opscope.ir import NULL, ROLES, Body, Graph, GraphBuilder

FUSED = "fused"  # the label of a body that says what a fused operator is made of


def fused_body(graph: Graph, node: int) -> Body | None:
    bodies = [body for body in graph.bodies_by_node.get(node, ()) if body.label.startswith(FUSED)]
    return bodies[0] if len(bodies) == 1 and bodies[0].graph.n_nodes else None


def inlined(graph: Graph, nodes: Collection[int]) -> tuple[Graph, list[int]]:
    """The graph with these nodes opened, and for each of its nodes the one it stands for."""
    return _Inliner(graph, nodes).run()


class _Inliner:
    def __init__(self, graph: Graph, nodes: Collection[int]) -> None:
        self._graph = graph
        self._bodies = {node: body for node in nodes if (body := fused_body(graph, node)) is not None}
        self._builder = GraphBuilder(graph.pools)
        self._values: dict[int, int] = {}  # outside -> new
        self._inside: dict[int, dict[int, int]] = {}  # node -> inside -> new
        self._owners: list[int] = []

    def run(self) -> tuple[Graph, list[int]]:
        graph, b = self._graph, self._builder
        listed = set(graph.inputs.tolist())
        for value in range(graph.n_values):
            if int(graph.value_producer[value]) not in self._bodies:
                self._values[value] = self._copy(graph, value)
                if value in listed:
                    b.inputs.append(self._values[value])
        for node, body in self._bodies.items():
            self._open(node, body)
        for node in range(graph.n_nodes):
            body = self._bodies.get(node)
            if body is None:
                self._node(graph, node, self._values, node)
            else:
                for inner in range(body.graph.n_nodes):
                    self._node(body.graph, inner, self._inside[node], node)
        b.outputs += [self._values[value] for value in graph.outputs.tolist()]
        return b.freeze(), self._owners

    def _copy(self, graph: Graph, value: int) -> int:
        strings = graph.pools.strings
        return self._builder.value(
            int(graph.value_type[value]),
            name=strings[int(graph.value_name[value])],
            role=ROLES[int(graph.value_role[value])],
        )

    def _open(self, node: int, body: Body) -> None:
        bound = dict(body.bindings)
        inside: dict[int, int] = {}
        for value in range(body.graph.n_values):
            outside = self._values.get(bound.get(value, NULL))
            inside[value] = self._copy(body.graph, value) if outside is None else outside
        self._inside[node] = inside
        made = self._graph.node_outputs.row(node).tolist()
        given = body.graph.outputs.tolist()
        for k, value in enumerate(made):
            self._values[value] = inside[given[k]] if k < len(given) else self._copy(self._graph, value)

    def _node(self, graph: Graph, node: int, values: dict[int, int], owner: int) -> None:
        b, strings = self._builder, graph.pools.strings
        handle = graph.node(node)
        row = range(int(graph.use_start[node]), int(graph.use_start[node + 1]))
        new = b.node(
            handle.op,
            [NULL if graph.use_value[use] < 0 else values[int(graph.use_value[use])] for use in row],
            args=[strings[int(graph.use_arg[use])] for use in row],
            name=handle.name,
            scope=int(graph.node_scope[node]),
            stack=int(graph.node_stack[node]),
            attrs=int(graph.node_attrs[node]),
            phase=handle.phase,
        )
        self._owners.append(owner)
        for value in graph.node_outputs.row(node).tolist():
            b.produce(new, values[value])
        for body in handle.bodies:
            b.body(new, body.label, body.graph)
