"""A graph as TensorFlow's GraphDef, which is what TensorBoard's graph page shows, and times as its RunMetadata.

The numbers of fields are those of TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor_shape.proto
and step_stats.proto.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.analysis.costs.operators import CostTable, node_costs
from opscope.analysis.costs.sizes import value_bytes
from opscope.analysis.values import Figure, made_by
from opscope.ir import Graph, Node, Type, Value
from opscope.ir.places import users_frame
from opscope.ir.text import frame_text

from .names import Names
from .wire import message, number, text

_PRODUCER = 22  # the version of GraphDef that MegEngine's logs and tensorboardX have
_LONGEST = 1000  # TensorBoard leaves out attributes of more than 1024 bytes
_DEVICE = "/device:CPU:0"
_DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8,
    "int64": 9, "bool": 10, "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16,
    "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23, "float8_e5m2": 24, "float8_e4m3fn": 25,
}  # fmt: skip
_OPS = {"input": "Placeholder", "parameter": "Parameter", "buffer": "Buffer", "constant": "Const", "state": "State"}


class GraphDef:
    def __init__(self, graph: Graph, framework: str, figures: Mapping[str, Figure]) -> None:
        self.graph = graph
        self.figures = made_by(graph, figures)
        self.names = Names(graph)
        self.costs: CostTable = node_costs(graph, framework)
        self.sizes = value_bytes(graph)
        self._controls: dict[int, list[int]] = {}
        control = graph.links_of("control")
        for before, after in zip(control.source.tolist(), control.target.tolist(), strict=True):
            self._controls.setdefault(after, []).append(before)

    def encoded(self) -> bytes:
        nodes = [*map(self._outside, self.names.values), *map(self._node, self.graph.nodes)]
        return b"".join([*(message(1, node) for node in nodes), message(4, number(1, _PRODUCER))])

    # -- nodes ----------------------------------------------------------------------------------

    def _outside(self, index: int) -> bytes:
        value = self.graph.value(index)
        attrs = _outputs([value])
        count, size = value.type.elements, self.sizes[index]
        if value.role in ("parameter", "buffer") and count is not None:
            attrs["params"] = count
        if size >= 0:
            attrs["bytes"] = int(size)
        attrs["role"] = value.role
        return _node_def(self.names.values[index], _OPS.get(value.role, value.role), (), attrs)

    def _node(self, node: Node) -> bytes:
        inputs = [self.names.source(value) for value in node.inputs if value is not None]
        inputs += [f"^{self.names.nodes[before]}" for before in self._controls.get(node.index, ())]
        attrs = _outputs(node.outputs)
        attrs |= {"phase": node.phase} | self._cost(node.index) | self._params(node)
        attrs |= {f"output {name}": f"{figure:.6g}" for name, figure in self.figures.get(node.index, {}).items()}
        place = users_frame(node.frames)
        if place is not None:
            attrs["source"] = frame_text(place)
        for key, value in node.attrs.items():
            attrs[key if key not in attrs else f"{key} (of the operator)"] = _shown(value)
        return _node_def(self.names.nodes[node.index], node.op, inputs, attrs)

    def _cost(self, index: int) -> dict[str, Any]:
        costs = self.costs
        if costs.unknown[index]:
            return {"flops": "unknown"}
        found: dict[str, Any] = {
            "flops": 2 * int(costs.macs[index]),
            "other flops": int(costs.other[index]),
            "macs": int(costs.macs[index]),
        }
        if costs.bytes_known[index]:
            found |= {"bytes read": int(costs.read[index]), "bytes written": int(costs.written[index])}
        return found

    def _params(self, node: Node) -> dict[str, Any]:
        """How many learned numbers the operator reads; each tensor once."""
        read = {v.storage.index: v.type.elements for v in node.inputs if v is not None and v.role == "parameter"}
        if not read or any(count is None for count in read.values()):
            return {}
        return {"params": sum(count or 0 for count in read.values())}

    # -- run metadata ---------------------------------------------------------------------------

    def run_metadata(self, nanoseconds: npt.NDArray[np.float64], known: npt.NDArray[np.bool_]) -> bytes:
        """What each node took, one behind the other, and the memory of what it makes."""
        stats: list[bytes] = []
        now = 0.0
        measured: list[int] = np.flatnonzero(known).tolist()
        for index in measured:
            micros = max(1, round(float(nanoseconds[index]) / 1000))
            made = self.graph.node(index).outputs
            memory = sum(max(0, int(self.sizes[value.index])) for value in made)
            stats.append(
                message(
                    2,
                    text(1, self.names.nodes[index]),
                    number(2, int(now)),
                    number(4, micros),
                    number(5, micros),
                    message(6, text(1, "cpu"), number(2, memory)),
                )
            )
            now += micros
        return message(1, message(1, text(1, _DEVICE), *stats))


def _outputs(values: Sequence[Value]) -> dict[str, Any]:
    """Shapes, which TensorBoard writes on edges, and the type of the first output."""
    attrs: dict[str, Any] = {}
    if values:
        attrs["_output_shapes"] = [value.type for value in values]
        dtype = values[0].type.dtype
        if dtype in _DTYPES:
            attrs["dtype"] = _Dtype(_DTYPES[dtype])
        elif dtype:
            attrs["dtype"] = dtype
        if any(value.name for value in values):
            attrs["makes"] = ", ".join(value.name or "?" for value in values)
    return attrs


class _Dtype(int):
    """A number of TensorFlow's DataType."""


def _shown(value: Any) -> Any:
    """Numbers and text as they are, everything else as JSON."""
    is_plain = isinstance(value, bool | str) or (isinstance(value, int) and -(2**63) <= value < 2**63)
    return value if is_plain else json.dumps(value, ensure_ascii=False, default=str)


def _node_def(name: str, op: str, inputs: Sequence[str], attrs: dict[str, Any]) -> bytes:
    parts = [text(1, name), text(2, op), *(text(3, source) for source in inputs)]
    parts += [message(5, text(1, key), message(2, _attr(value))) for key, value in attrs.items()]
    return b"".join(parts)


def _attr(value: Any) -> bytes:
    if isinstance(value, _Dtype):
        return number(6, value)
    if isinstance(value, bool):
        return number(5, value)
    if isinstance(value, int):
        return number(3, value)
    if isinstance(value, list):
        return message(1, *(message(7, *_shape(type_)) for type_ in value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return text(2, str(value)[:_LONGEST])


def _shape(type_: Type) -> Iterator[bytes]:
    if type_.shape is None:
        yield number(3, 1)
        return
    for dim in type_.shape:
        yield message(2, number(1, dim) if isinstance(dim, int) else number(1, -1) + text(2, str(dim or "")))
