"""The JSON that `hidet.utils.netron.dump` writes for Hidet's own build of the Netron viewer, in both dialects."""

from __future__ import annotations

from typing import Any, cast

from opscope.errors import BadInput

from . import printed
from .attributes import dimension, parsed
from .flow import NEW, OLD, Flow, Operator, Tensor

Json = dict[str, Any]
_SCALAR = "<>"  # in place of a value that was not written


def parse(data: Any) -> Flow:
    root = _object(data, "the file")
    graphs = root.get("graphs")
    if not isinstance(graphs, list) or not graphs:
        raise BadInput("'graphs' is missing or empty")
    graph = _object(cast("list[Any]", graphs)[0], "graphs[0]")
    nodes = graph.get("nodes")
    if not isinstance(nodes, list):
        raise BadInput("graphs[0] has no list 'nodes'")
    return _Parser().run(graph, cast("list[Any]", nodes))


class _Parser:
    def __init__(self) -> None:
        self.flow = Flow(dialect=OLD)
        self._known: set[str] = set()

    def run(self, graph: Json, nodes: list[Any]) -> Flow:
        flow = self.flow
        for i, parameter in enumerate(_list(graph.get("inputs"))):
            tensor, _ = self._argument(parameter, f"graphs[0].inputs[{i}]")
            flow.inputs.append(tensor)
            self._known.add(tensor.key)
        for i, node in enumerate(nodes):
            self._node(_object(node, f"node {i}"), i)
        for i, parameter in enumerate(_list(graph.get("outputs"))):
            flow.outputs.append(self._argument(parameter, f"graphs[0].outputs[{i}]")[0].key)
        return flow

    def _node(self, node: Json, index: int) -> None:
        where = f"node {index}"
        kind = _object(node.get("type"), f"'type' of {where}")
        op = kind.get("name")
        if not isinstance(op, str) or not op:
            raise BadInput(f"{where} has no type name")
        name = node.get("name")
        operator = Operator(name if isinstance(name, str) else "", op, [], [])
        for parameter in _list(node.get("inputs")):
            tensor, constant = self._argument(parameter, f"an input of {where}")
            if constant and tensor.key not in self._known:
                self._known.add(tensor.key)
                self.flow.constants.append(tensor)
            operator.inputs.append(tensor.key)
        operator.outputs = [self._argument(p, f"an output of {where}")[0] for p in _list(node.get("outputs"))]
        for attribute in _list(node.get("attributes")):
            self._attribute(operator, attribute)
        lines = node.get("description")
        if isinstance(lines, list):
            operator.task = "\n".join(str(line) for line in cast("list[Any]", lines))
        elif isinstance(lines, str):
            operator.task = lines
        self.flow.operators.append(operator)

    def _attribute(self, operator: Operator, attribute: Any) -> None:
        entry = _object(attribute, f"an attribute of {operator.name}")
        name, kind, text = entry.get("name"), entry.get("type"), entry.get("value")
        if not isinstance(name, str):
            return
        if not isinstance(text, str):
            text = "" if text is None else str(text)
        if kind == "FlowGraph":
            try:
                operator.fused = printed.parse(text)
            except BadInput:
                operator.attrs[name] = text
            else:
                names = ", ".join(inner.op for inner in operator.fused.operators)
                operator.printed.append(f"{name}=FlowGraph({names})")
                return
        elif kind == "str":
            operator.attrs[name] = text
            operator.printed.append(f'{name}="{text}"')
            return
        else:
            operator.attrs[name] = parsed(text)
        operator.printed.append(f"{name}={text}")

    def _argument(self, parameter: Any, where: str) -> tuple[Tensor, bool]:
        """The tensor of a parameter, and whether it is a constant."""
        entry = _object(parameter, where)
        arguments = _list(entry.get("arguments"))
        if not arguments:
            raise BadInput(f"{where} has no arguments")
        argument = _object(arguments[0], f"the argument of {where}")
        key = argument.get("name")
        if not isinstance(key, str):
            raise BadInput(f"the argument of {where} has no name")
        tensor = Tensor(key, name=key)
        kind = argument.get("type")
        if isinstance(kind, dict):
            self._type(tensor, cast("Json", kind))
        initializer = argument.get("initializer")
        if isinstance(initializer, dict):
            value = cast("Json", initializer).get("value")
            if isinstance(value, str) and value != _SCALAR:
                tensor.value = value
        return tensor, isinstance(initializer, dict)

    def _type(self, tensor: Tensor, kind: Json) -> None:
        dtype = kind.get("dataType")
        tensor.dtype = dtype if isinstance(dtype, str) else ""
        shape = kind.get("shape")
        dims = cast("Json", shape).get("dimensions") if isinstance(shape, dict) else None
        if isinstance(dims, list):
            entries = cast("list[Any]", dims)
            tensor.shape = tuple(dimension(entry) for entry in entries)
            if any(isinstance(entry, str) for entry in entries):
                self.flow.dialect = NEW


def _object(value: Any, what: str) -> Json:
    if not isinstance(value, dict):
        raise BadInput(f"{what} is not a JSON object")
    return cast("Json", value)


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
