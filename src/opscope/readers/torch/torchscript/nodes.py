"""The graph of TorchScript code while it is built: parts (bodies in bodies), places, nodes and their values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir import NULL, Frame, GraphBuilder, Pools
from opscope.ir.pools import Stack, clean

from .objects import Tensor, Thing
from .source import Code, CodeFile, Function
from .values import NOTHING, Abstract, Const, Dic, Mod, Seq, Val, plain

Env = dict[Any, Abstract]  # names, and (path, attribute) for what the code assigned to a module

TEMPORARY = re.compile(r"_\d+")  # a name that TorchScript made up
_DEEPEST_BODY = 30
# Functions that call functions twice grow without end. Real models put each call of their code in a few dozen times.
_MOST_NODES, _MOST_PER_CALL = 50_000, 200
_SCALARS = ("int", "float", "bool", "number", "str", "complex")


class Part:
    """One graph: that of a method, or a body inside of it. Values from outside come in when they are first used."""

    def __init__(self, pools: Pools, outer: Part | None = None) -> None:
        self.b = GraphBuilder(pools)
        self.outer = outer
        self.depth: int = outer.depth + 1 if outer else 0
        self.about: list[tuple[int, str, str]] = []  # of each value: type, name, role
        self.imported: dict[int, int] = {}  # value of the outer part -> ours

    def note(self, index: int, type_: int, name: str, role: str) -> Val:
        self.about.append((type_, name, role))
        return Val(self, index)

    def input(self, type_: int, name: str, role: str = "input") -> Val:
        return self.note(self.b.input(type_, name=name, role=role), type_, name, role)

    def output(self, node: int, type_: int, name: str) -> Val:
        return self.note(self.b.output(node, type_, name=name), type_, name, "activation")

    def here(self, value: Val) -> int:
        """The index of a value in this part."""
        if value.part is self:
            return value.index
        if self.outer is None:
            raise BadInput("its code uses a value of a block outside of that block; it is damaged: save it again")
        outside = self.outer.here(value)
        found = self.imported.get(outside)
        if found is None:
            type_, name, role = self.outer.about[outside]
            found = self.imported[outside] = self.input(type_, name, role if role != "activation" else "input").index
        return found


@dataclass(frozen=True)
class Place:
    """Where the code is: module, scope and callers."""

    function: Function
    path: tuple[str, ...] = ()
    scope: int = 0
    stack: int = 0  # of the callers
    depth: int = 0

    @property
    def file(self) -> CodeFile:
        return self.function.file


class Nodes:
    """Makes nodes, and values for what they read."""

    def __init__(self, code: Code, root: Thing, constants: Sequence[Any], pools: Pools) -> None:
        self.code, self.root, self.constants, self.pools = code, root, constants, pools
        self.part = Part(pools)
        self.main = self.part
        self.tensors: dict[int, Val] = {}  # id of the record -> value
        self.held: dict[int, Tensor] = {}  # the other way round
        self.storages: dict[str, int] = {}
        self.calls: dict[tuple[str, ...], int] = {}
        self.reached: set[str] = set()
        self.unknown: dict[str, None] = {}
        self.decided: dict[str, None] = {}  # saved attributes that chose a branch
        self.nodes = 0
        self.frames: dict[Frame, int] = {}
        self.most = _MOST_NODES + _MOST_PER_CALL * sum(file.text.count("(") for file in code.files)

    def _tensor(self, tensor: Tensor, name: str, role: str) -> Val:
        found = self.tensors.get(id(tensor))
        if found is None:
            type_ = self.pools.type(tensor.dtype, tensor.shape)
            found = self.tensors[id(tensor)] = self.main.input(type_, name, role)
            self.held[found.index] = tensor
            if tensor.storage:
                self.main.b.set_storage(found.index, self.storages.setdefault(tensor.storage, found.index))
        return found

    def _annotated(self, annotation: ast.expr | None) -> int:
        text = ast.unparse(annotation) if annotation is not None else ""
        if text in _SCALARS:
            return self.pools.type(text, ())
        return 0 if text in ("", "Tensor", "Optional[Tensor]") else self.pools.type(text[:200], None)

    def _inner_part(self, place: Place) -> Part:
        inner = Part(self.pools, self.part)
        if inner.depth > _DEEPEST_BODY:
            raise BadInput(f"{place.file.path}: blocks are nested more than {_DEEPEST_BODY} deep")
        return inner

    def _stack(self, place: Place, at: ast.AST) -> int:
        """The call stack of a piece of code."""
        frames, whole = place.file.frames(at, place.function.node.name)
        stack = 0 if whole else place.stack
        for frame in frames:
            known = self.frames.get(frame)
            if known is None:
                own = Frame(clean(frame.file), frame.line, clean(frame.function))
                known = self.frames[frame] = self.pools.frames.add(own)
            stack = self.pools.stacks.add(Stack(stack, known))
        return stack

    def _built(self, value: Abstract, at: ast.AST, place: Place) -> Val:
        """A value for what is written out: a constant, a list, a tuple, a dict."""
        if isinstance(value, Val):
            return value
        known, data = plain(value)
        if known:
            attrs: dict[str, Any] = {"value": attribute(data)}
            made = self._node("prim.Constant", [], attrs, at, place, type_=self._constant_type(data))
        elif isinstance(value, Seq):
            op = "prim.ListConstruct" if value.is_list else "prim.TupleConstruct"
            made = self._node(op, [(str(i), item) for i, item in enumerate(value.items)], {}, at, place)
        elif isinstance(value, Dic):
            pairs = [(str(plain(key)[1] if plain(key)[0] else i), item) for i, (key, item) in enumerate(value.items)]
            made = self._node("prim.DictConstruct", pairs, {}, at, place)
        else:
            made = self._node(
                "prim.GetAttr", [], {"name": ".".join(value.path) if isinstance(value, Mod) else ""}, at, place
            )
        assert isinstance(made, Val)
        return made

    def _constant_type(self, data: Any) -> int:
        kind = type(data).__name__
        return self.pools.type(kind, () if kind in ("int", "float", "bool", "str") else None) if data is not None else 0

    def _out(self, inner: Part, value: Abstract, place: Place, at: ast.AST) -> int:
        """A value that a block hands out, as an output of its graph. What was written out is built first."""
        outer, self.part = self.part, inner
        try:
            index = inner.here(self._built(value, at, place))
        finally:
            self.part = outer
        inner.b.outputs.append(index)
        return index

    def _attach(self, node: int, label: str, inner: Part, bindings: Sequence[tuple[int, int]] = ()) -> None:
        found = [*bindings, *((inside, outside) for outside, inside in inner.imported.items())]
        self.part.b.body(node, label, inner.b.freeze(), found)

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > self.most:
            raise BadInput(f"its calls, each put in where it is called, come to more than {self.most:,} operators")

    def _emit(
        self, op: str, uses: Sequence[tuple[str, Abstract]], attrs: dict[str, Any], at: ast.AST, place: Place
    ) -> int:
        self._count()
        inputs: list[int] = []
        args: list[str] = []
        for name, value in uses:
            for path, item in self._flat(name, value, attrs):
                if isinstance(item, Val):
                    inputs.append(self.part.here(item))
                else:
                    inputs.append(NULL)
                args.append(path)
        return self.part.b.node(
            op, inputs, args=args, scope=place.scope, stack=self._stack(place, at), attrs=attrs, phase="forward"
        )

    def _flat(self, name: str, value: Abstract, attrs: dict[str, Any]) -> Iterator[tuple[str, Abstract]]:
        """The values in an argument: `tensors[1]`. Plain data among them goes to the attributes."""
        known, data = plain(value)
        if known:
            attrs[name] = attribute(data)
        elif isinstance(value, Val):
            yield name, value
        elif isinstance(value, Seq):
            for i, item in enumerate(value.items):
                if isinstance(item, Const) and item.value is None:
                    yield f"{name}[{i}]", item  # `index(x, [None, i])`: the place counts
                else:
                    yield from self._flat(f"{name}[{i}]", item, attrs)
        elif isinstance(value, Dic):
            for i, (key, item) in enumerate(value.items):
                yield from self._flat(f"{name}[{plain(key)[1] if plain(key)[0] else i}]", item, attrs)
        elif isinstance(value, Mod):
            attrs[name] = ".".join(value.path)

    def _node(
        self,
        op: str,
        uses: Sequence[tuple[str, Abstract]],
        attrs: dict[str, Any],
        at: ast.AST,
        place: Place,
        *,
        outputs: int = 1,
        names: Sequence[str] = (),
        type_: int = 0,
        shares: bool = False,
    ) -> Abstract:
        node = self._emit(op, uses, attrs, at, place)
        first = uses[0][1] if shares and uses else None
        made: list[Val] = []
        for i in range(outputs):
            name = names[i] if i < len(names) else ""
            value = self.part.output(node, type_, "" if TEMPORARY.fullmatch(name) else name)
            if isinstance(first, Val):
                self.part.b.set_storage(value.index, self.part.here(first))
            made.append(value)
        if outputs == 1:
            return made[0]
        return Seq(tuple(made)) if made else NOTHING


def label_of(name: Any) -> str:
    if not isinstance(name, str):
        return ".".join((*name[0], name[1]))
    return "" if TEMPORARY.fullmatch(name) else name


def attribute(value: Any, depth: int = 0) -> Any:
    """Plain data for an attribute: short, and never too deep to read."""
    if isinstance(value, str):
        return value[:10_000]
    if value is None or isinstance(value, int | float | bool):
        return value
    if isinstance(value, list | tuple) and depth < 5:
        return [attribute(item, depth + 1) for item in cast("Sequence[Any]", value)[:1000]]
    if isinstance(value, dict) and depth < 5:
        entries = list(cast("dict[Any, Any]", value).items())[:1000]
        return {str(key)[:200]: attribute(item, depth + 1) for key, item in entries}
    return f"({type(cast('object', value)).__name__})"
