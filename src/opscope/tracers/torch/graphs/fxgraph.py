"""An fx.Graph as our graph: what fx, export, Dynamo and AOTAutograd have in common."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from opscope.ir import Graph, GraphBuilder, Pools
from opscope.ir.attributes import MODULE
from opscope.ir.graph import NULL
from opscope.readers.torch.names import op_name as written_name
from opscope.tracers.torch import private, words

from .arguments import Argument, flat, is_higher_order, named_arguments
from .frames import python_frames, stack_id
from .places import Places


class Named(NamedTuple):
    """What a placeholder stands for."""

    name: str
    role: str = "input"


@dataclass
class Built:
    graph: Graph
    nodes: dict[str, int]  # fx name -> our node; a folded getitem is the node that it picks from
    values: dict[str, int]  # fx name -> our value, or its first one
    sources: dict[str, Any] = field(default_factory=dict[str, Any])  # fx name -> the fx node that is a node here


@dataclass
class FxGraph:
    """How one fx.Graph is turned into ours. `owner` holds the attributes and modules that it names."""

    pools: Pools
    places: Places
    owner: Any = None
    python_level: bool = False  # user-level calls (fx, Dynamo): opcode and target are worth showing
    base: int = 0  # the scope of what stands in no module
    named: Callable[[Any], Named | None] = lambda node: None
    phase: Callable[[Any], str] = lambda node: "forward"
    # Joins nodes once all are there: gets the builder and the finished names.
    relate: Callable[[GraphBuilder, Built], None] | None = None

    def build(self, graph: Any) -> Built:
        return _Building(self, graph).run()


class _Building:
    def __init__(self, way: FxGraph, graph: Any) -> None:
        self.way = way
        self.graph = graph
        self.pools = way.pools
        self.builder = GraphBuilder(way.pools)
        self.values: dict[Any, list[int]] = {}  # fx node -> its values
        self.inner: dict[Any, Any] = {}  # get_attr of a graph: fx node -> the GraphModule
        self.attributes: dict[str, int] = {}  # full name -> the value of a parameter, buffer or constant
        self.tensors: dict[int, int] = {}  # id of what an attribute holds -> its first value
        self.nodes: dict[str, int] = {}
        self.sources: dict[str, Any] = {}
        self.scopes: dict[Any, int] = {}
        self.folded: set[Any] = {node for node in graph.nodes if _folds(node)}

    def run(self) -> Built:
        make: dict[str, Callable[[Any], None]] = {
            "placeholder": self.placeholder,
            "get_attr": self.get_attr,
            "output": self.output,
        }
        for node in self.graph.nodes:
            make.get(node.op, self.call)(node)
        values = {node.name: made[0] for node, made in self.values.items() if made}
        built = Built(cast("Graph", None), self.nodes, values, self.sources)
        if self.way.relate is not None:
            self.way.relate(self.builder, built)
        built.graph = self.builder.freeze()
        return built

    # -- values from outside --------------------------------------------------------------------

    def placeholder(self, node: Any) -> None:
        named = self.way.named(node) or Named(str(node.target))
        value = self.builder.input(self.type_of(meta_value(node)), name=named.name, role=named.role)
        self.values[node] = [value]

    def get_attr(self, node: Any) -> None:
        held = attribute_of(self.way.owner, str(node.target))
        if is_graph_module(held):
            self.inner[node] = held
            self.values[node] = []
            return
        self.values[node] = [self.attribute_value(str(node.target), held, meta_value(node))]

    def attribute_value(self, name: str, held: Any, meta: Any = None) -> int:
        if name not in self.attributes:
            kind = self.type_of(held) or self.type_of(meta)
            value = self.builder.value(kind, name=name, role=role_of(self.way.owner, name, held))
            self.attributes[name] = value
            owner = self.tensors.setdefault(id(held), value)
            if owner != value:  # a tied weight
                self.builder.set_storage(value, owner)
        return self.attributes[name]

    # -- operators ------------------------------------------------------------------------------

    def call(self, node: Any) -> None:
        if node in self.folded:
            source, index = node.args
            self.values[node] = [self.values[source][index]]
            self.nodes[node.name] = self.nodes[source.name]
            return
        way = self.way
        callee = attribute_of(way.owner, str(node.target)) if node.op == "call_module" else None
        arguments = named_arguments(node, callee)
        uses, attrs, graphs = self.sort(arguments)
        if way.python_level:
            attrs = {"opcode": node.op, "target": target_text(node), **attrs}
        if callee is not None:
            attrs[MODULE] = words.attribute(repr(callee))
            uses += self.held(str(node.target), callee)
        place = way.places.scope(node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack"))
        if not place and private.is_gradient_sum(node):
            # Gradients that meet are added up by nobody's module: it stands where the later of them was made.
            place = max((self.scopes.get(source, 0) for source in node.all_input_nodes[-1:]), default=0)
        place = self.scopes[node] = place or way.base
        index = self.builder.node(
            op_of(node, callee),
            [value for _, value in uses],
            args=[name for name, _ in uses],
            name=node.name,
            scope=place,
            stack=stack_id(self.pools, python_frames(node.meta.get("stack_trace") or "")),
            attrs=attrs,
            phase=way.phase(node),
        )
        self.nodes[node.name] = index
        self.sources[node.name] = node
        self.values[node] = self.outputs(node, index)
        if is_graph_module(callee):
            self.body(index, "forward", callee, [argument.value for argument in arguments])
        operands = [item.value for argument in arguments for item in flat(argument.name, argument.value)]
        for label, module in graphs:
            self.body(index, label, module, operands if _passes_last(node.target) else None)

    def sort(self, arguments: list[Argument]) -> tuple[list[tuple[str, int]], dict[str, Any], list[tuple[str, Any]]]:
        """Tensors become uses, graphs become bodies, the rest attributes."""
        uses: list[tuple[str, int]] = []
        attrs: dict[str, Any] = {}
        graphs: list[tuple[str, Any]] = []
        for argument in arguments:
            items = [*flat(argument.name, argument.value)]
            nodes = [item for item in items if _is_node(item.value)]
            if not nodes:
                attrs[argument.name] = words.attribute(argument.value)
                continue
            for item in items:
                if not _is_node(item.value):
                    if item.value is None and len(items) > 1:
                        uses.append((item.name, NULL))  # index(x, [None, i]): the place counts
                    elif len(items) > 1:
                        attrs[item.name] = words.attribute(item.value)
                elif item.value in self.inner:
                    graphs.append((item.name, self.inner[item.value]))
                else:
                    uses += [(item.name, value) for value in self.values[item.value][:1]]
        return uses, attrs, graphs

    def held(self, path: str, module: Any) -> list[tuple[str, int]]:
        """Parameters and buffers of a module that is called as one operator: it reads them."""
        tensors = [*module.named_parameters(), *module.named_buffers()]
        return [(name, self.attribute_value(f"{path}.{name}", tensor)) for name, tensor in tensors]

    def outputs(self, node: Any, index: int) -> list[int]:
        meta = meta_value(node)
        if isinstance(meta, list | tuple) and self.is_unpacked(node):
            picks = {user.args[1]: user.name for user in node.users if user in self.folded}
            items = enumerate(cast("Sequence[Any]", meta))
            made = [self.builder.output(index, self.type_of(item), name=picks.get(slot, "")) for slot, item in items]
        else:
            made = [self.builder.output(index, self.type_of(meta), name=node.name)]
        owner = self.written(node)
        if owner is not None:
            for value in made:
                self.builder.set_storage(value, owner)
        return made

    def is_unpacked(self, node: Any) -> bool:
        """All readers pick one part each: then the parts are the values."""
        return _has_parts(node.target) and all(user in self.folded for user in node.users)

    def written(self, node: Any) -> int | None:
        """The value whose memory the result is in: a view of it, or an update in place."""
        schema = getattr(node.target, "_schema", None)
        if schema is None or len(schema.returns) != 1 or schema.returns[0].alias_info is None:
            return None
        result = schema.returns[0].alias_info.before_set
        for argument, given in zip(schema.arguments, node.args, strict=False):
            info = argument.alias_info
            if info is not None and info.before_set & result and _is_node(given) and self.values.get(given):
                return self.values[given][0]
        return None

    # -- graphs inside operators ----------------------------------------------------------------

    def body(self, index: int, label: str, module: Any, operands: list[Any] | None) -> None:
        way = FxGraph(
            self.pools, self.way.places, owner=module, python_level=self.way.python_level, phase=self.way.phase
        )
        built = way.build(module.graph)
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        bindings: list[tuple[int, int]] = []
        if operands is not None and len(operands) >= len(inputs) > 0:
            for inside, outside in zip(inputs, operands[-len(inputs) :], strict=True):
                if _is_node(outside) and self.values.get(outside):
                    bindings.append((built.values[inside.name], self.values[outside][0]))
        self.builder.body(index, label, built.graph, bindings)

    def output(self, node: Any) -> None:
        for item in flat("", node.args):
            if _is_node(item.value):
                self.builder.outputs += self.values[item.value]

    def type_of(self, meta: Any) -> int:
        return type_of(self.pools, meta)


# -- what fx nodes say of themselves ----------------------------------------------------------------


def meta_value(node: Any) -> Any:
    """The tensor, fake tensor or shape record that the node makes, whoever noted it; None where nobody did."""
    for key in ("val", "example_value", "tensor_meta"):
        if node.meta.get(key) is not None:
            return node.meta[key]
    return None


def type_of(pools: Pools, meta: Any) -> int:
    if meta is None:
        return 0
    if hasattr(meta, "dtype") and hasattr(meta, "shape"):  # also ShapeProp's TensorMetadata, which is a tuple
        return words.tensor_type(pools, meta)
    if isinstance(meta, bool | int | float):
        return pools.type(type(meta).__name__, ())
    text = type(meta).__name__
    return pools.type(text.removeprefix("Sym").lower(), ()) if text.startswith("Sym") else 0


def op_of(node: Any, callee: Any) -> str:
    target = node.target
    if node.op == "call_module":
        cls = cast("type[Any]", type(callee))
        return f"nn.{cls.__name__}" if cls.__module__.startswith("torch.nn.modules") else cls.__qualname__
    if node.op == "call_method":
        return f"Tensor.{target}"
    return function_name(target)


def function_name(target: Any) -> str:
    """As torch or Python name it: `aten.mm`, `torch.relu`, `operator.add`, `my_package.gelu`."""
    if getattr(target, "_schema", None) is not None:
        return words.op_name(target)
    if is_higher_order(target):
        return f"higher_order.{target.name() if callable(getattr(target, 'name', None)) else target}"
    if isinstance(target, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"Tensor.{target.__name__}"
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or str(target)
    # Builtins such as torch.relu do not say where they are from; fx finds that out.
    name = private.qualified_name(target) or f"{getattr(target, '__module__', None) or ''}.{name}"
    # The Python face of these is torch.nn.functional, which is what people write.
    return written_name(name.replace("torch._C._nn.", "torch.nn.functional.").strip("."))


def target_text(node: Any) -> str:
    return str(node.target) if node.op != "call_function" else function_name(node.target)


def attribute_of(owner: Any, path: str) -> Any:
    """What `owner` holds under a dotted name; None if it is gone."""
    held = owner
    for part in path.split("."):
        held = getattr(held, part, None)
    return held


def role_of(owner: Any, path: str, held: Any) -> str:
    holder = attribute_of(owner, path.rpartition(".")[0]) if "." in path else owner
    name = path.rpartition(".")[2]
    if name in (getattr(holder, "_parameters", None) or {}) or type(held).__name__ == "Parameter":
        return "parameter"
    return "buffer" if name in (getattr(holder, "_buffers", None) or {}) else "constant"


def is_graph_module(held: Any) -> bool:
    return any(cls.__name__ == "GraphModule" for cls in type(held).__mro__)


def _is_node(value: Any) -> bool:
    return type(value).__name__ == "Node" and hasattr(value, "all_input_nodes")


def _folds(node: Any) -> bool:
    """A getitem that only picks one output of an operator with several."""
    if node.op != "call_function" or node.target is not operator.getitem or not _is_node(node.args[0]):
        return False
    source, index = node.args
    if source.op != "call_function" or not isinstance(index, int) or isinstance(index, bool):
        return False
    if not _has_parts(source.target):
        return False
    made = meta_value(source)
    if hasattr(made, "dtype") or not isinstance(made, list | tuple) or not 0 <= index < len(cast("list[Any]", made)):
        return False
    return all(_is_pick(user, source) for user in source.users)


def _has_parts(target: Any) -> bool:
    """Operators say in their schema what they give; what a Python function gives is its own business."""
    return getattr(target, "_schema", None) is not None or is_higher_order(target)


def _is_pick(user: Any, source: Any) -> bool:
    return user.op == "call_function" and user.target is operator.getitem and user.args[0] is source


def _passes_last(target: Any) -> bool:
    """Higher-order operators whose inner graphs take the last arguments in order."""
    name = str(target.name() if callable(getattr(target, "name", None)) else target).rpartition(".")[2]
    return name in _LAST or name.startswith("wrap")


_LAST = ("cond", "while_loop", "map_impl", "map", "scan", "invoke_subgraph", "tag_activation_checkpoint")


def named_by(names: Mapping[str, Named]) -> Callable[[Any], Named | None]:
    return lambda node: names.get(node.name)
