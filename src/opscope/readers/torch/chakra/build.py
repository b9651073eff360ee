"""The graph of a trace: which calls are operators, where they are, and what each tensor was at that time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from opscope.ir import NULL, Graph, GraphBuilder, Pools
from opscope.readers.torch.composite import AUTOGRAD, COMPOSITE

from .calls import Call, Tensor, flat, rows, schema, tensor_of

_DEEPEST = 500
_LONGEST_LIST = 1000

_NO_WORK = ("aten::empty", "aten::resize_", "aten::as_strided", "aten::resolve_conj", "aten::set_", "detach")


@dataclass(frozen=True)
class _Place:
    scope: int = 0
    phase: str = "forward"
    seq: int = -1  # of the forward operator that is differentiated here
    within: tuple[str, ...] = ()


class Build:
    def __init__(self, calls: Sequence[Call]) -> None:
        self.pools = Pools()
        self.b = GraphBuilder(self.pools)
        self.calls = calls
        self.shown: list[Call] = []
        self.warnings: list[str] = []
        self.times: dict[str, int] = {}  # how often a scope came: its call number
        self.exact: dict[tuple[int, int], tuple[Tensor, int]] = {}  # (tensor, storage) -> the value that it is now
        self.latest: dict[int, list[tuple[Tensor, int]]] = {}  # storage -> the values that lie in it
        self.outside: dict[int, set[str]] = {}  # a value from before the trace -> how it is used
        self.read: set[int] = set()
        self.forward_of: dict[int, int] = {}  # sequence number -> node
        self.pending: list[tuple[int, int]] = []  # (sequence number, backward node)

    def run(self) -> Graph:
        known = {call.id for call in self.calls}
        roots = [call for call in self.calls if call.parent not in known or call.parent >= call.id]
        todo: list[tuple[Call, _Place, int]] = [(call, _Place(), 0) for call in reversed(roots)]
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

    def _is_composite(self, call: Call) -> bool:
        """It only calls others: autograd saw one of them, or it is known to."""
        inner = [child for child in call.children if child.is_operator]
        if not inner:
            return False
        return call.name in COMPOSITE or (call.seq >= 0 and any(child.seq >= call.seq for child in inner))

    def _inside(self, call: Call, place: _Place) -> _Place:
        """Where the calls of a call are."""
        if call.is_operator:
            return _Place(place.scope, place.phase, place.seq, (*place.within, call.name.replace("::", "."))[-8:])
        if call.name.startswith("[pytorch|"):  # the process and its threads
            return place
        if call.is_autograd:
            name = call.name.removeprefix(AUTOGRAD).rpartition("::")[2]
            if call.name.startswith(AUTOGRAD):
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

    def _node(self, call: Call, place: _Place) -> None:
        op, names, written = schema(call.schema) if call.schema else ("", (), ())
        inputs: list[int] = []
        args: list[str] = []
        attrs: dict[str, Any] = {}
        tensors: list[tuple[Tensor, int]] = []
        writes: set[int] = set()
        for i, (value, shape, type_) in enumerate(rows(call.inputs)):
            name = names[i] if i < len(names) else str(i)
            for path, item, size, kind in flat(name, value, shape, type_):
                if kind.startswith("Tensor("):
                    tensor = tensor_of(item, size, kind)
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

    def _value(self, tensor: Tensor, phase: str) -> int:
        """The value that a tensor is now. Ids are reused once a tensor is gone; the storage distinguishes them."""
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

    def _type(self, tensor: Tensor) -> int:
        return self.pools.type(tensor.dtype, tensor.shape)

    def _lies(self, tensor: Tensor, value: int) -> None:
        self.exact[tensor.id, tensor.storage] = tensor, value
        lying = self.latest.setdefault(tensor.storage, [])
        lying.append((tensor, value))
        del lying[:-64]

    def _outputs(self, call: Call, node: int, place: _Place, inputs: Sequence[tuple[Tensor, int]]) -> None:
        role = "gradient" if place.phase == "backward" else "activation"
        by_storage = {tensor.storage: value for tensor, value in inputs}
        made: set[tuple[int, int]] = set()
        for value, shape, type_ in rows(call.outputs):
            for _, item, size, kind in flat("", value, shape, type_):
                tensor = tensor_of(item, size, kind) if kind.startswith("Tensor(") else None
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
            elif how == {"read in backward"}:
                self.b.set_role(value, "activation")  # kept by the forward pass, under an id that it did not have there
            elif how == {"read in optimizer"}:
                self.b.set_role(value, "state")  # or a gradient: the engine hands these on without an operator
            elif "a number" in how:  # Python numbers become tensors without a shape
                self.b.set_role(value, "constant")


def _plain(value: Any) -> Any:
    if value == "<None>":
        return None
    if isinstance(value, str):
        return value[:1000]
    if isinstance(value, list):
        return cast("list[Any]", value)[:_LONGEST_LIST]
    return value


def _runs(call: Call) -> list[str]:
    """What an operator calls in turn, each name once, without what only allocates memory."""
    found: dict[str, None] = {}
    todo = list(reversed(call.children))
    while todo and len(found) < 20:
        child = todo.pop()
        if not child.name.startswith(_NO_WORK):
            found[child.name.replace("::", ".")[:100]] = None
        todo += reversed(child.children)
    return list(found)
