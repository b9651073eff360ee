"""Chakra execution traces: the JSON of `torch.profiler.ExecutionTraceObserver`.

A trace records every call, one inside the other: `conv2d` calls `convolution`, that `_convolution`, that a kernel's
wrapper, that `empty`. The operators that we show are those that autograd and the dispatcher saw (`convolution`): of a
composite operator its parts, otherwise the outermost. What they call in turn is kept as an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast

from opscope.errors import BadInput
from opscope.ir import NULL, Capture, GraphBuilder, Origin, Pools, Stage, Table, column
from opscope.ir.columns import frozen
from opscope.ir.pools import clean
from opscope.readers.source import Options, Source

from .archive import reading
from .names import cpp_dtype
from .pt2 import parsed

NAME = "chakra"
_STARTS = re.compile(rb'^\s*\{\s*"schema"\s*:\s*"[0-9.]+(?:-chakra[^"]*)?"')
_LARGEST = 1 << 30
_DEEPEST = 500
_LONGEST_LIST = 1000
_AUTOGRAD = "autograd::engine::evaluate_function: "

# Operators that only call others (CompositeImplicitAutograd): without autograd nothing else tells them.
_COMPOSITE = frozenset(
    "aten::" + name
    for name in (  # noqa: SIM905 (as a list it takes 50 lines)
        "linear conv1d conv2d conv3d convolution_mode batch_norm instance_norm layer_norm group_norm rms_norm "
        "matmul einsum bilinear tensordot chain_matmul multi_head_attention scaled_dot_product_attention "
        "max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d dropout "
        "feature_dropout cross_entropy_loss nll_loss nll_loss_nd nll_loss2d binary_cross_entropy_with_logits "
        "to contiguous reshape flatten ravel chunk tensor_split hsplit vsplit embedding_bag lstm gru rnn_tanh rnn_relu "
        "lstm_cell gru_cell softmax log_softmax pad upsample interpolate expand_as type_as"
    ).split()
)
_NO_WORK = ("aten::empty", "aten::resize_", "aten::as_strided", "aten::resolve_conj", "aten::set_", "detach")


def match(source: Source) -> bool:
    head = source.head
    return _STARTS.match(head) is not None and (b"chakra" in head[:200] or b'"rf_id"' in head or b'"nodes"' in head)


def read(source: Source, options: Options) -> Capture:
    return reading(source, "not a Chakra execution trace", lambda: _read(source))


def _read(source: Source) -> Capture:
    if source.size > _LARGEST:
        raise BadInput(f"{source.size:,} bytes of JSON; {_LARGEST:,} are the most")
    data = parsed(source.read())
    nodes = data.get("nodes")
    if not isinstance(nodes, list):
        raise BadInput(f"no list 'nodes' in it (found: {', '.join(repr(key)[:40] for key in list(data)[:6])})")
    calls = _calls(cast("list[object]", nodes))
    if not calls:
        raise BadInput("its list 'nodes' has no calls")
    building = _Build(calls)
    graph = building.run()
    schema = data.get("schema")
    ids = Table(
        0,
        "node",
        frozen(range(graph.n_nodes)),
        {
            "id": column([str(call.id) for call in building.shown]),
            "rf_id": column([call.text("rf_id") for call in building.shown]),
            "thread": column([call.text("tid") for call in building.shown]),
        },
    )
    return Capture(
        pools=building.pools,
        stages=[Stage("trace", graph, warnings=tuple(building.warnings))],
        tables={"chakra ids": ids},
        origin=Origin(
            format=NAME,
            framework="torch",
            how=f"execution trace {clean(schema)[:60]}" if isinstance(schema, str) else "",
        ),
    )


# -- what is in the file ------------------------------------------------------------------------------


class _Tensor(NamedTuple):
    id: int
    storage: int
    offset: int
    dtype: str
    shape: tuple[int, ...] | None

    def like(self, other: _Tensor) -> bool:
        return (self.offset, self.shape, self.dtype) == (other.offset, other.shape, other.dtype)


@dataclass(eq=False)
class _Call:
    id: int
    name: str
    parent: int
    attrs: Mapping[str, Any]
    inputs: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]  # values, shapes, types
    outputs: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
    children: list[_Call] = field(default_factory=list["_Call"])

    @property
    def seq(self) -> int:
        value = self.attrs.get("seq_id")
        return value if isinstance(value, int) else -1

    @property
    def is_operator(self) -> bool:
        return "::" in self.name and not self.is_autograd and ": " not in self.name

    @property
    def is_autograd(self) -> bool:
        """A node of the autograd graph that runs: `ConvolutionBackward0`, or what the engine does around it."""
        return self.attrs.get("scope") == 1 or self.name.startswith(_AUTOGRAD) or "::autograd::" in self.name

    @property
    def schema(self) -> str:
        value = self.attrs.get("op_schema")
        return value if isinstance(value, str) else ""

    def text(self, attr: str) -> str:
        value = self.attrs.get(attr)
        return str(value)[:100] if isinstance(value, int | str) else ""


def _calls(raw: list[object]) -> list[_Call]:
    """All calls, in the order in which they began: ids are given out as calls begin."""
    found: dict[int, _Call] = {}
    for item in raw:
        if not isinstance(item, dict):
            continue
        entry = cast("dict[str, Any]", item)
        ident, name = entry.get("id"), entry.get("name")
        if not isinstance(ident, int) or not isinstance(name, str) or ident in found:
            continue
        parent = entry.get("ctrl_deps", entry.get("parent"))
        attrs = entry.get("attrs")
        listed: Mapping[str, Any] = entry  # before schema 1.0.2 they stood in the node itself
        if isinstance(attrs, list):
            listed = {
                str(attr.get("name")): attr.get("value")
                for attr in cast("list[dict[str, Any]]", attrs)
                if isinstance(attr, dict)  # pyright: ignore[reportUnnecessaryIsInstance]
            }
        found[ident] = _Call(
            ident, name, parent if isinstance(parent, int) else 0, listed, _io(entry, "input"), _io(entry, "output")
        )
    calls = sorted(found.values(), key=lambda call: call.id)
    for call in calls:
        parent = found.get(call.parent)
        if parent is not None and parent.id < call.id:
            parent.children.append(call)
    return calls


def _io(entry: Mapping[str, Any], kind: str) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    block = entry.get(f"{kind}s")
    if isinstance(block, dict):
        new = cast("Mapping[str, Any]", block)
        parts = (new.get("values"), new.get("shapes"), new.get("types"))
    else:
        parts = (block, entry.get(f"{kind}_shapes"), entry.get(f"{kind}_types"))
    values, shapes, types = (cast("Sequence[Any]", part) if isinstance(part, list) else () for part in parts)
    return values, shapes, types


def _tensor(value: Any, shape: Any, type_: str) -> _Tensor | None:
    """`[13, 14, 0, 4096, 4, "cpu"]`: tensor, storage, offset, elements, bytes each, device."""
    if not isinstance(value, list) or len(cast("list[Any]", value)) < 3:
        return None
    ident, storage, offset = cast("list[Any]", value)[:3]
    if not (isinstance(ident, int) and isinstance(storage, int) and isinstance(offset, int)) or storage == 0:
        return None
    sizes: tuple[int, ...] | None = None
    if isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in cast("list[Any]", shape)):
        sizes = tuple(cast("list[int]", shape))
    dtype = type_.removeprefix("Tensor(").removesuffix(")")
    return _Tensor(ident, storage, offset, cpp_dtype(dtype)[:60], sizes)


@lru_cache(maxsize=10_000)
def _schema(text: str) -> tuple[str, tuple[str, ...], tuple[bool, ...]]:
    """(op, argument names, which of them are written to) of `aten::add_.Tensor(Tensor(a!) self, …) -> Tensor(a!)`."""
    name, _, rest = text.partition("(")
    arguments: list[str] = [""]
    depth = 0
    for char in rest:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            break
        if char == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += char
    names: list[str] = []
    written: list[bool] = []
    for argument in arguments:
        words = argument.partition("=")[0].split()
        if words and words[-1] != "*":
            names.append(words[-1])
            written.append("!" in argument)
    return name.strip().replace("::", "."), tuple(names), tuple(written)


# -- the graph ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    scope: int = 0
    phase: str = "forward"
    seq: int = -1  # of the forward operator that is differentiated here
    within: tuple[str, ...] = ()


class _Build:
    def __init__(self, calls: Sequence[_Call]) -> None:
        self.pools = Pools()
        self.b = GraphBuilder(self.pools)
        self.calls = calls
        self.shown: list[_Call] = []
        self.warnings: list[str] = []
        self.times: dict[str, int] = {}  # how often a scope came: its call number
        self.exact: dict[tuple[int, int], tuple[_Tensor, int]] = {}  # (tensor, storage) -> the value that it is now
        self.latest: dict[int, list[tuple[_Tensor, int]]] = {}  # storage -> the values that lie in it
        self.outside: dict[int, set[str]] = {}  # a value from before the trace -> how it is used
        self.read: set[int] = set()
        self.forward_of: dict[int, int] = {}  # sequence number -> node
        self.pending: list[tuple[int, int]] = []  # (sequence number, backward node)

    def run(self) -> Any:
        known = {call.id for call in self.calls}
        roots = [call for call in self.calls if call.parent not in known or call.parent >= call.id]
        todo: list[tuple[_Call, _Place, int]] = [(call, _Place(), 0) for call in reversed(roots)]
        deep = 0
        while todo:
            call, place, depth = todo.pop()
            if depth > _DEEPEST:
                deep += 1
                continue
            if call.is_operator and not self._is_composite(call):
                self._node(call, place)
                continue
            inner = self._inside(call, place)
            todo += [(child, inner, depth + 1) for child in reversed(call.children)]
        if deep:
            self.warnings.append(f"{deep} calls are nested more than {_DEEPEST} deep and are left out")
        self._links()
        self._roles()
        self.b.outputs += [v for v in range(self.b.n_values) if v not in self.read and v not in self.outside]
        return self.b.freeze()

    def _is_composite(self, call: _Call) -> bool:
        """It only calls others: autograd saw one of them, or it is known to."""
        inner = [child for child in call.children if child.is_operator]
        if not inner:
            return False
        return call.name in _COMPOSITE or (call.seq >= 0 and any(child.seq >= call.seq for child in inner))

    def _inside(self, call: _Call, place: _Place) -> _Place:
        """Where the calls of a call stand."""
        if call.is_operator:
            return _Place(place.scope, place.phase, place.seq, (*place.within, call.name.replace("::", "."))[-8:])
        if call.name.startswith("[pytorch|"):  # the process and its threads
            return place
        if call.is_autograd:
            name = call.name.removeprefix(_AUTOGRAD).rpartition("::")[2]
            if call.name.startswith(_AUTOGRAD):
                seq = next((child.seq for child in call.children if child.seq >= 0), -1)
                return _Place(self._scope(self._backward(place), name, "autograd"), "backward", seq)
            if place.phase == "backward":
                return place  # the engine's call around it is the scope
            return _Place(self._scope(self._backward(place), name, "autograd"), "backward", call.seq)
        phase = "optimizer" if call.name.startswith("Optimizer.") else place.phase
        return _Place(self._scope(place.scope, call.name, ""), phase, place.seq)

    def _backward(self, place: _Place) -> int:
        return self.pools.scope(place.scope, "backward", "autograd")

    def _scope(self, parent: int, name: str, cls: str) -> int:
        key = f"{parent}/{name}"
        call = self.times[key] = self.times.get(key, -1) + 1
        return self.pools.scope(parent, name[:200], cls, call)

    def _node(self, call: _Call, place: _Place) -> None:
        op, names, written = _schema(call.schema) if call.schema else ("", (), ())
        inputs: list[int] = []
        args: list[str] = []
        attrs: dict[str, Any] = {}
        tensors: list[tuple[_Tensor, int]] = []
        writes: set[int] = set()
        for i, (value, shape, type_) in enumerate(_rows(call.inputs)):
            name = names[i] if i < len(names) else str(i)
            for path, item, size, kind in _flat(name, value, shape, type_):
                if kind.startswith("Tensor("):
                    tensor = _tensor(item, size, kind)
                    found = self._value(tensor, place.phase) if tensor is not None else NULL
                    inputs.append(found)
                    args.append(path)
                    if tensor is not None:
                        tensors.append((tensor, found))
                        if i < len(written) and written[i]:
                            writes.add(found)
                else:
                    attrs[path] = _plain(item)
        if place.within:
            attrs["within"] = list(place.within)
        runs = _runs(call)
        if runs:
            attrs["runs"] = runs
        for key in ("kernel_backend", "kernel_file"):
            if call.text(key):
                attrs[key] = call.text(key)
        node = self.b.node(
            op or call.name.replace("::", "."),
            inputs,
            args=args,
            scope=place.scope,
            attrs=attrs,
            phase=place.phase,
        )
        self.shown.append(call)
        self.read.update(inputs)
        for value in writes & self.outside.keys():
            self.outside[value].add(f"written in {place.phase}")
        self._outputs(call, node, place, tensors)
        if place.phase == "forward" and call.seq >= 0:
            self.forward_of[call.seq] = node  # the last that has the number made the autograd node
        if place.phase == "backward" and place.seq >= 0:
            self.pending.append((place.seq, node))

    def _value(self, tensor: _Tensor, phase: str) -> int:
        """The value that a tensor is now. Ids are used again once a tensor is gone; the storage tells."""
        lying = self.latest.get(tensor.storage, [])
        if lying and all(other.dtype != tensor.dtype for other, _ in lying):
            self._forget(tensor.storage)  # another tensor in memory that was free, made where the trace did not look
            lying = []
        known = self.exact.get((tensor.id, tensor.storage))
        if known is not None and known[0].like(tensor):
            found = known[1]
        elif same := [value for other, value in lying if other.like(tensor)]:
            found = same[-1]
        else:
            found = self.b.input(self._type(tensor))
            if lying:  # a view that was made where the trace did not look
                self.b.set_storage(found, lying[-1][1])
            self.outside[found] = {"a number"} if tensor.shape == () else set()
            self._lies(tensor, found)
        if found in self.outside:
            self.outside[found].add(f"read in {phase}")
        return found

    def _type(self, tensor: _Tensor) -> int:
        return self.pools.type(tensor.dtype, tensor.shape)

    def _lies(self, tensor: _Tensor, value: int) -> None:
        self.exact[tensor.id, tensor.storage] = tensor, value
        lying = self.latest.setdefault(tensor.storage, [])
        lying.append((tensor, value))
        del lying[:-64]

    def _outputs(self, call: _Call, node: int, place: _Place, inputs: Sequence[tuple[_Tensor, int]]) -> None:
        role = "gradient" if place.phase == "backward" else "activation"
        by_storage = {tensor.storage: value for tensor, value in inputs}
        made: set[tuple[int, int]] = set()
        for value, shape, type_ in _rows(call.outputs):
            for _, item, size, kind in _flat("", value, shape, type_):
                tensor = _tensor(item, size, kind) if kind.startswith("Tensor(") else None
                if tensor is None:
                    continue
                result = self.b.output(node, self._type(tensor), role=role)
                owner = by_storage.get(tensor.storage)
                if owner is None and (tensor.id, tensor.storage) not in made:
                    self._forget(tensor.storage)  # memory that was free: what lay there before is gone
                elif owner is not None:
                    self.b.set_storage(result, owner)
                made.add((tensor.id, tensor.storage))
                self._lies(tensor, result)

    def _forget(self, storage: int) -> None:
        for tensor, _ in self.latest.pop(storage, []):
            self.exact.pop((tensor.id, storage), None)

    def _links(self) -> None:
        lost = 0
        for seq, node in self.pending:
            source = self.forward_of.get(seq)
            if source is None:
                lost += 1
            else:
                self.b.link("grad", source, node)
        if lost:
            self.warnings.append(
                f"{lost} backward operators belong to forward operators that are not in the trace: no grad link"
            )

    def _roles(self) -> None:
        """What was there before the trace: what an optimizer writes is a parameter if the model reads it."""
        for value, how in self.outside.items():
            if "written in optimizer" in how:
                self.b.set_role(value, "parameter" if "read in forward" in how else "state")
            elif "written in forward" in how:
                self.b.set_role(value, "buffer")
            elif "a number" in how:  # Python numbers become tensors without a shape
                self.b.set_role(value, "constant")


def _rows(io: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]) -> Iterator[tuple[Any, Any, str]]:
    values, shapes, types = io
    for i, value in enumerate(values):
        kind = types[i] if i < len(types) and isinstance(types[i], str) else ""
        yield value, shapes[i] if i < len(shapes) else None, kind


def _flat(name: str, value: Any, shape: Any, type_: str) -> Iterator[tuple[str, Any, Any, str]]:
    """(path, value, shape, type) of the single values in an argument; `GenericList[Tensor(float),…]` is a list."""
    if not type_.startswith("GenericList[") or "Tensor(" not in type_ or not isinstance(value, list):
        yield name, value, shape, type_
        return
    items = cast("list[Any]", value)
    kinds = re.findall(r"Tensor\([^,\]]*\)|[^,]+", type_[len("GenericList[") : -1])
    shapes: list[Any] = cast("list[Any]", shape) if isinstance(shape, list) else []
    for i, item in enumerate(items):
        kind = kinds[i] if i < len(kinds) else kinds[-1] if kinds else ""
        yield f"{name}[{i}]", item, shapes[i] if i < len(shapes) else None, kind


def _plain(value: Any) -> Any:
    if value == "<None>":
        return None
    if isinstance(value, str):
        return value[:1000]
    if isinstance(value, list):
        return cast("list[Any]", value)[:_LONGEST_LIST]
    return value


def _runs(call: _Call) -> list[str]:
    """What an operator calls in turn, each name once, without what only allocates memory."""
    found: dict[str, None] = {}
    todo = list(reversed(call.children))
    while todo and len(found) < 20:
        child = todo.pop()
        if not child.name.startswith(_NO_WORK):
            found[child.name.replace("::", ".")[:100]] = None
        todo += reversed(child.children)
    return list(found)
