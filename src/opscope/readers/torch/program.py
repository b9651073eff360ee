"""One exported program (the `model.json` of a .pt2 file) as a graph.

Values are known by name, each graph has its own names. `schema` reads the small parts of the JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from opscope.errors import BadInput
from opscope.ir import NULL, Graph, GraphBuilder, Pools
from opscope.ir.pools import clean

from .names import VIEWS, base_name, in_place, op_name
from .places import Places
from .schema import (
    LARGEST_DIM,
    Json,
    dim,
    dtype,
    expression,
    flat,
    items,
    name_in,
    name_of,
    object_at,
    plain,
    spec_of,
    string,
    union,
)

_NO_SPEC: Json = {}
_DEEPEST = 30  # graphs in graphs
# The arguments of higher-order operators: they have no schema, so the file does not name them.
_ARGUMENTS = {
    "higher_order.cond": ("pred", "true_fn", "false_fn", "operands"),
    "higher_order.while_loop": ("cond_fn", "body_fn", "carried_inputs", "additional_inputs"),
    "higher_order.map_impl": ("f", "xs", "pos_args"),
    "higher_order.scan": ("combine_fn", "init", "xs", "additional_inputs"),
    "higher_order.associative_scan": ("combine_fn", "xs", "additional_inputs"),
}


class _Result(NamedTuple):
    """A value that the signature gives a meaning."""

    name: str
    role: str
    replaces: str  # the input that it is the new content of


class Program:
    """Builds the graph of one program. `tied` says which weights lie in the same file: name -> file."""

    def __init__(self, program: Json, pools: Pools, tied: Mapping[str, str]) -> None:
        module = object_at(program.get("graph_module"), "graph_module")
        self.raw = object_at(module.get("graph"), "graph_module.graph")
        signature = module.get("signature")
        specs: Json = cast("Json", signature) if isinstance(signature, dict) else {}
        self.input_specs = [spec_of(spec) for spec in items(specs.get("input_specs"))]
        self.output_specs = [spec_of(spec) for spec in items(specs.get("output_specs"))]
        self.pools, self.tied = pools, tied
        self.warnings: list[str] = []
        self.missing: list[str] = []  # names that are read and that nothing makes
        self.places = Places(pools, _module_texts(self.raw, 0))
        self.types: dict[tuple[Any, ...], int] = {}
        self.results: dict[str, _Result] = {}  # by name in the file

    def build(self) -> Graph:
        self._results()
        part = _Part(self, self.raw, 0)
        part.inputs(self.input_specs)
        part.nodes(self.results, self._last_forward())
        graph = part.finish()
        if self.missing:
            names = ", ".join(repr(name)[:40] for name in list(dict.fromkeys(self.missing))[:5])
            self.warnings.append(f"{len(self.missing)} arguments name values that nothing makes: {clean(names)}")
        return graph

    def _results(self) -> None:
        """What the outputs are for: results, gradients, or the new content of a buffer, a parameter, an input."""
        for kind, spec in self.output_specs:
            name = name_in(spec.get("arg"))
            target = next((spec[key] for key in spec if key.endswith("_name") and isinstance(spec[key], str)), "")
            if name in self.results or not target:
                continue
            if kind.startswith("gradient_to_"):
                self.results[name] = _Result(f"{target}.grad", "gradient", "")
            elif kind.endswith("_mutation"):
                role = {"buffer_mutation": "buffer", "parameter_mutation": "parameter"}.get(kind, "activation")
                self.results[name] = _Result(target, role, target)

    def _last_forward(self) -> int | None:
        """The last node that results and new buffers need, in a graph that also computes gradients.

        What runs after it is backward. The file itself does not say.
        """
        if not any(kind.startswith("gradient_to_") for kind, _ in self.output_specs):
            return None
        nodes = items(self.raw.get("nodes"))
        maker = {
            name: i
            for i, node in enumerate(nodes)
            for argument in items(node.get("outputs"))
            for _, content in flat(argument)
            if (name := name_of(content))
        }
        wanted = [name_in(spec.get("arg")) for kind, spec in self.output_specs if not kind.startswith("gradient_to_")]
        needed: set[int] = set()
        todo = [maker[name] for name in wanted if name in maker]
        while todo:
            i = todo.pop()
            if i not in needed:
                needed.add(i)
                names = (
                    name_of(content)
                    for argument in items(nodes[i].get("inputs"))
                    for _, content in flat(argument.get("arg"))
                )
                todo += [maker[name] for name in names if name in maker]
        self.warnings.append(
            "forward and backward in one graph: an exported program does not say which is which, so what runs after "
            "the last operator that the results need counts as backward; nor which gradient belongs to which "
            "operator, so there are no grad links"
        )
        return max(needed, default=-1)

    def type(self, meta: object) -> int:
        """Of a TensorMeta; the same few hundred types come again and again."""
        try:
            entry = cast("Json", meta)
            key = (entry["dtype"], *[size["as_int"] for size in entry["sizes"]])
            found = self.types.get(key)
        except (KeyError, TypeError):
            return self._odd_type(meta)
        if found is None:
            sizes = key[1:]
            if not all(type(size) is int and 0 <= size < LARGEST_DIM for size in sizes):
                return self._odd_type(meta)
            found = self.types[key] = self.pools.type(dtype(key[0]), sizes)
        return found

    def _odd_type(self, meta: object) -> int:
        """One with symbols, or one that is not as it should be."""
        if not isinstance(meta, dict):
            return 0
        entry = cast("Json", meta)
        sizes = entry.get("sizes")
        shape = [dim(size) for size in cast("list[object]", sizes)] if isinstance(sizes, list) else None
        return self.pools.type(dtype(entry.get("dtype")), shape)


class _Part:
    """One graph of a program: the main one, or the body of a higher-order operator."""

    def __init__(self, program: Program, raw: Json, depth: int) -> None:
        self.program, self.raw, self.depth = program, raw, depth
        self.b = GraphBuilder(program.pools)
        self.values: dict[str, int] = {}  # by name in the file
        self.by_full_name: dict[str, int] = {}  # of the inputs
        tensors = raw.get("tensor_values")
        self.tensors: Json = cast("Json", tensors) if isinstance(tensors, dict) else {}
        self.symbols: dict[str, tuple[str, str]] = {}  # name -> (kind, expression)
        for kind in ("int", "bool", "float"):
            table = raw.get(f"sym_{kind}_values")
            entries: Json = cast("Json", table) if isinstance(table, dict) else {}
            for name, entry in entries.items():
                self.symbols[name] = (kind, expression(entry))

    # -- inputs ---------------------------------------------------------------------------------

    def inputs(self, specs: Sequence[tuple[str, Json]]) -> None:
        pools = self.program.pools
        first: dict[str, int] = {}  # file of a weight -> the value that has it
        for i, argument in enumerate(items(self.raw.get("inputs"))):
            kind, spec = specs[i] if i < len(specs) else ("", _NO_SPEC)
            arg_kind, content = union(argument)
            name = name_of(content) or string(spec.get("name"))
            role = {"parameter": "parameter", "buffer": "buffer", "tensor_constant": "constant"}.get(kind, "input")
            full = string(spec.get(f"{kind}_name")) or name
            if arg_kind == "as_tensor":
                type_ = self.program.type(self.tensors.get(name))
            elif name in self.symbols:
                type_ = pools.type(self.symbols[name][0], ())
            else:
                type_ = 0
            if kind in ("constant_input", "custom_obj") or (arg_kind != "as_tensor" and name not in self.symbols):
                role = "constant"
            value = self.b.input(type_, name=full, role=role)
            self.by_full_name[full] = value
            if name:
                self.values[name] = value
            file = self.program.tied.get(full, "") if role != "input" else ""
            if file:
                self.b.set_storage(value, first.setdefault(file, value))

    # -- nodes ----------------------------------------------------------------------------------

    def nodes(self, results: Mapping[str, _Result], last_forward: int | None = None) -> None:
        b, values, places = self.b, self.values, self.program.places
        phase = "forward"
        ops: dict[object, tuple[str, bool]] = {}  # target -> (op, its result lives in its first argument)
        for raw in items(self.raw.get("nodes")):
            target = raw.get("target")
            known = ops.get(target) if isinstance(target, str) else None
            if known is None:
                op = op_name(string(target))
                known = ops[string(target)] = (op, in_place(op) or base_name(op) in VIEWS)
            op, shares = known
            inputs: list[int] = []
            args: list[str] = []
            attrs: dict[str, Any] = {}
            graphs: list[tuple[str, Json, int]] = []
            for position, argument in enumerate(items(raw.get("inputs"))):
                name = argument.get("name")
                if not name or not isinstance(name, str):
                    known_names = _ARGUMENTS.get(op, ())
                    name = known_names[position] if position < len(known_names) else str(position)
                content = argument.get("arg")
                try:  # by far the most common kind, without a call
                    value = values[content["as_tensor"]["name"]]  # pyright: ignore[reportOptionalSubscript]
                except (KeyError, TypeError):
                    self._argument(name, content, inputs, args, attrs, graphs)
                else:
                    inputs.append(value)
                    args.append(name)
            meta = raw.get("metadata")
            metadata: Json = cast("Json", meta) if isinstance(meta, dict) else {}
            if "custom" in metadata:
                attrs["custom"] = metadata["custom"]
            outputs = list(self._outputs(items(raw.get("outputs")), attrs))
            node = b.node(
                op,
                inputs,
                args=args,
                name=string(raw.get("name")),
                scope=places.scope(metadata.get("nn_module_stack")),
                stack=places.stack(metadata.get("stack_trace")),
                attrs=attrs,
                phase=phase,
            )
            if node == last_forward:
                phase = "backward"
            owner = inputs[0] if shares and inputs and inputs[0] != NULL else None
            for name, type_ in outputs:
                result = results.get(name)
                if result is None:
                    value, lives_in = b.output(node, type_, name=name), owner
                else:
                    value = b.output(node, type_, name=result.name, role=result.role)
                    lives_in = self.by_full_name.get(result.replaces, owner)
                if lives_in is not None:
                    b.set_storage(value, lives_in)
                values[name] = value
            if graphs:
                self._bodies(node, graphs, inputs)

    def _outputs(self, raw: Sequence[Json], attrs: dict[str, Any]) -> Iterator[tuple[str, int]]:
        """(name, type) of each value that a node makes. What it returns as None is no value."""
        if len(raw) == 1 and "as_tensor" in raw[0]:
            name = name_of(raw[0]["as_tensor"])
            yield name, self.program.type(self.tensors.get(name))
            return
        there: list[int] = []
        count = 0
        for argument in raw:
            for kind, content in flat(argument):
                name = name_of(content)
                if kind == "as_none" or not name:
                    count += 1
                    continue
                there.append(count)
                count += 1
                if name in self.symbols:
                    what, expression = self.symbols[name]
                    if expression:
                        attrs["expr"] = expression
                    yield name, self.program.pools.type(what, ())
                else:
                    yield name, self.program.type(self.tensors.get(name))
        if len(there) < count and there:
            attrs["returned"] = there  # the others are None

    def _argument(
        self,
        name: str,
        argument: object,
        inputs: list[int],
        args: list[str],
        attrs: dict[str, Any],
        graphs: list[tuple[str, Json, int]],
    ) -> None:
        """One argument: values go to `inputs`, with `args` as their names; plain data goes to `attrs`."""
        kind, content = union(argument)
        if kind == "as_graph" and isinstance(content, dict):
            entry = cast("Json", content)
            inner = entry.get("graph")
            if isinstance(inner, dict):
                label = string(entry.get("name")) if name.isdigit() else name
                graphs.append((label or name, cast("Json", inner), len(inputs)))
        elif kind in ("as_tensor", "as_optional_tensor", "as_custom_obj", "as_token"):
            self._use(name, content, inputs, args)
        elif kind in ("as_tensors", "as_optional_tensors"):
            for i, item in enumerate(items(content)):
                self._use(f"{name}[{i}]", item, inputs, args)
        elif kind == "as_nested_tensors":
            for i, row in enumerate(cast("list[object]", content) if isinstance(content, list) else []):
                for j, item in enumerate(items(row)):
                    self._use(f"{name}[{i}][{j}]", item, inputs, args)
        elif kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            attrs_value = self._symbolic(name, content, inputs, args)
            if attrs_value is not None:
                attrs[name] = attrs_value
        elif kind in ("as_sym_ints", "as_sym_bools", "as_sym_floats"):
            attrs[name] = [
                value if (value := self._symbolic(f"{name}[{i}]", item, inputs, args)) is not None else item_text
                for i, item in enumerate(items(content))
                for item_text in (self._symbol_text(item),)
            ]
        elif kind == "as_string_to_argument" and isinstance(content, dict):
            for key, inner_argument in cast("Json", content).items():
                self._argument(f"{name}.{key}", inner_argument, inputs, args, attrs, graphs)
        else:
            attrs[name] = plain(kind, content)

    def _use(self, name: str, content: object, inputs: list[int], args: list[str]) -> None:
        args.append(name)
        kind, inner = union(content)
        if kind == "as_none":
            inputs.append(NULL)
            return
        called = name_of(inner if kind == "as_tensor" else content)
        value = self.values.get(called, NULL)
        if value == NULL:
            self.program.missing.append(called)
        inputs.append(value)

    def _symbolic(self, name: str, content: object, inputs: list[int], args: list[str]) -> Any:
        """A number as it is. A symbol is a value that some node made: it becomes a use, and None comes back."""
        kind, inner = union(content)
        if kind != "as_name":
            return inner
        called = inner if isinstance(inner, str) else ""
        if called not in self.values:
            return self._symbol_text(content)
        inputs.append(self.values[called])
        args.append(name)
        return None

    def _symbol_text(self, content: object) -> str:
        _, called = union(content)
        if not isinstance(called, str):
            return ""
        return self.symbols.get(called, ("", ""))[1] or called

    # -- graphs inside nodes --------------------------------------------------------------------

    def _bodies(self, node: int, graphs: Sequence[tuple[str, Json, int]], inputs: Sequence[int]) -> None:
        """Graphs given as arguments; what comes behind them in the call is what they are called with."""
        if self.depth >= _DEEPEST:
            raise BadInput(f"graphs are nested more than {_DEEPEST} deep")
        operands = inputs[graphs[-1][2] :]
        for label, raw, _ in graphs:
            part = _Part(self.program, raw, self.depth + 1)
            part.inputs([])
            part.nodes({})
            graph = part.finish()
            bindings: list[tuple[int, int]] = []
            if len(graph.inputs) == len(operands):
                bindings = [(i, o) for i, o in zip(graph.inputs.tolist(), operands, strict=True) if o != NULL]
            self.b.body(node, label, graph, bindings)

    # -- the end --------------------------------------------------------------------------------

    def finish(self) -> Graph:
        for argument in items(self.raw.get("outputs")):
            for _, content in flat(argument):
                value = self.values.get(name_of(content), NULL)
                if value != NULL:
                    self.b.outputs.append(value)
        return self.b.freeze()


def _module_texts(graph: Json, depth: int) -> Iterable[object]:
    """The module stacks of all nodes, also inside of others."""
    for node in items(graph.get("nodes")):
        metadata = node.get("metadata")
        if isinstance(metadata, dict):
            yield cast("Json", metadata).get("nn_module_stack")
        if "higher_order" in str(node.get("target"))[:40] and depth < _DEEPEST:
            for argument in items(node.get("inputs")):
                kind, content = union(argument.get("arg"))
                if kind == "as_graph" and isinstance(content, dict):
                    inner = cast("Json", content).get("graph")
                    if isinstance(inner, dict):
                        yield from _module_texts(cast("Json", inner), depth + 1)
