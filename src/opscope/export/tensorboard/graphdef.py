"""A graph as TensorFlow's GraphDef, which is what TensorBoard's graph page shows, and times as its RunMetadata.

The numbers of fields are those of TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor_shape.proto
and step_stats.proto.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opscope.analysis.costs.operators import node_costs
from opscope.analysis.costs.sizes import value_bytes
from opscope.analysis.values import Figure, made_by
from opscope.ir import Graph, Type
from opscope.ir.columns import view
from opscope.ir.enumerations import ROLE_ID
from opscope.ir.rows import Rows
from opscope.ir.text import frame_text

from .names import Names
from .wire import message, number, text

_PRODUCER = 22  # the version of GraphDef that MegEngine's logs and tensorboardX have
_MOST_KEPT = 1 << 14
_LONGEST = 1000  # TensorBoard leaves out attributes of more than 1024 bytes
_DEVICE = "/device:CPU:0"
_DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8,
    "int64": 9, "bool": 10, "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16,
    "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23, "float8_e5m2": 24, "float8_e4m3fn": 25,
}  # fmt: skip
_OPS = {"input": "Placeholder", "parameter": "Parameter", "buffer": "Buffer", "constant": "Const", "state": "State"}


class GraphDef:
    """`known` is what was written of operators, for all graphs with the same pools."""

    def __init__(
        self, graph: Graph, framework: str, figures: Mapping[str, Figure], known: dict[Any, bytes] | None = None
    ) -> None:
        self.graph = graph
        self.figures = made_by(graph, figures)
        self.names = Names(graph)
        self.rows = Rows(graph)
        costs = node_costs(graph, framework)
        self._costs = [view(column) for column in (costs.macs, costs.other, costs.read, costs.written)]
        self._types = graph.pools.types.rows()
        self._is_parameter = view((graph.value_role == ROLE_ID["parameter"]).astype(np.uint8))
        self._known = known if known is not None else {}
        self._unknown, self._bytes_known = view(costs.unknown), view(costs.bytes_known)
        # All that an operator's attributes are made of, but what it makes and reads.
        own = graph.node_phase, graph.node_stack, graph.node_attrs
        self._says = [*self._costs, self._unknown, self._bytes_known, *map(view, own)]
        self.sizes = value_bytes(graph)
        self._controls: dict[int, list[int]] = {}
        control = graph.links_of("control")
        for before, after in zip(control.source.tolist(), control.target.tolist(), strict=True):
            self._controls.setdefault(after, []).append(before)

    def encoded(self) -> list[bytes]:
        """All of it, in pieces of many nodes: a million small ones take more memory than what they say."""
        pieces: list[bytes] = []
        nodes = chain(map(self._outside, self.names.values), map(self._node, range(self.graph.n_nodes)))
        while block := list(islice(nodes, 1000)):
            pieces.append(b"".join([message(1, node) for node in block]))
        return [*pieces, message(4, number(1, _PRODUCER))]

    # -- nodes ----------------------------------------------------------------------------------

    def _outside(self, index: int) -> bytes:
        value = self.graph.value(index)
        attrs = self._outputs([index])
        count, size = value.type.elements, self.sizes[index]
        if value.role in ("parameter", "buffer") and count is not None:
            attrs["params"] = count
        if size >= 0:
            attrs["bytes"] = int(size)
        attrs["role"] = value.role
        return _node_def(self.names.values[index], _OPS.get(value.role, value.role), (), _entries(attrs))

    def _node(self, node: int) -> bytes:
        rows = self.rows
        used, made = rows.used(node), rows.made(node)
        inputs = [self.names.source(value) for value in used if value >= 0]
        inputs += [f"^{self.names.nodes[before]}" for before in self._controls.get(node, ())]
        learned = [value for value in used if value >= 0 and self._is_parameter[value]]
        params = self._params(learned) if learned else None
        figures = self.figures.get(node) if self.figures else None
        # What most operators say, others of the same stage and of other stages have said before.
        key = (
            *[column[node] for column in self._says],
            params,
            *[rows.value_type[value] for value in made],
            *[rows.value_name[value] for value in made],
        )
        entries = self._known.get(key) if figures is None else None
        if entries is None:
            entries = _entries(self._attributes(node, made, params, figures or {}))
            if figures is None and len(self._known) < _MOST_KEPT:
                self._known[key] = entries
        return _node_def(self.names.nodes[node], rows.strings[rows.op[node]], inputs, entries)

    def _attributes(
        self, node: int, made: list[int], params: int | None, figures: Mapping[str, float]
    ) -> dict[str, Any]:
        rows = self.rows
        attrs = self._outputs(made)
        attrs["phase"] = rows.phase(node)
        self._cost(node, attrs)
        if params is not None:
            attrs["params"] = params
        attrs |= {f"output {name}": f"{figure:.6g}" for name, figure in figures.items()}
        place = rows.users_frame(node)
        if place is not None:
            attrs["source"] = frame_text(place)
        if rows.attrs[node]:
            for key, value in self.graph.pools.attrs_of(rows.attrs[node]).items():
                attrs[key if key not in attrs else f"{key} (of the operator)"] = _shown(value)
        return attrs

    def _cost(self, index: int, attrs: dict[str, Any]) -> None:
        if self._unknown[index]:
            attrs["flops"] = "unknown"
            return
        macs, other, read, written = self._costs
        attrs["flops"], attrs["other flops"], attrs["macs"] = 2 * macs[index], other[index], macs[index]
        if self._bytes_known[index]:
            attrs["bytes read"], attrs["bytes written"] = read[index], written[index]

    def _params(self, learned: list[int]) -> int | None:
        """How many learned numbers the operator reads; each tensor once."""
        rows, types = self.rows, self._types
        read = {rows.storage[value]: types[rows.value_type[value]].elements for value in learned}
        return None if None in read.values() else sum(count or 0 for count in read.values())

    def _outputs(self, values: list[int]) -> dict[str, Any]:
        """Shapes, which TensorBoard writes on edges, and the type of the first output."""
        attrs: dict[str, Any] = {}
        if values:
            rows, types = self.rows, self._types
            attrs["_output_shapes"] = tuple([types[rows.value_type[value]] for value in values])
            dtype = attrs["_output_shapes"][0].dtype
            if dtype in _DTYPES:
                attrs["dtype"] = _Dtype(_DTYPES[dtype])
            elif dtype:
                attrs["dtype"] = dtype
            names = [rows.value_name[value] for value in values]
            if any(names):
                attrs["makes"] = ", ".join([rows.strings[name] or "?" for name in names])
        return attrs

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


class _Dtype(int):
    """A number of TensorFlow's DataType."""


def _shown(value: Any) -> Any:
    """Numbers and text as they are, everything else as JSON."""
    is_plain = isinstance(value, bool | str) or (isinstance(value, int) and -(2**63) <= value < 2**63)
    return value if is_plain else json.dumps(value, ensure_ascii=False, default=str)


def _node_def(name: str, op: str, inputs: Sequence[str], entries: bytes) -> bytes:
    return b"".join([text(1, name), _op(op), *[text(3, source) for source in inputs], entries])


def _entries(attrs: dict[str, Any]) -> bytes:
    return b"".join([_entry(key, value) for key, value in attrs.items()])


@lru_cache(1 << 14)
def _op(name: str) -> bytes:
    return text(2, name)


@lru_cache(1 << 14, typed=True)  # True is not 1 here
def _entry(key: str, value: Any) -> bytes:
    return message(5, text(1, key), message(2, _attr(value)))


def _attr(value: Any) -> bytes:
    if isinstance(value, _Dtype):
        return number(6, value)
    if isinstance(value, bool):
        return number(5, value)
    if isinstance(value, int):
        return number(3, value)
    if isinstance(value, tuple):
        return message(1, *(message(7, *_shape(type_)) for type_ in cast("tuple[Type, ...]", value)))
    return text(2, str(value)[:_LONGEST])


def _shape(type_: Type) -> Iterator[bytes]:
    if type_.shape is None:
        yield number(3, 1)
        return
    for dim in type_.shape:
        yield message(2, number(1, dim) if isinstance(dim, int) else number(1, -1) + text(2, str(dim or "")))
