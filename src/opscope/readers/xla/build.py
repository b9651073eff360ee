"""From HLO modules to graphs: instructions are nodes, parameters and constants are values, called computations bodies.

Tuples exist in HLO because an instruction has one result. Here an instruction has as many outputs as its shape has
arrays, so that who reads what stays visible; `tuple` and `get-tuple-element` are still nodes, and make views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from opscope.errors import BadInput
from opscope.ir import Frame, Graph, GraphBuilder, Pools, dtypes

from .hlo import Array, Computation, Instruction, Module, Place, Shape, leaves
from .names import Named, taken_apart

# Bodies are shown as graphs. Those that only say how two numbers become one (of reduce, scatter, sort) are named in an
# attribute instead.
_CALLERS = ("fusion", "call", "async-start", "custom-call")  # these call by `to_apply` what they run as it is
_JOINS = ("to_apply", "select", "scatter")
_MOST_DEEP = 64


# What an operation keeps through all stages: the name that JAX gave it, and its place in the source.
Origin: TypeAlias = tuple[str, Frame | None, int]


class Builder:
    """Builds the graphs of one module, or of all modules of a dump, into shared pools."""

    def __init__(self, pools: Pools) -> None:
        self.pools = pools
        self._scopes: dict[tuple[Any, ...], int] = {(): 0}
        self._stacks: dict[Place, int] = {}
        self._types: dict[Array, int] = {}
        self._attrs: dict[int, tuple[Any, int]] = {}
        self.origins: dict[Graph, list[frozenset[Origin]]] = {}  # of every node of an entry: itself and what is inside

    def graph(self, module: Module, name: str) -> Graph:
        return _Build(self, module, name).run()

    def scope(self, named: Named) -> int:
        key = named.scopes
        known = self._scopes.get(key)
        if known is None:
            above = self.scope(Named(key[:-1], "", ""))
            known = self._scopes[key] = self.pools.scope(above, key[-1].name, key[-1].cls)
        return known

    def stack(self, place: Place) -> int:
        known = self._stacks.get(place)
        if known is None:
            known = self._stacks[place] = self.pools.stack(place.frames)
        return known

    def type(self, array: Array) -> int:
        known = self._types.get(array)
        if known is None:
            known_as = dtypes.find(array.dtype)
            dtype = known_as.name if known_as is not None else array.dtype
            sizes = None if array.dtype in ("token", "opaque") else [None if size < 0 else size for size in array.sizes]
            known = self._types[array] = self.pools.type(dtype, sizes)
        return known

    def attrs(self, instruction: Instruction, more: dict[str, Any]) -> int:
        if more:
            return self.pools.attrs(instruction.attrs | more)
        known = self._attrs.get(id(instruction.attrs))
        if known is None:
            # The attributes are kept beside the id: an object that is gone would give its id to another one.
            known = self._attrs[id(instruction.attrs)] = (instruction.attrs, self.pools.attrs(instruction.attrs))
        return known[1]


class _Build:
    def __init__(self, shared: Builder, module: Module, name: str) -> None:
        self.shared, self.module, self.name = shared, module, name
        names = [i.op_name for c in module.computations.values() for i in c.instructions if i.op_name]
        phases = {taken_apart(text).phase for text in names}
        # Where nothing is differentiated, all of it is forward; else what carries no mark may be anything.
        self.default = "other" if phases & {"backward", "recompute"} else "forward"
        self.bodies: dict[str, Graph] = {}

    def run(self) -> Graph:
        entry = self.module.computations[self.module.entry]
        graph = self._computation(entry, (), is_entry=True)
        self.shared.origins[graph] = [
            frozenset(self._origins(i)) for i in entry.instructions if i.number < 0 and i.opcode != "constant"
        ]
        return graph

    def _origins(self, instruction: Instruction) -> Iterator[Origin]:
        if instruction.op_name and not any(_is_body(instruction, way) for way, _ in instruction.called):
            frames, column, _ = instruction.place
            yield instruction.op_name, frames[-1] if frames else None, column
        for name in (name for way, name in instruction.called if _is_body(instruction, way)):
            for inner in self.module.computations[name].instructions:
                yield from self._origins(inner)

    def _body(self, name: str, above: tuple[str, ...]) -> Graph:
        if name not in self.bodies:
            if name in above or len(above) > _MOST_DEEP:
                raise BadInput(f"{self.name}: the computation {name!r} calls itself")
            computation = self.module.computations.get(name)
            if computation is None:
                raise BadInput(f"{self.name}: the computation {name!r} is called, but it is not in the module")
            self.bodies[name] = self._computation(computation, above)
        return self.bodies[name]

    def _computation(self, computation: Computation, above: tuple[str, ...], is_entry: bool = False) -> Graph:
        shared = self.shared
        b = GraphBuilder(shared.pools)
        values: dict[str, list[int]] = {}  # by instruction: one for each array of its shape
        nodes: dict[str, int] = {}
        made = {i.name: i for i in computation.instructions}
        for instruction in sorted((i for i in computation.instructions if i.number >= 0), key=lambda i: i.number):
            values[instruction.name] = [
                b.input(shared.type(array), name=_title(instruction), role=instruction.role)
                for array in leaves(instruction.shape)
            ]
        for instruction in computation.instructions:
            if instruction.number >= 0:
                continue
            if instruction.opcode == "constant":
                values[instruction.name] = [
                    b.value(shared.type(array), name=_title(instruction), role="constant")
                    for array in leaves(instruction.shape)
                ]
                continue
            self._instruction(b, instruction, values, nodes, made, (*above, computation.name))
        results = [computation.root] if computation.results is None else computation.results
        for result in results:
            b.outputs += self._read(values, result, f"the result of {computation.name!r}")
        for instruction in computation.instructions:
            for before in instruction.control:
                if before in nodes and instruction.name in nodes:
                    b.link("control", nodes[before], nodes[instruction.name])
        if is_entry:
            self._aliases(b)
            self._pairs(b, computation, nodes)
            self._kernels(b, computation, nodes)
        return b.freeze()

    def _instruction(
        self,
        b: GraphBuilder,
        instruction: Instruction,
        values: dict[str, list[int]],
        nodes: dict[str, int],
        made: dict[str, Instruction],
        above: tuple[str, ...],
    ) -> None:
        shared = self.shared
        reads: list[int] = []
        args: list[str] = []
        shape: Shape = instruction.shape
        opcode = instruction.opcode
        picked: range | None = None
        for place, operand in enumerate(instruction.operands):
            ids = self._read(values, operand, instruction.name)
            if opcode == "get-tuple-element" and place == 0:
                picked = _element(made[operand].shape, instruction.attrs.get("index", 0))
                if picked is None or picked.stop > len(ids):
                    raise BadInput(f"{self.name}: {instruction.name} takes a part that {operand} does not have")
                ids = ids[picked.start : picked.stop]
            reads += ids
            args += [str(place)] if len(ids) == 1 else [f"{place}[{i}]" for i in range(len(ids))]
        named = taken_apart(instruction.op_name)
        more: dict[str, Any] = {}
        for way, name in instruction.called:
            if not _is_body(instruction, way):
                more["applies" if way == "to_apply" else f"applies {way}"] = self._applied(name)
        node = b.node(
            opcode,
            reads,
            args=args,
            name=_title(instruction),
            scope=shared.scope(named),
            stack=shared.stack(instruction.place),
            attrs=shared.attrs(instruction, more),
            phase=named.phase or self.default,
        )
        nodes[instruction.name] = node
        outputs = [b.output(node, shared.type(array)) for array in leaves(shape)]
        values[instruction.name] = outputs
        if opcode in ("get-tuple-element", "tuple", "bitcast", "optimization-barrier", "add-dependency"):
            for own, source in zip(outputs, reads, strict=False):
                b.set_storage(own, source)
        if instruction.called:
            self._called(b, instruction, node, reads, values, above)

    def _read(self, values: dict[str, list[int]], operand: str, reader: str) -> list[int]:
        """The values that a name stands for: `%3#1` is one of several results."""
        if operand in values:
            return values[operand]
        whole, _, index = operand.partition("#")
        ids = values.get(whole)
        if ids is None or not index.isdecimal() or int(index) >= len(ids):
            raise BadInput(f"{self.name}: {reader} reads {operand!r}, which nothing before it makes")
        return [ids[int(index)]]

    def _called(
        self,
        b: GraphBuilder,
        instruction: Instruction,
        node: int,
        reads: Sequence[int],
        values: dict[str, list[int]],
        above: tuple[str, ...],
    ) -> None:
        opcode = instruction.opcode
        for i, (way, name) in enumerate(instruction.called):
            if not _is_body(instruction, way):
                continue
            graph = self._body(name, above)
            label = "fused" if opcode == "fusion" else way
            given = list(reads)
            if opcode == "conditional":
                # The first operand chooses; each branch has one of those that follow, whole.
                given = self._branch_reads(instruction, i, reads)
            elif i < len(instruction.bound):
                given = [value for name in instruction.bound[i] for value in self._read(values, name, instruction.name)]
            inside = graph.inputs.tolist()
            b.body(node, label, graph, zip(inside, given, strict=False) if len(inside) <= len(given) else ())

    def _branch_reads(self, instruction: Instruction, branch: int, reads: Sequence[int]) -> list[int]:
        name = instruction.called[branch][1]
        start = 1
        for i in range(branch):
            start += len(self.bodies[instruction.called[i][1]].inputs)
        return list(reads[start : start + len(self.bodies[name].inputs)])

    def _applied(self, name: str) -> str:
        """What a small computation does with its numbers: its one operator, or its operators."""
        computation = self.module.computations.get(name)
        if computation is None:
            return name
        ops = [i.opcode for i in computation.instructions if i.number < 0 and i.opcode not in ("constant", "tuple")]
        return ops[0] if len(ops) == 1 else " ".join(ops[:8]) or "first"

    # -- the whole module -----------------------------------------------------------------------------

    def _aliases(self, b: GraphBuilder) -> None:
        for result, parameter in self.module.aliases.items():
            if 0 <= result < len(b.outputs) and 0 <= parameter < len(b.inputs):
                b.set_storage(b.outputs[result], b.inputs[parameter])

    def _pairs(self, b: GraphBuilder, computation: Computation, nodes: dict[str, int]) -> None:
        """Forward and backward belong together where they have the same scopes and the same place in the source."""
        forward: dict[tuple[Any, Place], list[tuple[int, str]]] = {}
        backward: list[tuple[int, Named, Place]] = []
        for instruction in computation.instructions:
            node = nodes.get(instruction.name)
            if node is None or not instruction.op_name or not instruction.place.frames:
                continue
            named = taken_apart(instruction.op_name)
            if named.phase == "backward":
                backward.append((node, named, instruction.place))
            elif named.phase == "forward":
                forward.setdefault((named.scopes, instruction.place), []).append((node, named.primitive))
        for node, named, place in backward:
            candidates = forward.get((named.scopes, place), ())
            if candidates and place.call:
                b.link("grad", candidates[0][0], node)  # the first: what follows in the same call is its derivative
                continue
            same = [other for other, primitive in candidates if primitive == named.primitive]
            chosen = same or [other for other, _ in candidates]
            if len(chosen) == 1:  # of several in one place, it is not known which
                b.link("grad", chosen[0], node)

    def _kernels(self, b: GraphBuilder, computation: Computation, nodes: dict[str, int]) -> None:
        """In a module that XLA has fused, each fusion is a kernel."""
        for instruction in computation.instructions:
            if instruction.opcode == "fusion":
                inside = self.module.computations[instruction.called[0][1]] if instruction.called else None
                b.group(
                    "kernel",
                    [nodes[instruction.name]],
                    name=instruction.name,
                    code=printed(inside) if inside is not None else "",
                    attrs={
                        "kind": instruction.attrs.get("kind", ""),
                        "computation": inside.name if inside is not None else "",
                    },
                )


def _is_body(instruction: Instruction, way: str) -> bool:
    return way not in _JOINS or instruction.opcode in _CALLERS


def _title(instruction: Instruction) -> str:
    return instruction.name if instruction.title is None else instruction.title


def printed(computation: Computation) -> str:
    """A computation as HLO text, without what the page shows elsewhere."""
    lines = [f"{computation.name} {{"]
    for i in computation.instructions:
        inside = str(i.number) if i.number >= 0 else ", ".join(i.operands)
        root = "ROOT " if i.name == computation.root else ""
        lines.append(f"  {root}{i.name} = {_shape(i.shape)} {i.opcode}({inside})")
    return "\n".join([*lines, "}"])


def _shape(shape: Shape) -> str:
    if isinstance(shape, Array):
        return f"{shape.dtype}[{','.join(map(str, shape.sizes))}]"
    return f"({', '.join(map(_shape, shape))})"


def _element(shape: Shape, index: int) -> range | None:
    """The arrays of one part of a tuple."""
    if isinstance(shape, Array) or not 0 <= index < len(shape):
        return None
    start = sum(len(leaves(part)) for part in shape[:index])
    return range(start, start + len(leaves(shape[index])))
