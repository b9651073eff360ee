"""A GraphDef, or a function of its library, as a graph.

Calls of functions are put in place of the call, as TensorFlow does before it runs them; branches and loops keep theirs
as bodies. Constants and variables are values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from opscope.errors import BadInput
from opscope.ir import NULL, Graph, GraphBuilder, Pools
from opscope.ir.pools import Dim
from opscope.readers.pages import Span
from opscope.readers.protobuf import Message, Reader

from .shapes import Shape, inferred

_MOST_NODES = 500_000  # with what is put in place of calls
_MOST_BODIES = 20_000
_DEEPEST = 40
_FEW = 64
_MOST_OUTPUTS = 10_000
_MOST_PARTS = 40
_LARGEST_DIM = 1 << 62
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_NOTHING = ("NoOp", "Assert", "SaveV2", "AssignVariableOp", "MergeV2Checkpoints")
_INNER = ("then_branch", "else_branch", "cond", "body", "branches", "f")
_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64",
    9: "int64", 10: "bool", 11: "qint8", 12: "quint8", 13: "qint32", 14: "bfloat16", 15: "qint16", 16: "quint16",
    17: "uint16", 18: "complex128", 19: "float16", 20: "resource", 21: "variant", 22: "uint32", 23: "uint64",
    24: "float8_e5m2", 25: "float8_e4m3fn", 29: "int4", 30: "uint4",
}  # fmt: skip
_NUMPY = {"float32": "<f4", "float64": "<f8", "int32": "<i4", "int64": "<i8", "bool": "?", "float16": "<f2"}
_RESULT = {"Cast": "DstT", "ArgMax": "output_type", "ArgMin": "output_type", "Shape": "out_type", "Size": "out_type"}
_BOOLEAN = (
    *("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalNot"),
    "IsNan",
)
# Results of operators that have several, in order: a function names them.
_OUTPUTS = {
    "FusedBatchNormV3": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"),
    "TopKV2": ("values", "indices"), "Unique": ("y", "idx"), "Switch": ("output_false", "output_true"),
    "Merge": ("output", "value_index"), "TensorArrayV3": ("handle", "flow"),
}  # fmt: skip
# What operators call their inputs, where a formula asks for them.
ARGUMENTS = {
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), ("input", "filter")),
    "Conv2DBackpropInput": ("input_sizes", "filter", "out_backprop"),
    "_FusedConv2D": ("input", "filter", "args"), "_FusedMatMul": ("a", "b", "args"),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), ("a", "b")),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
                    ("x", "scale", "offset", "mean", "variance")),
    **dict.fromkeys(("GatherV2", "Gather", "GatherNd"), ("params", "indices")),
}  # fmt: skip


class Value(NamedTuple):
    id: int
    dtype: str
    shape: Shape
    constant: Any = None  # the numbers, where they are few
    control: int = NULL  # the node behind it, if any


class Model:
    """The functions of a file, and what is shared by its graphs."""

    def __init__(self, reader: Reader | None, pools: Pools, library: Sequence[Message]) -> None:
        self.reader, self.pools = reader, pools
        self.functions = {str(f.get("signature", {}).get("name", "")): f for f in library}
        self.missing: list[str] = []
        self.unshaped = 0
        self.nodes = self.bodies = 0

    def graph(self, nodes: Sequence[Message]) -> Graph:
        part = Part(self, 0)
        part.nodes(nodes, {})
        part.end()
        return part.b.freeze()

    def function(self, name: str, depth: int) -> tuple[Graph, list[int]] | None:
        """The graph of a function, with the values that its arguments are."""
        raw = self.functions.get(name)
        if raw is None:
            return None
        part = Part(self, depth)
        given: list[Value] = []
        for i, arg in enumerate(raw.get("signature", {}).get("input_arg", ())):
            given.append(part.argument(arg, _shapes_of(raw, i)))
        part.b.outputs += [value.id for value in part.call(raw, given, (name,)) if value.id != NULL]
        return part.b.freeze(), [value.id for value in given]

    def finish(self) -> list[str]:
        warnings: list[str] = []
        if self.missing:
            names = ", ".join(repr(name)[:60] for name in list(dict.fromkeys(self.missing))[:5])
            warnings.append(f"{len(self.missing):,} inputs name values that nothing makes, shown as null: {names}")
        if self.unshaped:
            warnings.append(
                f"{self.unshaped:,} values have no shape in the file, and none that follows from others: costs of what "
                "reads them are unknown. TensorFlow keeps shapes in SavedModels of functions with an input_signature"
            )
        return warnings


class Part:
    """One graph, with what is put in place of its calls."""

    def __init__(self, model: Model, depth: int) -> None:
        if depth > _DEEPEST:
            raise BadInput(f"functions are nested more than {_DEEPEST} deep")
        self.model, self.depth = model, depth
        self.b = GraphBuilder(model.pools)
        self.read: set[int] = set()
        self.made: list[int] = []
        # The nodes that are put in now, and which of their results were read before they are made: loops are rings.
        self._here: tuple[dict[str, Message], dict[tuple[str, int], Value]] = ({}, {})

    def argument(self, arg: Message, shape: Shape) -> Value:
        dtype = _DTYPES.get(arg.get("type", 0), "")
        value = self.b.input(self.model.pools.type(dtype, shape), name=str(arg.get("name", "")))
        return Value(value, dtype, shape)

    def call(self, raw: Message, given: Sequence[Value], chain: tuple[str, ...]) -> list[Value]:
        """The operators of a function, with these values as its arguments; what it returns."""
        if len(chain) > _DEEPEST or len(set(chain)) < len(chain):
            raise BadInput(f"function {chain[-1][:100]} calls itself, or functions call each other too deep")
        signature = raw.get("signature", {})
        names: dict[str, list[Value]] = {}
        for arg, value in zip(signature.get("input_arg", ()), given, strict=False):
            names[str(arg.get("name", ""))] = [value]
        results = {entry.get("key", ""): entry.get("value", "") for entry in raw.get("ret", ())}
        self.nodes(raw.get("node_def", ()), names, chain, list(results.values()))
        wanted = [results.get(arg.get("name", ""), "") for arg in signature.get("output_arg", ())]
        return [self._value(names, text) for text in wanted]

    def end(self) -> None:
        """The results of a graph are what nothing reads."""
        self.b.outputs += [value for value in self.made if value not in self.read]

    # -- nodes ------------------------------------------------------------------------------------

    def nodes(
        self,
        raw: Sequence[Message],
        names: dict[str, list[Value]],
        chain: tuple[str, ...] = (),
        wanted: Sequence[str] = (),
    ) -> None:
        before, self._here = self._here, ({str(node.get("name", "")): node for node in raw}, {})
        self._put(raw, names, chain, _slots(raw, wanted))
        self._here = before

    def _put(
        self,
        raw: Sequence[Message],
        names: dict[str, list[Value]],
        chain: tuple[str, ...],
        slots: Mapping[str, Mapping[tuple[str, int], int]],
    ) -> None:
        controls: list[tuple[str, int]] = []
        done: dict[str, int] = {}
        for node in _ordered(raw):
            self.model.nodes += 1
            if self.model.nodes > _MOST_NODES:
                raise BadInput(f"more than {_MOST_NODES:,} operators, with what is put in place of calls")
            name, op = str(node.get("name", "")), str(node.get("op", "unnamed"))
            attrs = {entry.get("key", ""): entry.get("value", {}) for entry in node.get("attr", ())}
            if self._provider(node, name, op, attrs, names):
                continue
            inputs = [text for text in node.get("input", ()) if not text.startswith("^")]
            given = [self._value(names, text) for text in inputs]
            self.read.update(value.id for value in given)
            function = self.model.functions.get(_function(attrs.get("f"))) if op in _CALLS else None
            if function is None:
                function = self.model.functions.get(op)
            if function is not None:
                called = str(function.get("signature", {}).get("name", ""))
                names[name] = self.call(function, given, (*chain, called))
                continue
            index = self._node(name, op, attrs, given, slots.get(name, {}), names)
            done[name] = index
            controls += [(text[1:], index) for text in node.get("input", ()) if text.startswith("^")]
        for source, target in controls:
            if source in done:
                self.b.link("control", done[source], target)

    def _provider(
        self, node: Message, name: str, op: str, attrs: Mapping[str, Message], names: dict[str, list[Value]]
    ) -> bool:
        """Inputs, constants and variables are values, and no operators."""
        pools = self.model.pools
        dtype = _DTYPES.get(attrs.get("dtype", {}).get("type", 0), "")
        if op in ("Placeholder", "PlaceholderWithDefault", "_Arg"):
            shape = _shape(attrs["shape"].get("shape")) if "shape" in attrs else None
            shape = shape if shape is not None else _listed(attrs, 0)
            index = self.b.input(pools.type(dtype, shape), name=name)
            names[name] = [Value(index, dtype, shape)]
        elif op == "Const":
            tensor: Message = attrs.get("value", {}).get("tensor", {})
            shape = _shape(tensor.get("tensor_shape", {}))
            dtype = _DTYPES.get(tensor.get("dtype", 0), dtype)
            index = self.b.value(pools.type(dtype, shape), name=name, role=_role(dtype, shape))
            names[name] = [Value(index, dtype, shape, _numbers(self.model.reader, tensor, dtype, shape))]
        elif op in ("VarHandleOp", "VariableV2", "Variable"):
            shape = _shape(attrs.get("shape", {}).get("shape"))
            index = self.b.value(pools.type(dtype, shape), name=name, role="parameter")
            names[name] = [Value(index, dtype, shape)]
        else:
            return False
        return True

    def _node(
        self,
        name: str,
        op: str,
        attrs: Mapping[str, Message],
        given: Sequence[Value],
        slots: Mapping[tuple[str, int], int],
        names: dict[str, list[Value]],
    ) -> int:
        b, pools = self.b, self.model.pools
        plain = {key: shown for key, value in attrs.items() if (shown := _plain(key, value)) is not None}
        called = ARGUMENTS.get(op, ())[: len(given)]
        args = [*called, *(str(i) for i in range(len(called), len(given)))]
        node = b.node(
            op, [value.id for value in given], args=args, name=name, scope=scope_of(pools, name), attrs=plain,
            phase="forward",
        )  # fmt: skip
        listed = attrs.get("_output_shapes", {}).get("list", {}).get("shape", ())
        count = max(len(listed), max(slots.values(), default=-1) + 1, 0 if op in _NOTHING else 1)
        made: list[Value] = []
        for slot in range(min(count, _MOST_OUTPUTS)):
            dtype = self._dtype(op, attrs, given, slot)
            shape = _listed(attrs, slot)
            if shape is None and slot == 0:
                shape = self._inferred(op, given, plain)
            if op == "ReadVariableOp" and given:
                dtype, shape = dtype or given[0].dtype, shape if shape is not None else given[0].shape
            self.model.unshaped += shape is None
            early = self._here[1].pop((name, slot), None)
            if early is not None:
                index = early.id
                b.produce(node, index)
            else:
                index = b.output(node, pools.type(dtype, shape), name=f"{name}:{slot}" if slot else name)
            self.made.append(index)
            made.append(Value(index, dtype, shape, None, node))
        names[name] = made
        for (key, number), slot in slots.items():
            names[f"{name}:{key}:{number}" if key else f"{name}:{number}"] = [made[slot]] if slot < len(made) else []
        self._bodies(node, attrs, given, op)
        return node

    def _dtype(self, op: str, attrs: Mapping[str, Message], given: Sequence[Value], slot: int) -> str:
        if op in _BOOLEAN:
            return "bool"
        listed = attrs.get("Tout", {}).get("list", {}).get("type", ())
        if slot < len(listed):
            return _DTYPES.get(listed[slot], "")
        for key in (_RESULT.get(op, "T"), "dtype", "T", "Tparams"):
            number = attrs.get(key, {}).get("type")
            if number is not None:
                return _DTYPES.get(number, "")
        types = attrs.get("T", {}).get("list", {}).get("type", ())
        return _DTYPES.get(types[slot], "") if slot < len(types) else ""

    def _inferred(self, op: str, given: Sequence[Value], attrs: Mapping[str, Any]) -> Shape:
        return inferred(op, [value.shape for value in given], [value.constant for value in given], attrs)

    def _value(self, names: Mapping[str, list[Value]], text: str) -> Value:
        """`name`, `name:1`, and in functions `name:output:0`."""
        found = names.get(text)
        if found:
            return found[0]
        base, _, rest = text.partition(":")
        values = names.get(base, [])
        number = rest.rpartition(":")[2]
        slot = int(number) if number.isdecimal() and len(number) < 6 else 0
        if slot < len(values):
            return values[slot]
        nodes, early = self._here
        node = nodes.get(base)
        if node is not None and base not in names and node.get("op") not in _CALLS:
            if (base, slot) not in early:
                attrs = {entry.get("key", ""): entry.get("value", {}) for entry in node.get("attr", ())}
                dtype = self._dtype(str(node.get("op", "")), attrs, (), slot)
                index = self.b.value(self.model.pools.type(dtype, None), name=text)
                early[base, slot] = Value(index, dtype, None)
            return early[base, slot]
        self.model.missing.append(text)
        return Value(NULL, "", None)

    def _bodies(self, node: int, attrs: Mapping[str, Message], given: Sequence[Value], op: str) -> None:
        for key in _INNER:
            told = attrs.get(key, {})
            listed = told.get("list", {}).get("func", ())
            functions = [told["func"]] if "func" in told else listed
            for i, function in enumerate(functions):
                self.model.bodies += 1
                if self.model.bodies > _MOST_BODIES:
                    raise BadInput(f"functions in functions: more than {_MOST_BODIES:,} bodies")
                built = self.model.function(_function({"func": function}), self.depth + 1)
                if built is None:
                    continue
                graph, inside = built
                outside = given[1:] if op in ("If", "StatelessIf", "Case", "StatelessCase") else given
                pairs = [(a, b.id) for a, b in zip(inside, outside, strict=False) if b.id != NULL]
                self.b.body(node, f"{key}[{i}]" if listed else key, graph, pairs)


def scope_of(pools: Pools, name: str) -> int:
    """`net/conv/Conv2D` lies in net/conv."""
    parts = [part for part in name.split("/") if part][:-1]
    scope = 0
    for part in parts if len(parts) < _MOST_PARTS else ():
        scope = pools.scope(scope, part)
    return scope


def _slots(raw: Sequence[Message], wanted: Sequence[str]) -> dict[str, dict[tuple[str, int], int]]:
    """Which results of each node are read: by number in a graph, in a function by name and number."""
    ops = {str(node.get("name", "")): str(node.get("op", "")) for node in raw}
    found: dict[str, dict[tuple[str, int], int]] = {}
    for text in (*(text for node in raw for text in node.get("input", ())), *wanted):
        base, colon, rest = text.partition(":")
        if text.startswith("^") or not colon:
            continue
        key, _, number = rest.rpartition(":")
        slot = int(number) if number.isdecimal() and len(number) < 5 else 0
        known = found.setdefault(base, {})
        names = _OUTPUTS.get(ops.get(base, ""), ())
        at = names.index(key) if key in names else slot
        known[key, slot] = at
    return found


def _ordered(raw: Sequence[Message]) -> list[Message]:
    """What makes a value before what reads it, as far as there is such an order: files keep none."""
    by_name = {str(node.get("name", "")): i for i, node in enumerate(raw)}
    reads = [
        [by_name[base] for text in node.get("input", ()) if (base := text.lstrip("^").partition(":")[0]) in by_name]
        for node in raw
    ]
    state = bytearray(len(raw))
    order: list[int] = []
    for start in range(len(raw)):
        todo = [start]
        while todo:
            node = todo[-1]
            if state[node] == 2:
                todo.pop()
                continue
            waiting = [other for other in reads[node] if not state[other]] if not state[node] else []
            state[node] = 1
            if waiting:
                todo += waiting
            else:
                state[node] = 2
                order.append(node)
                todo.pop()
    return [raw[i] for i in order]


def _function(value: Message | None) -> str:
    return str((value or {}).get("func", {}).get("name", ""))


def _listed(attrs: Mapping[str, Message], slot: int) -> Shape:
    shapes = attrs.get("_output_shapes", {}).get("list", {}).get("shape", ())
    return _shape(shapes[slot]) if slot < len(shapes) else None


def _shapes_of(raw: Message, argument: int) -> Shape:
    for entry in raw.get("arg_attr", ()):
        if entry.get("key", 0) == argument:
            attrs = {one.get("key", ""): one.get("value", {}) for one in entry.get("value", {}).get("attr", ())}
            return _listed(attrs, 0)
    return None


def _shape(proto: Message | None) -> Shape:
    if proto is None or proto.get("unknown_rank"):
        return None
    sizes: list[Dim] = []
    for dim in proto.get("dim", ()):
        size = dim.get("size", 0)
        sizes.append(size if 0 <= size < _LARGEST_DIM else None)
    return tuple(sizes)


def _role(dtype: str, shape: Shape) -> str:
    """Numbers that were learned are parameters; indices and single numbers constants."""
    several = shape is not None and any(size != 1 for size in shape)
    return "parameter" if dtype.startswith(("float", "bfloat", "q")) and several else "constant"


def _numbers(reader: Reader | None, tensor: Message, dtype: str, shape: Shape) -> Any:
    """The numbers of a small constant; one number may stand for all."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    sizes = cast("tuple[int, ...]", shape)
    count = math.prod(sizes)
    if count > _FEW:
        return None
    content = tensor.get("tensor_content")
    if isinstance(content, Span) and reader is not None and content.size <= 16 * _FEW:
        content = reader.read(content)
    if isinstance(content, bytes) and content and dtype in _NUMPY:
        try:
            flat: list[Any] = np.frombuffer(content, dtype=_NUMPY[dtype]).tolist()
        except ValueError:
            return None
    else:
        keys = ("int_val", "int64_val", "float_val", "double_val", "bool_val")
        held: list[list[Any]] = [tensor[key] for key in keys if tensor.get(key)]
        flat = list(held[0]) if held else []
        flat += [flat[-1]] * (count - len(flat)) if flat and len(flat) < count else []
    if len(flat) != count:
        return None
    return flat[0] if not sizes else np.array(flat).reshape(sizes).tolist()


def _plain(key: str, value: Message) -> Any:
    """An attribute as plain data; what the graph says otherwise is left out."""
    if key.startswith("_output_shapes") or key in ("_class", "value"):
        return None
    for kind, held in value.items():
        if kind == "s":
            return held[:500].decode("utf-8", "backslashreplace") if isinstance(held, bytes) else str(held)[:500]
        if kind in ("i", "f", "placeholder"):
            return held
        if kind == "b":
            return bool(held)
        if kind == "type":
            return _DTYPES.get(held, f"type {held}")
        if kind == "shape":
            shape = _shape(held)
            return list(shape) if shape is not None else "?"
        if kind == "func":
            return str(held.get("name", ""))
        if kind == "list":
            return _items(held)
    return None


def _items(held: Message) -> list[Any] | None:
    for kind, items in held.items():
        shown = cast("list[Any]", items)[:_FEW]
        if kind in ("i", "f"):
            return shown
        if kind == "b":
            return [bool(item) for item in shown]
        if kind == "s":
            texts: list[bytes] = [item for item in shown if isinstance(item, bytes)]
            return [text.decode("utf-8", "backslashreplace")[:100] for text in texts]
        if kind == "type":
            return [_DTYPES.get(item, f"type {item}") for item in shown]
        if kind == "func":
            return [str(item.get("name", "")) for item in shown]
    return None
