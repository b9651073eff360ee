"""Expressions of TorchScript: operators become nodes, calls of modules and functions are put in where they stand."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from opscope.errors import BadInput
from opscope.readers.torch.names import VIEWS, in_place, short_class

from .nodes import TEMPORARY, Env, Nodes, Part, Place, attribute
from .objects import Call, Tensor, Thing, children
from .source import Function
from .values import NOTHING, Abstract, Const, Dic, Mod, Seq, Val, plain

_DEEPEST_CALL = 120
_MOST_BITS = 64
# Operators that change their first argument and are not named with an underscore.
_LISTS = ("append", "_set_item", "insert", "extend", "clear", "reverse", "sort", "Delete")
MUTATING = frozenset(f"aten.{name}" for name in _LISTS)
_CASTS = {
    "bool": ("aten.Bool", "bool"),
    "int": ("aten.Int", "int"),
    "float": ("aten.Float", "float"),
    "str": ("aten.str", "str"),
}
_RESULTS = {"aten.len": "int", "aten.__isnot__": "bool", "aten.__is__": "bool", "aten.dim": "int"}


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


class Expressions(Nodes):
    """What an expression stands for."""

    def _body(self, body: Sequence[ast.stmt], env: Env, place: Place) -> Abstract | None:
        """Run statements; what comes back is what they return."""
        raise NotImplementedError

    def _value(
        self,
        node: ast.expr,
        env: Env,
        place: Place,
        *,
        outputs: int = 1,
        name: str = "",
        names: Sequence[str] = (),
    ) -> Abstract:
        if isinstance(node, ast.Name):
            return self._name(node, env)
        if isinstance(node, ast.Constant):
            number = node.value
            if isinstance(number, int) and number.bit_length() > _MOST_BITS:
                raise BadInput(f"{place.file.path}, line {node.lineno}: a number of {number.bit_length():,} bits")
            return Const(number if isinstance(number, str | int | float | bool | type(None)) else str(number))
        if isinstance(node, ast.Call):
            return self._call(node, env, place, outputs, names or [name])
        if isinstance(node, ast.Attribute):
            return self._attribute(node, env, place)
        if isinstance(node, ast.Tuple | ast.List):
            items = tuple(self._value(item, env, place) for item in node.elts)
            return Seq(items, isinstance(node, ast.List))
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return Dic(
                tuple((self._value(k, env, place) if k else NOTHING, self._value(v, env, place)) for k, v in pairs)
            )
        if isinstance(node, ast.UnaryOp):
            inner = self._value(node.operand, env, place)
            if isinstance(node.op, ast.USub) and isinstance(inner, Const) and isinstance(inner.value, int | float):
                return Const(-inner.value)
            return self._node(f"python.{type(node.op).__name__}", [("0", inner)], {}, node, place, names=[name])
        if isinstance(node, ast.Subscript):
            return self._subscript(node, env, place, name)
        if isinstance(node, ast.IfExp):
            return self._choice(node, env, place, name)
        if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp):
            parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            sign = node.ops[0] if isinstance(node, ast.Compare) else node.op
            uses = [(str(i), self._value(part, env, place)) for i, part in enumerate(parts)]
            return self._node(f"python.{type(sign).__name__}", uses, {}, node, place, names=[name])
        self.unknown[type(node).__name__] = None
        return NOTHING

    def _name(self, node: ast.Name, env: Env) -> Abstract:
        found = env.get(node.id)
        if found is not None:
            return found
        return Const({"inf": float("inf"), "nan": float("nan")}.get(node.id, node.id))

    def _chosen(self, condition: Abstract) -> bool | None:
        """Which branch is taken, where the code or a saved attribute says so."""
        if not isinstance(condition, Const) or not isinstance(condition.value, bool):
            return None
        if condition.saved_as:
            self.decided[condition.saved_as] = None
        return condition.value

    def _choice(self, node: ast.IfExp, env: Env, place: Place, name: str) -> Abstract:
        condition = self._value(node.test, env, place)
        chosen = self._chosen(condition)
        if chosen is not None:
            return self._value(node.body if chosen else node.orelse, env, place)
        outer = self.part
        inners: list[Part] = []
        for branch in (node.body, node.orelse):
            self.part = inner = self._inner_part(place)
            try:
                value = self._value(branch, dict(env), place)
            finally:
                self.part = outer
            self._out(inner, value, place, branch)
            inners.append(inner)
        made = self._emit("prim.If", [("cond", condition)], {}, node, place)
        for label, inner in zip(("then", "else"), inners, strict=True):
            self._attach(made, label, inner)
        return outer.output(made, 0, name)

    def _subscript(self, node: ast.Subscript, env: Env, place: Place, name: str) -> Abstract:
        whole, index = self._value(node.value, env, place), self._value(node.slice, env, place)
        if isinstance(index, Const) and isinstance(index.value, int):
            items: Sequence[Any] = ()
            if isinstance(whole, Seq):
                items = whole.items
            elif isinstance(whole, Const) and isinstance(whole.value, list):
                items = [Const(item) for item in cast("list[Any]", whole.value)]
            if -len(items) <= index.value < len(items):
                return items[index.value]
        return self._node("aten.__getitem__", [("0", whole), ("1", index)], {}, node, place, names=[name])

    def _attribute(self, node: ast.Attribute, env: Env, place: Place) -> Abstract:
        dotted = dotted_name(node)
        if dotted is not None and dotted[0] not in env:
            if dotted[0] == "CONSTANTS" and len(dotted) == 2 and dotted[1][1:].isdigit():
                index = int(dotted[1][1:7])
                held = self.constants[index] if index < len(self.constants) else None
                return self._held(held, ("CONSTANTS",), dotted[1])
            return Const(".".join(dotted[1:] if dotted[0] == "torch" else dotted))
        owner = self._value(node.value, env, place)
        return self._member(owner, node.attr, node, env, place)

    def _member(self, owner: Abstract, name: str, node: ast.expr, env: Env, place: Place) -> Abstract:
        if isinstance(owner, Mod):
            assigned = env.get((owner.path, name))
            if assigned is not None:
                return assigned
            for key, value in children(owner.thing):
                if key == name:
                    return self._held(value, owner.path, name)
            return NOTHING
        if isinstance(owner, Seq) and name in owner.fields:
            return owner.items[owner.fields.index(name)]
        return self._node("prim.GetAttr", [("0", owner)], {"name": name}, node, place, names=[name])

    def _held(self, value: Any, path: tuple[str, ...], name: str) -> Abstract:
        """What lies in an attribute or among the constants."""
        if isinstance(value, Tensor):
            return self._tensor(value, ".".join((*path, name)), "constant")
        if isinstance(value, Thing):
            if value.cls == "collections.OrderedDict":
                return Const(attribute(value.items))
            return Mod(value, (*path, name))
        if isinstance(value, tuple | list):
            items = cast("Sequence[Any]", value)
            held = tuple(self._held(item, path, f"{name}.{i}") for i, item in enumerate(items[:10_000]))
            return Seq(held, isinstance(value, list))
        if isinstance(value, Call):
            return Const(value.target)
        return Const(attribute(value), name)

    # -- calls ----------------------------------------------------------------------------------

    def _call(self, node: ast.Call, env: Env, place: Place, outputs: int, names: Sequence[str]) -> Abstract:
        func = node.func
        dotted = dotted_name(func)
        if dotted is not None and dotted[0] not in env:
            special = self._special(dotted, node, env, place, names)
            if special is not None:
                return special
        positional = [self._value(arg, env, place) for arg in node.args if not isinstance(arg, ast.Starred)]
        named = {word.arg: self._value(word.value, env, place) for word in node.keywords if word.arg is not None}
        if dotted is not None and dotted[0] not in env:
            full = ".".join(dotted)
            function = self.code.functions.get(full)
            if function is not None:
                return self._inlined(function, positional, named, None, node, place)
            cls = self.code.classes.get(full)
            if cls is not None and cls.base == "NamedTuple":
                return Seq(tuple(positional), fields=tuple(cls.fields[: len(positional)]))
            known = folded(full, positional) if not named else None
            if known is not None:
                return known
            op = full.removeprefix("ops.") if dotted[0] == "ops" else "aten." + ".".join(dotted[1:])
            if dotted[0] not in ("ops", "torch"):
                op = f"prim.{full}" if len(dotted) == 1 else full
            return self._operator(op, positional, named, node, env, place, outputs, names)
        if isinstance(func, ast.Attribute):
            owner = self._value(func.value, env, place)
            cls = self.code.classes.get(owner.thing.cls) if isinstance(owner, Mod) else None
            method = cls.methods.get(func.attr) if cls is not None else None
            if method is not None and isinstance(owner, Mod):
                return self._inlined(method, positional, named, owner, node, place)
            op = "prim.CallMethod"
            attrs = {"name": func.attr}
            uses = [("self", owner), *((str(i), value) for i, value in enumerate(positional))]
            return self._node(op, uses, attrs, node, place, outputs=outputs, names=names)
        called = self._value(func, env, place)  # `f = __torch__.helper`, then `f(x)`
        function = self.code.functions.get(called.value) if isinstance(called, Const) and called.is_text else None
        if function is not None:
            return self._inlined(function, positional, named, None, node, place)
        self.unknown["a call of an expression"] = None
        return NOTHING

    def _special(
        self, dotted: Sequence[str], node: ast.Call, env: Env, place: Place, names: Sequence[str]
    ) -> Abstract | None:
        """What looks like a call and is none."""
        name, args = dotted[-1], node.args
        if len(dotted) == 1:
            if name in ("annotate", "unchecked_cast") and len(args) == 2:
                return self._value(args[1], env, place)
            if name == "uninitialized":
                return NOTHING
            if name == "getattr" and len(args) >= 2 and isinstance(args[1], ast.Constant):
                owner = self._value(args[0], env, place)
                return self._member(owner, str(args[1].value), node, env, place)
            if name in _CASTS and len(args) == 1:
                op, dtype = _CASTS[name]
                inner = self._value(args[0], env, place)
                if isinstance(inner, Const) and isinstance(inner.value, int | float) and name != "str":
                    return Const({"bool": bool, "int": _whole, "float": float}[name](inner.value))
                return self._node(op, [("0", inner)], {}, node, place, names=names, type_=self.pools.type(dtype, ()))
        if tuple(dotted) == ("torch", "device") and len(args) == 1:
            return self._value(args[0], env, place)
        return None

    def _inlined(
        self,
        function: Function,
        positional: Sequence[Abstract],
        named: Mapping[str, Abstract],
        owner: Mod | None,
        node: ast.Call,
        place: Place,
    ) -> Abstract:
        """The body of a method or function in the place of its call."""
        if place.depth >= _DEEPEST_CALL:
            raise BadInput(f"{place.file.path}: calls are nested more than {_DEEPEST_CALL} deep")
        self.reached.add(function.name)
        self._count()
        path, scope = place.path, place.scope
        if owner is not None and owner.path != path:
            scope, path = self._scope(owner, place), owner.path
        env: Env = {}
        arguments = function.node.args.args
        if owner is not None and arguments:
            env[arguments[0].arg] = owner
            arguments = arguments[1:]
        inner = Place(function, path, scope, self._stack(place, node), place.depth + 1)
        defaults = function.node.args.defaults
        for i, argument in enumerate(arguments):
            if i < len(positional):
                env[argument.arg] = positional[i]
            elif argument.arg in named:
                env[argument.arg] = named[argument.arg]
            else:
                at = i - (len(arguments) - len(defaults))
                env[argument.arg] = self._value(defaults[at], {}, inner) if at >= 0 else NOTHING
        return self._body(function.node.body, env, inner) or NOTHING

    def _scope(self, owner: Mod, place: Place) -> int:
        """The scope of a call: below that of the caller where the module is inside of it."""
        path = owner.path
        inside = path[: len(place.path)] == place.path
        scope, start = (place.scope, len(place.path)) if inside else (0, 0)
        thing: Any = self.root
        for i, name in enumerate(path):
            thing = (
                next((value for key, value in children(thing) if key == name), None)
                if isinstance(thing, Thing)
                else None
            )
            if i < start:
                continue
            cls = short_class(thing.cls) if isinstance(thing, Thing) else ""
            call = 0
            if i == len(path) - 1:
                call = self.calls.get(path, 0)
                self.calls[path] = call + 1
            scope = self.pools.scope(scope, name, cls, call)
        return scope

    def _operator(
        self,
        op: str,
        positional: Sequence[Abstract],
        named: Mapping[str, Abstract],
        node: ast.Call,
        env: Env,
        place: Place,
        outputs: int,
        names: Sequence[str],
    ) -> Abstract:
        uses: list[tuple[str, Abstract]] = []
        attrs: dict[str, Any] = {}
        for key, value in (*((str(i), value) for i, value in enumerate(positional)), *named.items()):
            known, data = plain(value)
            if known and not (key == "0" and op in MUTATING):
                attrs[key] = attribute(data)
            else:
                uses.append((key, value))
        writes = op in MUTATING or in_place(op)
        dtype = _RESULTS.get(op, "")
        written = node.args[0].id if writes and node.args and isinstance(node.args[0], ast.Name) else ""
        if written and outputs < 2 and not (names and names[0] and not TEMPORARY.fullmatch(names[0])):
            names = [written]
        made = self._node(
            op,
            uses,
            attrs,
            node,
            place,
            outputs=1 if writes and outputs < 2 else outputs,
            names=names,
            type_=self.pools.type(dtype, ()) if dtype else 0,
            shares=writes or op in VIEWS,
        )
        if written in env and isinstance(made, Val):
            env[written] = made  # who reads the name from now on reads what was written
        return made


def folded(name: str, arguments: Sequence[Abstract]) -> Const | None:
    """The result of a comparison of what the code spells out: `None is None`, `len([1, 2])`. It decides branches."""
    kind = name.removeprefix("torch.")
    saved = next((arg.saved_as for arg in arguments if isinstance(arg, Const) and arg.saved_as), "")
    if kind == "len" and len(arguments) == 1 and isinstance(arguments[0], Seq):
        return Const(len(arguments[0].items))
    if kind in ("__is__", "__isnot__") and len(arguments) == 2 and not any(isinstance(a, Val) for a in arguments):
        one, other = (isinstance(arg, Const) and arg.value is None for arg in arguments)
        if one or other:
            return Const((one and other) == (kind == "__is__"), saved)
    if not all(isinstance(arg, Const) and isinstance(arg.value, str | int | float) for arg in arguments):
        return None
    values = [cast("Const", arg).value for arg in arguments]
    if kind == "__not__" and len(values) == 1 and isinstance(values[0], bool):
        return Const(not values[0], saved)
    if len(values) != 2 or isinstance(values[0], str) != isinstance(values[1], str):
        return None
    compare = _COMPARISONS.get(kind)
    return Const(compare(*values), saved) if compare is not None else None


def dotted_name(node: ast.expr) -> list[str] | None:
    """`torch.ops.add` as its parts; None if it is not only names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]


def _whole(number: float) -> int:
    return int(number) if abs(number) < 1e300 else 0
