"""The graphs of an ONNX model: the main one, functions, and the bodies of `If`, `Loop` and `Scan`.

Values are known by name. A body sees the names of the graphs around it: each one that it reads becomes an input of the
body, bound to the value outside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from opscope.errors import BadInput
from opscope.ir import NULL, Graph, GraphBuilder, Pools, Table, column
from opscope.ir.attributes import EXPORTED_FROM
from opscope.ir.columns import frozen
from opscope.readers.neighbours import between
from opscope.readers.protobuf import Message, Reader

from .places import Places
from .tensors import FEW, Data, Typed, data_of, numbers, type_of, type_of_sparse, type_of_tensor

_DEEPEST = 30  # graphs in graphs
_MOST_BODIES = 30_000  # each as often as it is called; models of functions have one for each operator
_LONGEST_TEXT = 500
_STANDARD = ("", "ai.onnx")
_BUFFERS = re.compile(
    r"(?:^|[._/])(?:running_(?:mean|var)|num_batches_tracked|moving_(?:mean|variance)|inv_freq|position_ids|"
    r"relative_position_index|attn_mask)\b"
)
# Numbers that an exporter or optimizer made: `val_3`, `/layer/Constant_output_0`.
_MADE_UP = re.compile(r"val_\d+|_?lifted_tensor\w*|(?:.*/)?Constant(?:OfShape)?_?\d*(?:_output_\d+)?|scalar_tensor\w*")
_GRADIENT = re.compile(r"\w*Grad(?:_\d+)?$")
_OPTIMIZERS = frozenset(
    ("Adam", "Adagrad", "Momentum", "AdamOptimizer", "AdamWOptimizer", "SGDOptimizer", "LambOptimizer")
)


class Weight(NamedTuple):
    value: int
    type: Typed
    data: Data


@cache
def arguments() -> dict[str, tuple[str, ...]]:
    """What each operator calls its inputs."""
    text = Path(__file__).with_name("arguments.txt").read_text(encoding="utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.replace("\n ", " ").splitlines():
        if not line.startswith("#"):
            names, _, ops = line.partition(" < ")
            found.update(dict.fromkeys(ops.split(), tuple(names.split())))
    return found


def op_name(node: Message) -> str:
    """`Conv` of the standard's own; others with their domain: `com.microsoft.FusedMatMul`."""
    op, domain = str(node.get("op_type") or "unnamed"), str(node.get("domain", ""))
    return op if domain in _STANDARD else f"{domain}.{op}"


class Model:
    """Builds the graphs of one model, which share pools, functions and warnings."""

    def __init__(self, reader: Reader, pools: Pools, functions: Sequence[Message]) -> None:
        self.reader, self.pools = reader, pools
        self.places = Places(pools)
        self.functions = {_key(f.get("domain"), f.get("name"), f.get("overload")): f for f in functions}
        self.warnings: list[str] = []
        self.missing: list[str] = []  # names that are read and that nothing makes
        self.repeated = 0
        self.weights: list[Weight] = []  # of the main graph
        self.guessed = 0  # nodes whose module is that of their weights or neighbours
        self._graphs: dict[tuple[str, str, str], Graph | None] = {}
        self._bodies: dict[int, int] = {}  # how many a graph has, with those inside of them, by identity
        self._taken = 0
        self._types: dict[Typed, int] = {}

    def main(self, raw: Message) -> Graph:
        self._main = _Part(self, None, 0)
        graph = self._main.graph(raw)
        self.weights = self._main.weights
        return graph

    def training(self, raw: Message) -> Graph:
        """A graph that sees the names of the main one, and whose results replace them."""
        return _Part(self, self._main, 0).graph(raw)

    def function_of(self, node: Message, depth: int) -> Graph | None:
        """The body of the function that a node calls."""
        key = _key(node.get("domain"), node.get("op_type"), node.get("overload"))
        if key not in self.functions:
            return None
        if key not in self._graphs:
            self._graphs[key] = None  # a function that calls itself has no body inside of itself
            self._graphs[key] = _Part(self, None, depth + 1).function(self.functions[key])
        return self._graphs[key]

    def type(self, found: Typed) -> int:
        if found not in self._types:
            self._types[found] = self.pools.type(found.dtype, found.shape)
        return self._types[found]

    def take(self, graph: Graph) -> bool:
        """Whether a body fits into what one model may hold, counting what is in it as often as it is called."""
        count = 1 + sum(self._bodies.get(id(body.graph), 0) for body in graph.bodies)
        self._bodies[id(graph)] = count
        self._taken += count
        return self._taken <= _MOST_BODIES

    def finish(self) -> list[str]:
        if self.missing:
            names = ", ".join(repr(name)[:60] for name in list(dict.fromkeys(self.missing))[:5])
            self.warnings.append(f"{len(self.missing):,} inputs name values that nothing makes, shown as null: {names}")
        if self.repeated:
            self.warnings.append(f"{self.repeated:,} values have the name of an earlier one: the later one counts")
        if self.guessed:
            self.warnings.append(
                f"{self.guessed:,} operators have no module in their name: they are shown in that of their weights, or "
                "of the operators around them"
            )
        return self.warnings


def _key(*parts: object) -> tuple[str, str, str]:
    domain, name, overload = (str(part or "") for part in parts)
    return ("" if domain in _STANDARD else domain, name, overload)


class _Part:
    """One graph of a model."""

    def __init__(self, model: Model, outer: _Part | None, depth: int) -> None:
        if depth > _DEEPEST:
            raise BadInput(f"graphs are nested more than {_DEEPEST} deep")
        self.model, self.outer, self.depth = model, outer, depth
        self.b = GraphBuilder(model.pools)
        self.values: dict[str, int] = {}
        self.types: dict[str, Typed] = {}
        self.constants: dict[str, Any] = {}  # small tensors by name
        self.roles: dict[str, str] = {}  # of weights
        self.bindings: list[tuple[int, int]] = []  # what it reads of the graph around it
        self.made: set[str] = set()  # names that nodes of this graph make
        self.waiting: dict[str, int] = {}  # read before they are made
        self.weights: list[Weight] = []
        self.scopes: list[int] = []

    # -- kinds of graphs --------------------------------------------------------------------------

    def graph(self, raw: Message) -> Graph:
        for info in (*raw.get("value_info", ()), *raw.get("output", ())):
            self.types[info.get("name", "")] = type_of(info.get("type"))
        self._names(raw.get("node", ()))
        held = {tensor.get("name", "") for tensor in raw.get("initializer", ())}
        held |= {tensor.get("values", {}).get("name", "") for tensor in raw.get("sparse_initializer", ())}
        for info in raw.get("input", ()):
            name = info.get("name", "")
            self.types[name] = type_of(info.get("type"))
            if name not in held:  # one that is both is a weight that a caller may replace
                self.values[name] = self.b.input(self._type(name), name=name)
        for tensor in raw.get("initializer", ()):
            self._weight(tensor)
        for tensor in raw.get("sparse_initializer", ()):
            name = tensor.get("values", {}).get("name", "")
            type_ = self.model.type(type_of_sparse(tensor))
            self.values[name] = self.b.value(type_, name=name, role="parameter")
        self._nodes(raw.get("node", ()))
        return self._finish([info.get("name", "") for info in raw.get("output", ())])

    def function(self, raw: Message) -> Graph:
        for info in raw.get("value_info", ()):
            self.types[info.get("name", "")] = type_of(info.get("type"))
        self._names(raw.get("node", ()))
        for name in raw.get("input", ()):
            self.values[name] = self.b.input(self._type(name), name=name)
        self._nodes(raw.get("node", ()))
        return self._finish(raw.get("output", ()))

    def _finish(self, outputs: Sequence[str]) -> Graph:
        for name in outputs:
            value = self._value(name)
            if value != NULL:
                self.b.outputs.append(value)
        return self.b.freeze()

    def _names(self, nodes: Sequence[Message]) -> None:
        for node in nodes:
            self.made.update(node.get("output", ()))

    # -- values -----------------------------------------------------------------------------------

    def _type(self, name: str) -> int:
        return self.model.type(self.types.get(name, Typed()))

    def _weight(self, tensor: Message) -> None:
        name, type_ = str(tensor.get("name", "")), type_of_tensor(tensor)
        self.types[name] = type_
        self.roles[name] = role_of(name, type_)
        value = self.values[name] = self.b.value(self.model.type(type_), name=name, role=self.roles[name])
        few = numbers(self.model.reader, tensor)
        if few is not None:
            self.constants[name] = few
        data = data_of(tensor)
        if data is not None and data.size:
            self.weights.append(Weight(value, type_, data))

    def _value(self, name: str) -> int:
        """The value of this name, in this graph or in one around it; NULL for none."""
        if not name:
            return NULL
        found = self.values.get(name)
        if found is None:
            found = self._later(name)
        if found is None:
            self.model.missing.append(name)
            return NULL
        return found

    def _later(self, name: str) -> int | None:
        if name in self.made:
            self.waiting[name] = self.values[name] = self.b.value(self._type(name), name=name)
            return self.values[name]
        around = self.outer.reach(name) if self.outer is not None else None
        if around is None or self.outer is None:
            return None
        value, type_, role = around
        self.types[name], self.roles[name] = type_, role
        self.values[name] = self.b.input(self.model.type(type_), name=name, role=role)
        self.bindings.append((self.values[name], value))
        if name in (outer := self.outer.constants):
            self.constants[name] = outer[name]
        return self.values[name]

    def reach(self, name: str) -> tuple[int, Typed, str] | None:
        """A value for a body of this graph: its number, type and role."""
        value = self.values.get(name)
        if value is None:
            value = self._later(name)
        if value is None:
            return None
        return value, self.types.get(name, Typed()), self.roles.get(name, "input")

    # -- nodes ------------------------------------------------------------------------------------

    def _nodes(self, nodes: Sequence[Message]) -> None:
        places = [self.model.places.of(_metadata(node), node.get("name", "")) for node in nodes]
        self.scopes = [place.scope for place in places]
        guessed = self._neighbours(nodes) if nodes and not any(self.scopes) and not self.depth else {}
        for i, (node, place) in enumerate(zip(nodes, places, strict=True)):
            attrs = self._attributes(node)
            if place.exported_from:
                attrs[EXPORTED_FROM] = place.exported_from
            if i in guessed:
                attrs["scope by"] = guessed[i]
            self._node(node, attrs, place.stack, self.scopes[i])

    def _node(self, raw: Message, attrs: dict[str, Any], stack: int, scope: int) -> None:
        op, b = op_name(raw), self.b
        inputs = [self._value(name) for name in raw.get("input", ())]
        graphs = _graphs(raw)
        if op == "Loop" and raw.get("input"):
            trips = _single(self.constants.get(raw["input"][0]))
            if isinstance(trips, int):
                attrs["max_trip_count"] = trips
        elif op == "Constant" and raw.get("output"):
            self._constant(raw, attrs)
        node = b.node(
            op,
            inputs,
            args=argument_names(op, len(inputs)),
            name=str(raw.get("name", "")),
            scope=scope,
            stack=stack,
            attrs=attrs,
            phase=phase_of(raw),
        )
        for name in raw.get("output", ()):
            self._output(node, name)
        for label, graph in graphs:
            part = _Part(self.model, self, self.depth + 1)
            self._body(node, label, part.graph(graph), inputs, op, attrs, part.bindings)
        if not graphs and (function := self.model.function_of(raw, self.depth)) is not None:
            self._body(node, "function", function, inputs, "", attrs, ())

    def _output(self, node: int, name: str) -> None:
        if not name:  # one that nobody wants keeps its place
            self.b.output(node)
            return
        if name in self.waiting:
            self.b.produce(node, self.waiting.pop(name))
            return
        self.model.repeated += name in self.values
        self.values[name] = self.b.output(node, self._type(name), name=name)

    def _body(
        self,
        node: int,
        label: str,
        graph: Graph,
        inputs: Sequence[int],
        op: str,
        attrs: Mapping[str, Any],
        captured: Sequence[tuple[int, int]],
    ) -> None:
        if not self.model.take(graph):
            raise BadInput(f"functions that call functions: more than {_MOST_BODIES:,} calls in all")
        inside = [value for value in graph.inputs.tolist() if value not in {i for i, _ in captured}]
        # A loop's body is given the count and the condition first; an `If` gives its branches nothing.
        given = inputs[2:] if op == "Loop" else () if op == "If" else inputs
        inside = inside[2:] if op == "Loop" else inside
        pairs = [(i, o) for i, o in zip(inside, given, strict=False) if o != NULL]
        self.b.body(node, label, graph, [*pairs, *captured])

    def _constant(self, raw: Message, attrs: Mapping[str, Any]) -> None:
        """The type of a constant is that of what it holds."""
        name = raw["output"][0]
        for attribute in raw.get("attribute", ()):
            kind = attribute.get("name")
            if kind == "value" and "t" in attribute:
                found = type_of_tensor(attribute["t"])
                few = numbers(self.model.reader, attribute["t"])
            elif kind in ("value_int", "value_float", "value_string"):
                found = Typed(_CONSTANTS[kind], ())
                few = attrs.get(kind)
            elif kind in ("value_ints", "value_floats", "value_strings"):
                count = len(attribute.get(kind.removeprefix("value_"), ()))
                found = Typed(_CONSTANTS[kind[:-1]], (count,))
                few = attrs.get(kind)
            else:
                continue
            if name not in self.types or self.types[name].shape is None:
                self.types[name] = found
            if few is not None:
                self.constants[name] = few

    # -- attributes -------------------------------------------------------------------------------

    def _attributes(self, raw: Message) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for attribute in raw.get("attribute", ()):
            name = str(attribute.get("name", ""))
            value = self._plain(attribute)
            if value is not None:
                found[name] = value
        if raw.get("overload"):
            found["overload"] = raw["overload"]
        return found

    def _plain(self, attribute: Message) -> Any:
        if attribute.get("ref_attr_name"):
            return f"@{attribute['ref_attr_name']}"  # an attribute of the function around it
        kind = _KINDS.get(attribute.get("type", 0)) or next((k for k in _KINDS.values() if k in attribute), "")
        if kind in ("g", "graphs"):
            return None
        value = attribute.get(kind, [] if kind.endswith("s") and len(kind) > 1 else None)
        if kind == "s":
            return text_of(value or b"")
        if kind in ("ints", "floats", "strings"):
            listed = [text_of(item) if isinstance(item, bytes) else item for item in value[:FEW]]
            return listed if len(value) <= FEW else [*listed, f"… {len(value) - FEW:,} more"]
        if kind == "t":
            return self._shown(value or {})
        if kind == "tensors":
            return [self._shown(tensor) for tensor in value[:FEW]]
        if kind == "sparse_tensor":
            return str(type_of_sparse(value or {}))
        if kind == "tp":
            return str(type_of(value))
        if kind == "type_protos":
            return [str(type_of(item)) for item in value[:FEW]]
        return value if value is not None else 0.0 if kind == "f" else 0 if kind == "i" else None

    def _shown(self, tensor: Message) -> Any:
        few = numbers(self.model.reader, tensor)
        return few if few is not None else str(type_of_tensor(tensor))

    # -- modules of nodes without names -------------------------------------------------------------

    def _neighbours(self, nodes: Sequence[Message]) -> dict[int, str]:
        """No node says where it is: those that read a weight are in its module, others between them. The evidence by
        node."""
        places, found = self.model.places, dict[int, str]()
        makers = {name: i for i, node in enumerate(nodes) for name in node.get("output", ())}
        following: list[list[int]] = [[] for _ in nodes]
        for i, node in enumerate(nodes):
            for name in node.get("input", ()):
                source = makers.get(name, i)
                if source < i:
                    following[source].append(i)
                elif name in self.values and not self.scopes[i]:
                    self.scopes[i] = places.of_weight(name)
                    if self.scopes[i]:
                        found[i] = "weights"
        if found:
            for i, scope in between(self.model.pools, self.scopes, following, range(len(nodes))).items():
                self.scopes[i] = scope
                found[i] = "neighbours"
        self.model.guessed += len(found)
        return found


# AttributeProto.AttributeType -> the field that has the value
_KINDS = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs",
    11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos",
}  # fmt: skip
_CONSTANTS = {"value_int": "int64", "value_float": "float32", "value_string": "string"}


def _single(value: Any) -> Any:
    """The number of a tensor that holds one."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return items[0] if len(items) == 1 else None


def argument_names(op: str, count: int) -> list[str]:
    """`X`, `W`, `B`; of a list `inputs[0]`, `inputs[1]`; by number where the operator is not known."""
    names = arguments().get(op)
    if names is None:
        return [str(i) for i in range(count)]
    found = [name for name in names if not name.endswith("*")][:count]
    if names[-1].endswith("*"):
        return [*found, *(f"{names[-1][:-1]}[{i}]" for i in range(count - len(found)))]
    return [*found, *(str(i) for i in range(len(found), count))]


def _graphs(node: Message) -> list[tuple[str, Message]]:
    found: list[tuple[str, Message]] = []
    for attribute in node.get("attribute", ()):
        label = str(attribute.get("name", ""))
        if "g" in attribute:
            found.append((label, attribute["g"]))
        found += [(f"{label}[{i}]", graph) for i, graph in enumerate(attribute.get("graphs", ()))]
    return found


def _metadata(node: Message) -> dict[str, str]:
    return {entry.get("key", ""): entry.get("value", "") for entry in node.get("metadata_props", ())}


def text_of(data: bytes) -> str:
    text = data[: 4 * _LONGEST_TEXT].decode("utf-8", "backslashreplace")
    return text if len(data) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(data):,} bytes)"


def role_of(name: str, type_: Typed) -> str:
    """To the file all are initializers. Indices and shapes are constants; numbers that were learned are parameters."""
    if _BUFFERS.search(name):
        return "buffer"
    sizes = [size for size in type_.shape or () if isinstance(size, int)]
    if not type_.dtype.startswith(("float", "bfloat")):
        is_weight = type_.dtype in ("int8", "uint8", "int4", "uint4", "int2", "uint2") and len(sizes) > 1
        return "parameter" if is_weight else "constant"
    is_single = all(size <= 1 for size in sizes)
    return "constant" if is_single and ("." not in name or _MADE_UP.fullmatch(name)) else "parameter"


def phase_of(node: Message) -> str:
    op, domain = str(node.get("op_type", "")), str(node.get("domain", ""))
    if domain in ("com.microsoft", "ai.onnx.preview.training"):
        if op in _OPTIMIZERS:
            return "optimizer"
        if _GRADIENT.fullmatch(op):
            return "backward"
    return "forward"


def weights_table(weights: Sequence[Weight]) -> Table | None:
    """Where the numbers of each weight lie."""
    if not weights:
        return None
    return Table(
        0,
        "value",
        frozen([weight.value for weight in weights]),
        {
            "offset": column(np.array([weight.data.at for weight in weights], dtype=np.int64)),
            "size": column(np.array([weight.data.size for weight in weights], dtype=np.int64), "B"),
            "file": column([weight.data.file for weight in weights], known=[bool(w.data.file) for w in weights]),
        },
    )
