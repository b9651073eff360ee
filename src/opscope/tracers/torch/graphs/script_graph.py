"""A TorchScript graph as ours: walks the nodes, opens calls, follows modules through GetAttr, folds constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from opscope.ir import Graph, GraphBuilder, Pools
from opscope.ir.graph import NULL
from opscope.ir.pools import Frame
from opscope.readers.torch.names import short_class
from opscope.tracers.torch import private, words

from .frames import traced_frames, users_frames
from .script_values import (
    LISTS,
    UNPACKS,
    CannotOpen,
    Constant,
    Held,
    Items,
    Known,
    Trail,
    argument_names,
    attribute,
    class_name,
    constant,
    is_module,
    is_tensor,
    printed_kinds,
    role_of,
    script_frames,
    unpacked,
    whole,
)

_NAMES = {"prim::Loop": ("trip_count", "condition"), "prim::If": ("condition",), "prim::CallFunction": ("function",)}
_CALLS = ("prim::CallMethod", "prim::CallFunction")


class Place(NamedTuple):
    """Where a walk is: the scope and the lines of the callers."""

    scope: int
    frames: tuple[Frame, ...]


class Script:
    """What is captured, and the pools that both stages share."""

    def __init__(self, pools: Pools, script: Any) -> None:
        self.pools = pools
        self.script = script
        self.functions = private.script_functions()


class Walk:
    """One graph. `opened` follows modules, opens calls and folds what only hands on; otherwise GetAttr and
    CallMethod are nodes, and what a call runs is a body of it."""

    def __init__(self, script: Script, *, opened: bool, trail: Trail | None = None) -> None:
        self.script = script
        self.trail = Trail()
        self.followed = trail
        self.pools = script.pools
        self.opened = opened
        self.order: list[tuple[str, int | None]] = []  # kind and our node, as walked, without constants
        self.top: list[int] = []  # our node of each top-level node, in order; -1 where it has none
        self.origins: dict[int, int] = {}  # our node -> the number of the top-level node that it came from
        self.last_scope = 0
        self.tensors: dict[int, int] = {}  # memory of a parameter -> its first value
        self.calls: dict[tuple[int, str], int] = {}

    def run(self, graph: Any) -> Graph:
        builder = GraphBuilder(self.pools)
        block = _Block(self, builder, {}, Place(0, ()), None)
        for value in graph.inputs():
            if is_module(value) and not block.known:
                block.known[value.unique()] = Held(self.script.script, "")
                if not self.opened:
                    block.known[value.unique()] = builder.input(block.type_of(value), name=value.debugName())
                    block.paths[value.unique()] = Held(self.script.script, "")
            else:
                block.known[value.unique()] = builder.input(block.type_of(value), name=value.debugName())
        for number, node in enumerate(_without_constants(graph, block)):
            block.number = number
            before = builder.n_nodes
            block.node(node)
            self.top.append(before if builder.n_nodes > before else -1)
        for value in graph.outputs():
            builder.outputs += block.flat(block.known.get(value.unique()))
        return builder.freeze()

    def with_constants(self, graph: Any) -> Iterator[int | None]:
        """Our node of every node of the printed graph, constants included (they have none)."""
        nodes = iter(self.order)
        for kind in printed_kinds(graph):
            if kind == "prim::Constant":
                yield None
                continue
            found = next(nodes, None)
            yield found[1] if found is not None and found[0] == kind else None


class _Block:
    """The nodes of one block, method or function, in the builder of one of our graphs."""

    def __init__(
        self,
        walk: Walk,
        builder: GraphBuilder,
        known: dict[int, Known],
        place: Place,
        outer: _Block | None,
        home: Held | None = None,
    ) -> None:
        self.walk = walk
        self.builder = builder
        self.known = known
        self.place = place
        self.outer = outer  # the block around this one, in another graph of ours
        self.bindings: dict[int, int] = {}  # inside -> outside
        self.paths: dict[int, Held] = {}  # hierarchical: which module a value is
        self.attributes: dict[str, int] = {}
        self.home = home
        self.number = 0

    # -- values ---------------------------------------------------------------------------------

    def value(self, value: Any) -> Known:
        """What a TorchScript value is here; from the graph around if this block does not have it."""
        unique = value.unique()
        if unique not in self.known:
            if self.outer is None:
                return NULL
            found = self.outer.value(value)
            if isinstance(found, int) and found != NULL:
                inside = self.builder.input(self.type_of(value), name=value.debugName())
                self.bindings[inside] = found
                self.known[unique] = inside
            elif isinstance(found, Items):
                self.known[unique] = Items(tuple(self._brought(item) for item in found.items))
            else:
                self.known[unique] = found
            if unique in self.outer.paths:
                self.paths[unique] = self.outer.paths[unique]
        return self.known[unique]

    def _brought(self, item: Any) -> Any:
        if isinstance(item, Items):
            return Items(tuple(self._brought(part) for part in item.items))
        if not isinstance(item, int) or item == NULL:
            return item
        again = next((inside for inside, outside in self.bindings.items() if outside == item), None)
        if again is None:
            again = self.builder.input()
            self.bindings[again] = item
        return again

    def type_of(self, value: Any) -> int:
        kind = value.type()
        if kind.kind() == "TensorType":
            dtype, sizes = kind.dtype(), kind.sizes()
            return self.walk.pools.type("" if dtype is None else words.dtype_name(dtype), sizes)
        names = {"IntType": "int", "FloatType": "float", "BoolType": "bool", "NumberType": "number"}
        if kind.kind() in names:
            return self.walk.pools.type(names[kind.kind()], ())
        return self.walk.pools.type(short_class(kind.annotation_str) if is_module(value) else kind.annotation_str, None)

    def flat(self, known: Known | None) -> list[int]:
        """Our values in it, for outputs of the graph."""
        if isinstance(known, Items):
            return [value for item in known.items for value in self.flat(item)]
        if isinstance(known, Held):
            return [self.held_value(known, 0)]
        return [known] if isinstance(known, int) and known != NULL else []

    def held_value(self, held: Held, kind: int) -> int:
        """A parameter, buffer or other tensor of the model, by its full name."""
        if held.path in self.attributes:
            return self.attributes[held.path]
        if is_tensor(held.module):
            kind = words.tensor_type(self.walk.pools, held.module)
        if self.outer is not None:
            outside = self.outer.held_value(held, kind)
            inside = self.builder.input(kind, name=held.path, role=role_of(held))
            self.bindings[inside] = outside
        else:
            inside = self.builder.value(kind, name=held.path, role=role_of(held))
            if is_tensor(held.module) and held.module.data_ptr():
                owner = self.walk.tensors.setdefault(held.module.data_ptr(), inside)
                self.builder.set_storage(inside, owner)  # a tied weight
        self.attributes[held.path] = inside
        return inside

    # -- nodes ----------------------------------------------------------------------------------

    def nodes(self, block: Any) -> None:
        for node in _without_constants(block, self):
            self.node(node)

    def node(self, node: Any) -> None:
        kind = node.kind()
        if self.walk.opened:
            if kind == "prim::GetAttr" and self.get_attr(node):
                return
            if kind in _CALLS:
                self.open(node)
                return
            if kind in LISTS:
                items = tuple(self.value(value) for value in node.inputs())
                self.known[node.output().unique()] = whole(items)
                self.walk.order.append((kind, None))
                return
            if kind in UNPACKS and self.unpack(node):
                return
        self.plain(node)

    def get_attr(self, node: Any) -> bool:
        owner = self.value(node.input())
        if not isinstance(owner, Held):
            return False
        held = attribute(owner, node.s("name"))
        known: Known = held
        if not is_module(node.output()):
            known = held if is_tensor(held.module) else Constant(held.module)
        self.known[node.output().unique()] = known
        self.walk.order.append(("prim::GetAttr", None))
        return True

    def unpack(self, node: Any) -> bool:
        found = self.value(node.input())
        outputs = list(node.outputs())
        if isinstance(found, Items) and len(found.items) == len(outputs):
            for value, item in zip(outputs, found.items, strict=True):
                self.known[value.unique()] = item
            self.walk.order.append((node.kind(), None))
            return True
        return False

    def plain(self, node: Any) -> None:
        """A node of ours."""
        kind, schema = node.kind(), node.schema()
        names = _NAMES.get(kind) or argument_names(schema)
        uses: list[int] = []
        args: list[str] = []
        attrs: dict[str, Any] = {}
        for i, value in enumerate(node.inputs()):
            name = names[i] if i < len(names) else f"carried[{i - 2}]" if kind == "prim::Loop" else str(i)
            self.argument(name, self.value(value), self.type_of(value), uses, args, attrs)
        for name in node.attributeNames():
            if kind != "prim::Constant":
                attrs[name] = words.attribute(getattr(node, node.kindOf(name))(name))
        builder = self.builder
        scope, stack, number = self.where(node)
        index = builder.node(
            words.overload_name(schema.partition("(")[0] if schema != "(no schema)" else kind),
            uses,
            args=args,
            name=next((value.debugName() for value in node.outputs()), ""),
            scope=scope,
            stack=stack,
            attrs=attrs,
            phase="forward",
        )
        self.walk.order.append((kind, index if self.outer is None else None))
        if self.outer is None:
            self.walk.origins[index] = number
        if kind in _CALLS:
            self.called(node, index)
        self.made(node, index)
        for number, block in enumerate(node.blocks()):
            self.body(node, index, number, block)

    def argument(
        self, name: str, known: Known, kind: int, uses: list[int], args: list[str], attrs: dict[str, Any]
    ) -> None:
        if isinstance(known, Constant):
            if is_tensor(known.value) and known.value.dim() == 0:
                attrs[name] = words.attribute(known.value.item())  # a number of Python's, as the tracer keeps it
            elif is_tensor(known.value):
                value = self.builder.value(words.tensor_type(self.walk.pools, known.value), role="constant")
                uses.append(value)
                args.append(name)
            else:
                attrs[name] = words.attribute(known.value)
        elif isinstance(known, Items):
            for i, item in enumerate(known.items):
                self.argument(f"{name}[{i}]", item, 0, uses, args, attrs)
        elif isinstance(known, Held):
            if is_tensor(known.module):
                uses.append(self.held_value(known, kind))
                args.append(name)
            else:
                attrs[name] = known.path
        else:
            uses.append(known)
            args.append(name)

    def made(self, node: Any, index: int) -> None:
        outputs = list(node.outputs())
        if self.walk.opened and len(outputs) == 1:
            parts = unpacked(outputs[0])
            if parts is not None:  # a list that is only taken apart again: its parts are the outputs
                made = [self.builder.output(index, self.type_of(part), name=part.debugName()) for part in parts]
                self.known[outputs[0].unique()] = Items(tuple(made))
                return
        for value in outputs:
            kind, role = self.type_of(value), "activation"
            owner = self.module_of(node.input()) if node.kind() == "prim::GetAttr" else None
            if owner is not None:
                held = self.paths[value.unique()] = attribute(owner, node.s("name"))
                if is_tensor(held.module):
                    kind, role = words.tensor_type(self.walk.pools, held.module), role_of(held)
            self.known[value.unique()] = self.builder.output(index, kind, name=value.debugName(), role=role)

    def module_of(self, value: Any) -> Held | None:
        self.value(value)  # brings in the paths of the graph around
        return self.paths.get(value.unique())

    def body(self, node: Any, index: int, number: int, block: Any) -> None:
        """If and Loop: what is read from outside is bound, a loop's own values to what it begins with."""
        inner = _Block(self.walk, GraphBuilder(self.walk.pools), {}, self.place, self, self.home)
        inner.number = self.number
        given = list(node.inputs())[2:] if node.kind() == "prim::Loop" else []
        for i, value in enumerate(block.inputs()):
            inside = inner.builder.input(self.type_of(value), name=value.debugName())
            inner.known[value.unique()] = inside
            outside = self.value(given[i - 1]) if 0 < i <= len(given) else NULL
            if isinstance(outside, int) and outside != NULL:
                inner.bindings[inside] = outside
        inner.nodes(block)
        for value in block.outputs():
            inner.builder.outputs += inner.flat(inner.value(value))
        label = ("then", "else")[number] if node.kind() == "prim::If" and number < 2 else "body"
        self.builder.body(index, label, inner.builder.freeze(), inner.bindings.items())

    # -- calls ----------------------------------------------------------------------------------

    def open(self, node: Any) -> None:
        """Go through the callee's graph as if it were written here."""
        graph, home, arguments = self.callee(node)
        inner = _Block(self.walk, self.builder, {}, self.inside(node, home), self.outer, home or self.home)
        inner.bindings, inner.attributes, inner.number = self.bindings, self.attributes, self.number
        for value, given in zip(graph.inputs(), arguments, strict=True):
            inner.known[value.unique()] = given
        inner.nodes(graph)
        for value, inside in zip(node.outputs(), graph.outputs(), strict=True):
            self.known[value.unique()] = inner.value(inside)

    def called(self, node: Any, index: int) -> None:
        """Hierarchical: the callee's graph is a body of the call."""
        try:
            graph, home, _ = self.callee(node)
        except CannotOpen:
            return
        inner = _Block(self.walk, GraphBuilder(self.walk.pools), {}, self.inside(node, home), self, home)
        given = list(node.inputs())[0 if node.kind() == "prim::CallMethod" else 1 :]
        order = len(self.walk.order)
        for value, outside in zip(graph.inputs(), given, strict=False):
            inside = inner.builder.input(self.type_of(value), name=value.debugName())
            inner.known[value.unique()] = inside
            known = self.value(outside)
            if isinstance(known, int) and known != NULL:
                inner.bindings[inside] = known
            module = self.module_of(outside)
            if module is not None:
                inner.paths[value.unique()] = module
        inner.nodes(graph)
        for value in graph.outputs():
            inner.builder.outputs += inner.flat(inner.value(value))
        del self.walk.order[order:]  # the printed graph does not show what a call runs
        label = node.s("name") if node.kind() == "prim::CallMethod" else "function"
        self.builder.body(index, label, inner.builder.freeze(), inner.bindings.items())

    def callee(self, node: Any) -> tuple[Any, Held | None, list[Known]]:
        """The graph that a call runs, the module that it belongs to, and what it is given."""
        inputs = list(node.inputs())
        if node.kind() == "prim::CallMethod":
            owner = self.value(inputs[0])
            held = owner if isinstance(owner, Held) else self.module_of(inputs[0])
            if held is None:
                raise CannotOpen("a method of a module that is not known")
            graph = private.script_method(held.module, node.s("name"))
            if graph is None:
                raise CannotOpen(f"method {node.s('name')} of {held.path}")
            return graph, held, [self.value(value) for value in inputs]
        name = inputs[0].type().annotation_str
        function = self.walk.script.functions(name)
        if function is None:
            raise CannotOpen(f"function {name}")
        return function.graph, None, [self.value(value) for value in inputs[1:]]

    def inside(self, node: Any, home: Held | None) -> Place:
        scope = self.place.scope
        if home is not None and home.path:
            before = self.home.path if self.home is not None else ""
            path = home.path
            if path != before:  # a method that calls another of the same module stays where it is
                inner = path[len(before) + 1 :] if before and path.startswith(f"{before}.") else path
                scope = scope if inner != path or not before else 0
                *containers, name = inner.split(".")
                for container in containers:
                    scope = self.walk.pools.scope(scope, container)
                call = self.walk.calls.get((scope, name), 0)
                self.walk.calls[scope, name] = call + 1
                scope = self.walk.pools.scope(scope, name, class_name(home.module), call)
        return Place(scope, (*self.place.frames, *script_frames(node)))

    # -- where ----------------------------------------------------------------------------------

    def where(self, node: Any) -> tuple[int, int, int]:
        """Scope, stack, and the number of the top-level node."""
        walk = self.walk
        if walk.followed is None:
            row = self.place.scope, walk.pools.stack(self.frames(node)), self.number
            walk.trail.add(node, row)
            return row
        found = walk.followed.follow(node)
        if found is None:
            found = self.scope(node), walk.pools.stack(self.frames(node)), -1
        walk.last_scope = found[0]
        return found

    def frames(self, node: Any) -> list[Frame]:
        traced = traced_frames(node.sourceRange())
        if traced:  # already the whole stack
            return users_frames(traced)
        return users_frames([*self.place.frames, *script_frames(node)])

    def scope(self, node: Any) -> int:
        """As torch's own inlined graph has it, which does not distinguish calls: most likely still the last one."""
        pools, names = self.walk.pools, private.module_hierarchy(node)
        if [entry.name for entry in pools.scope_chain(self.walk.last_scope)] == [name for name, _ in names]:
            return self.walk.last_scope
        scope = 0
        for name, cls in names:
            scope = pools.scope(scope, name, cls)
        return scope


def _without_constants(block: Any, into: _Block) -> Iterator[Any]:
    for node in block.nodes():
        if node.kind() == "prim::Constant":
            into.known[node.output().unique()] = Constant(constant(node))
        else:
            yield node
