"""Which layer is at work: scopes by the names that layers have within their model, and the names of their tensors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from opscope.tracers.frames import held_in, name_in_stack, tensors_held_in

from . import private


class Scope(NamedTuple):
    parent: int
    name: str
    cls: str
    call: int


class Layers:
    """The layers that were met. Scope 0 is outside of all."""

    def __init__(self, roots: list[tuple[str, Any]], hidden: Any = None) -> None:
        self.scopes: list[Scope] = [Scope(-1, "", "", 0)]
        self.open: list[int] = [0]
        self._owners: list[Any] = [None]  # the layers of the open scopes
        self._hidden = None if hidden is None else weakref.ref(hidden)  # a box around everything says nothing
        self._calls: dict[tuple[int, str], int] = {}
        self._ways: dict[int, tuple[weakref.ref[Any], dict[int, str]]] = {}
        self.roots: dict[int, tuple[str, weakref.ref[Any]]] = {}
        for name, layer in roots:
            self.roots.setdefault(id(layer), (name, weakref.ref(layer)))

    def enter(self, layer: Any, frame: FrameType | None) -> None:
        parent, owner = self.open[-1], self._owners[-1]
        self._owners.append(layer)
        if self._hidden is not None and self._hidden() is layer:
            self.open.append(parent)
            return
        way = None
        for outer in reversed(self._owners[:-1]):
            if outer is not None and (way := self._way(outer, layer)) is not None:
                # Only below its direct caller are the lists on the way (a LayerList) scopes as well.
                way = way if outer is owner else way.rpartition(".")[2]
                break
        if way is None:
            way = self._root_name(layer, frame)
        *above, name = way.split(".")
        for part in above:
            parent = self._scope(parent, part, "", 0)
        call = self._calls.get((parent, name), 0)
        self._calls[parent, name] = call + 1
        self.open.append(self._scope(parent, name, type(layer).__name__, call))

    def leave(self) -> None:
        self.open.pop()
        self._owners.pop()

    def inside(self, name: str) -> None:
        """A scope that is not a layer's: a PyLayer."""
        call = self._calls.get((self.open[-1], name), 0)
        self._calls[self.open[-1], name] = call + 1
        self.open.append(self._scope(self.open[-1], name, "PyLayer", call))
        self._owners.append(self._owners[-1])

    def _scope(self, parent: int, name: str, cls: str, call: int) -> int:
        self.scopes.append(Scope(parent, name, cls, call))
        return len(self.scopes) - 1

    def _way(self, outer: Any, layer: Any) -> str | None:
        known = self._ways.get(id(outer))
        way = known[1].get(id(layer)) if known and known[0]() is outer else None
        if way is None:  # not seen yet, or put in place since
            ways = {id(inner): path for path, inner in outer.named_sublayers(include_self=False)}
            self._ways[id(outer)] = weakref.ref(outer), ways
            way = ways.get(id(layer))
        return way

    def _root_name(self, layer: Any, frame: FrameType | None) -> str:
        known = self.roots.get(id(layer))
        if known is None or known[1]() is not layer:
            name = name_in_stack(frame, layer) or type(layer).__name__
            known = name, weakref.ref(layer)
            if len(self.open) == 1 or all(owner is None for owner in self._owners[:-1]):
                self.roots[id(layer)] = known
        return known[0].replace(".", "_")

    def owners(self) -> dict[str, list[tuple[str, str]]]:
        """The name of a tensor, as `tensors` gives it -> the layers that it is in, each by name and class."""
        found: dict[str, list[tuple[str, str]]] = {}
        for prefix, root, layer in self._holders():
            top = [] if self._hidden is not None and self._hidden() is layer else [(root, type(layer).__name__)]
            classes = {path: type(inner).__name__ for path, inner in layer.named_sublayers(include_self=False)}
            for path, _, _ in _all(layer):
                parts = path.split(".")[:-1]
                steps = [(part, classes.get(".".join(parts[: i + 1]), "")) for i, part in enumerate(parts)]
                found.setdefault(prefix + path, [*top, *steps])
        return found

    def tensors(self) -> Iterator[tuple[str, Any, str]]:
        """(name, tensor, role) of parameters and buffers; the root's own name first where there are several."""
        for prefix, _, layer in self._holders():
            yield from ((prefix + path, tensor, role) for path, tensor, role in _all(layer))

    def _holders(self) -> Iterator[tuple[str, str, Any]]:
        """(prefix of the names, name, layer) of the models that hold tensors."""
        held = [(name, layer) for name, ref in self.roots.values() if (layer := ref()) is not None]
        inner = {id(part) for _, layer in held for _, part in layer.named_sublayers(include_self=False)}
        held = [(name, layer) for name, layer in held if id(layer) not in inner and any(True for _ in _all(layer))]
        for name, layer in held:
            yield "" if len(held) == 1 else f"{name}.", name, layer


def _all(layer: Any) -> Iterator[tuple[str, Any, str]]:
    """By what they are registered as. Which of the parameters are an operator's state, the operator says."""
    for path, tensor in layer.named_parameters():
        yield path, tensor, "parameter"
    for path, tensor in layer.named_buffers():
        yield path, tensor, "buffer"


def layers_in(frame: FrameType, given: Any = None) -> list[tuple[str, Any]]:
    """The layers given, and those among the user's variables, with the names that he gave them."""
    kind = private.the_paddle().nn.Layer
    listed: list[Any] = list(given) if isinstance(given, list | tuple) else [given]  # pyright: ignore
    variables = list(held_in(frame, kind))
    found: list[tuple[str, Any]] = []
    for layer in listed:
        if isinstance(layer, kind):
            found.append((next((n for n, v in variables if v is layer), type(layer).__name__), layer))
    known = {id(layer) for _, layer in found}
    inside = {id(part) for _, layer in [*found, *variables] for part in layer.sublayers()}
    found += [(n, v) for n, v in variables if id(v) not in known and id(v) not in inside]
    return found


def variables(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The tensors that the user's own variables hold."""
    return tensors_held_in(frame, private.the_paddle().Tensor, depth=2)


def leaves(named: Iterator[tuple[str, Any]]) -> dict[int, tuple[str, Any]]:
    """Pointer of the accumulation node -> name and tensor, for tensors that gradients are added into."""
    found: dict[int, tuple[str, Any]] = {}
    for name, tensor in named:
        if tensor.is_leaf and (node := private.gradient_node(tensor)) is not None:
            found.setdefault(int(node.node_ptr()), (name, tensor))
    return found


def all_parameters() -> Iterator[tuple[str, Any]]:
    """Every parameter that lives anywhere, by Paddle's own name for it (`linear_0.w_0`)."""
    kind = private.parameter_type()
    for found in gc.get_objects():
        if issubclass(type(found), kind):
            yield str(found.name), found
