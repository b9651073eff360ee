"""A flow graph as a Graph, with Hidet's own text and the definitions of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opscope.ir import NULL, Graph, GraphBuilder, Listing, Pools, Table, column
from opscope.ir.columns import frozen

from .flow import Flow, Operator, Tensor, line_places, printed

_DEEPEST = 20


@dataclass(frozen=True)
class Built:
    graph: Graph
    flow: Flow
    listings: dict[str, Listing]
    warnings: tuple[str, ...]
    constants: tuple[int, ...]  # the value of each constant

    def table(self, stage: int) -> Table | None:
        """What is known of the constants beyond their type."""
        rows = [(v, t) for v, t in zip(self.constants, self.flow.constants, strict=True) if t.value or t.digest]
        if not rows:
            return None
        values, digests = [t.value for _, t in rows], [t.digest for _, t in rows]
        columns = {"value": values, "hash": digests}
        return Table(
            stage,
            "value",
            frozen([value for value, _ in rows]),
            {name: column(texts, known=[bool(t) for t in texts]) for name, texts in columns.items() if any(texts)},
        )


def build(flow: Flow, pools: Pools, depth: int = 0) -> Built:
    b = GraphBuilder(pools)
    values: dict[str, int] = {}
    unknown: list[str] = []
    for tensor in flow.inputs:
        if tensor.key not in values:
            values[tensor.key] = b.input(_type(pools, tensor), name=tensor.name, role=tensor.role or "input")
    constants: list[int] = []
    for tensor in flow.constants:
        if tensor.key not in values:
            values[tensor.key] = b.value(_type(pools, tensor), name=tensor.name, role=tensor.role or "constant")
        constants.append(values[tensor.key])
    for operator in flow.operators:
        _node(b, operator, values, unknown, depth)
    for key in flow.outputs:
        if key in values:
            b.outputs.append(values[key])
        else:
            unknown.append(key)
    warnings: list[str] = []
    if unknown:
        names = ", ".join(repr(key[:40]) for key in dict.fromkeys(unknown[:5]))
        warnings.append(f"{len(unknown)} uses of tensors that nothing makes ({names}): they are left open")
    return Built(b.freeze(), flow, {} if depth else _listings(flow), tuple(warnings), tuple(constants))


def _node(b: GraphBuilder, operator: Operator, values: dict[str, int], unknown: list[str], depth: int) -> None:
    inputs = [values.get(key, NULL) for key in operator.inputs]
    unknown += [key for key in operator.inputs if key not in values]
    node = b.node(
        operator.op,
        inputs,
        name=operator.name,
        scope=operator.scope,
        stack=operator.stack,
        attrs=operator.attrs,
        phase="forward",
    )
    for i, tensor in enumerate(operator.outputs):
        value = b.output(node, _type(b.pools, tensor), name=tensor.name)
        values[tensor.key] = value
        source = operator.shares.get(i, -1)
        if 0 <= source < len(inputs) and inputs[source] != NULL:
            b.set_storage(value, inputs[source])
    if operator.fused is not None and depth < _DEEPEST:
        inner = build(operator.fused, b.pools, depth + 1).graph
        bound = zip(inner.inputs.tolist(), inputs, strict=False)
        b.body(node, operator.fused_label, inner, [(inside, outside) for inside, outside in bound if outside != NULL])


def _type(pools: Pools, tensor: Tensor) -> int:
    return pools.type(tensor.dtype, tensor.shape)


# -- texts ----------------------------------------------------------------------------------------


def _listings(flow: Flow) -> dict[str, Listing]:
    text, places = (flow.text, line_places(flow.text, flow.operators)) if flow.text else printed(flow)
    native = Listing(text, list(zip(places, range(len(places)), strict=True)))
    return {"native": native, **_tasks(flow.operators)}


def _tasks(operators: Sequence[Operator]) -> dict[str, Listing]:
    """The definitions of what is computed, each once, with the operators that have it."""
    users: dict[str, list[int]] = {}
    for i, operator in enumerate(operators):
        if operator.task.strip() and operator.task.strip() != "None":
            users.setdefault(operator.task.strip("\n"), []).append(i)
    if not users:
        return {}
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    for task, nodes in users.items():
        names = ", ".join(operators[i].name or operators[i].op for i in nodes)
        lines.append(f"# {names}")
        places += [(number, nodes[0]) for number in range(len(lines), len(lines) + task.count("\n") + 2)]
        places += [(len(lines), node) for node in nodes[1:]]
        lines += [*task.split("\n"), ""]
    return {"code": Listing("\n".join(lines).rstrip("\n"), places)}
