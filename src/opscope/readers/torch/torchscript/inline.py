"""From the code of a TorchScript archive to graphs: methods and functions are put in where they are called.

What the code computes step by step is run on abstract values. Calls of operators become nodes, calls of modules
become scopes, `if` and loops become nodes with bodies. Nothing is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, cast

from opscope.ir import Graph
from opscope.readers.torch.names import in_place

from .expressions import MUTATING, Expressions, dotted_name
from .nodes import Env, Part, Place, label_of
from .objects import Tensor, Thing, children
from .source import Function
from .values import NOTHING, Abstract, Const, Dic, Mod, Seq, Val


class Inliner(Expressions):
    """Builds the graph of one method of the root module."""

    def build(self, method: Function, examples: Sequence[Any] = ()) -> Graph:
        """`examples` are what the method was traced with."""
        for path, thing in modules(self.root):
            known = self.code.classes.get(thing.cls)
            for name, value in children(thing):
                if isinstance(value, Tensor):
                    role = "constant"
                    if known is not None:
                        role = "parameter" if name in known.parameters else "buffer" if name in known.buffers else role
                    if role != "constant":
                        self._tensor(value, ".".join((*path, name)), role)
        env: Env = {}
        owner, *given = method.node.args.args or [ast.arg("self")]
        env[owner.arg] = Mod(self.root, ())
        for i, argument in enumerate(given):
            type_ = self._annotated(argument.annotation)
            example = examples[i] if i < len(examples) else None
            if isinstance(example, Tensor) and not type_:
                type_ = self.pools.type(example.dtype, example.shape)
            env[argument.arg] = self.main.input(type_, argument.arg)
        place = Place(method)
        result = self._body(method.node.body, env, place)
        if result is not None:
            self._results(result)
        return self.main.b.freeze()

    def _results(self, value: Abstract) -> None:
        """Every value in what the method returns, in order."""
        if isinstance(value, Val):
            self.main.b.outputs.append(self.main.here(value))
        elif isinstance(value, Seq):
            for item in value.items:
                self._results(item)
        elif isinstance(value, Dic):
            for _, item in value.items:
                self._results(item)

    # -- statements -----------------------------------------------------------------------------

    def _body(self, body: Sequence[ast.stmt], env: Env, place: Place) -> Abstract | None:
        """Run statements; what comes back is what they return."""
        for statement in body:
            if isinstance(statement, ast.Return):
                return self._value(statement.value, env, place) if statement.value is not None else NOTHING
            if isinstance(statement, ast.Assign):
                self._assign(statement.targets[0], statement.value, env, place)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._assign(statement.target, statement.value, env, place)
            elif isinstance(statement, ast.Expr):
                self._value(statement.value, env, place, outputs=0)
            elif isinstance(statement, ast.If):
                result = self._if(statement, env, place)
                if result is not None:
                    return result
            elif isinstance(statement, ast.For | ast.While):
                self._loop(statement, env, place)
            elif isinstance(statement, ast.With):
                for item in statement.items:
                    self._value(item.context_expr, env, place, outputs=0)
                result = self._body(statement.body, env, place)
                if result is not None:
                    return result
            elif not isinstance(statement, ast.Pass | ast.AnnAssign):
                self.unknown[type(statement).__name__] = None
        return None

    def _assign(self, target: ast.expr, value: ast.expr, env: Env, place: Place) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            count = len(target.elts)
            if isinstance(value, ast.Tuple) and len(value.elts) == count:
                found = [self._value(item, env, place) for item in value.elts]
            else:
                found = self._unpacked(value, count, target, env, place)
            for item, part in zip(target.elts, found, strict=True):
                self._bind(item, part, env, place)
        else:
            name = target.id if isinstance(target, ast.Name) else ""
            self._bind(target, self._value(value, env, place, name=name), env, place)

    def _unpacked(self, value: ast.expr, count: int, target: ast.expr, env: Env, place: Place) -> Sequence[Abstract]:
        names = [item.id if isinstance(item, ast.Name) else "" for item in getattr(target, "elts", [])]
        whole = self._value(value, env, place, outputs=count, names=names)
        if isinstance(whole, Seq) and len(whole.items) == count:
            return whole.items
        if isinstance(whole, Const) and isinstance(whole.value, list) and len(cast("list[Any]", whole.value)) == count:
            return [Const(item) for item in cast("list[Any]", whole.value)]
        source = ast.get_source_segment(place.file.text, target) or ""
        op = "prim.ListUnpack" if source.rstrip(") ").endswith(",") else "prim.TupleUnpack"
        made = self._node(op, [("0", whole)], {}, value, place, outputs=count, names=names)
        return made.items if isinstance(made, Seq) else [made] * count

    def _bind(self, target: ast.expr, value: Abstract, env: Env, place: Place) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, ast.Attribute):
            owner = self._value(target.value, env, place)
            path = owner.path if isinstance(owner, Mod) else ()
            self._node(
                "prim.SetAttr", [("value", value)], {"name": ".".join((*path, target.attr))}, target, place, outputs=0
            )
            if isinstance(owner, Mod):
                env[path, target.attr] = value
        else:
            self._value(target, env, place)

    # -- branches and loops ---------------------------------------------------------------------

    def _inner(self, statements: Sequence[ast.stmt], env: Env, place: Place) -> tuple[Part, Env, Abstract | None]:
        """Run a block in a graph of its own."""
        outer, inner_env = self.part, dict(env)
        self.part = inner = self._inner_part(place)
        try:
            return inner, inner_env, self._body(statements, inner_env, place)
        finally:
            self.part = outer

    def _if(self, statement: ast.If, env: Env, place: Place) -> Abstract | None:
        condition = self._value(statement.test, env, place)
        chosen = self._chosen(condition)
        if chosen is not None:
            return self._body(statement.body if chosen else statement.orelse, env, place)
        first, first_env, first_result = self._inner(statement.body, env, place)
        second, second_env, second_result = self._inner(statement.orelse, env, place)
        returns = first_result is not None and second_result is not None
        names = [] if returns else _changed(env, first_env, second_env)
        node = self._emit("prim.If", [("cond", condition)], {}, statement, place)
        for label, inner, found, result in (
            ("then", first, first_env, first_result),
            ("else", second, second_env, second_result),
        ):
            for name in names:
                for item in _parts(found[name], first_env[name], second_env[name]):
                    self._out(inner, item, place, statement)
            if returns and result is not None:
                self._out(inner, result, place, statement)
            self._attach(node, label, inner)
        for name in names:
            parts = [
                self.part.output(node, 0, label_of(name))
                for _ in _parts(first_env[name], first_env[name], second_env[name])
            ]
            kind = first_env[name]
            whole = isinstance(kind, Seq) and _alike(kind, second_env[name])
            env[name] = Seq(tuple(parts), fields=cast("Seq", kind).fields) if whole else parts[0]
        return self.part.output(node, 0, "") if returns else None

    def _loop(self, statement: ast.For | ast.While, env: Env, place: Place) -> None:
        uses: list[tuple[str, Abstract]] = []
        if isinstance(statement, ast.For):
            uses.append(("max_trip_count", self._trips(statement.iter, env, place)))
        else:
            uses.append(("cond", self._value(statement.test, env, place)))
        # What the body changes comes in as a value of its own.
        changed = [name for name in _assigned(statement.body) if name in env]
        outer = self.part
        inner_env: Env = dict(env)
        inner = self._inner_part(place)
        bindings: list[tuple[int, int]] = []
        if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
            inner_env[statement.target.id] = inner.input(self.pools.type("int", ()), statement.target.id)
        for name in changed:
            before = env[name]
            if isinstance(before, Mod):
                continue
            start = self._built(before, statement, place)
            uses.append((label_of(name) or f"carried[{len(bindings)}]", start))
            type_, _, _ = start.part.about[start.index]
            inner_env[name] = inner.input(type_, label_of(name))
            bindings.append((cast("Val", inner_env[name]).index, outer.here(start)))
        self.part = inner
        try:
            self._body(statement.body, inner_env, place)
        finally:
            self.part = outer
        for name in changed:
            if not isinstance(inner_env[name], Mod):
                self._out(inner, inner_env[name], place, statement)
        node = self._emit("prim.Loop", uses, {}, statement, place)
        self._attach(node, "body", inner, bindings)
        for name in changed:
            if not isinstance(env[name], Mod):
                env[name] = outer.output(node, 0, label_of(name))

    def _trips(self, node: ast.expr, env: Env, place: Place) -> Abstract:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and node.args:
            return self._value(node.args[-1] if len(node.args) < 3 else node.args[1], env, place)
        return self._value(node, env, place)


# -- small things -----------------------------------------------------------------------------------


def modules(root: Thing) -> Iterator[tuple[tuple[str, ...], Thing]]:
    """Every object of the tree with its path, each once (files can hold rings)."""
    seen: set[int] = set()
    todo: list[tuple[tuple[str, ...], Thing]] = [((), root)]
    while todo:
        path, thing = todo.pop()
        if id(thing) in seen or len(path) > 200:
            continue
        seen.add(id(thing))
        yield path, thing
        todo += reversed([((*path, name), value) for name, value in children(thing) if isinstance(value, Thing)])


def _changed(env: Env, first: Env, second: Env) -> list[Any]:
    """What an `if` hands out: names that both branches set, and those from before that one of them set again."""
    return [
        name
        for name, value in first.items()
        if name in second
        and (value is not env.get(name) or second[name] is not env.get(name))
        and not isinstance(value, Mod)
        and not isinstance(second[name], Mod)
    ]


def _alike(first: Abstract, second: Abstract) -> bool:
    """Two tuples of as many parts: then the parts are handed out one by one."""
    return (
        isinstance(first, Seq)
        and isinstance(second, Seq)
        and not first.is_list
        and not second.is_list
        and len(first.items) == len(second.items) > 0
    )


def _parts(value: Abstract, first: Abstract, second: Abstract) -> Sequence[Abstract]:
    return value.items if isinstance(value, Seq) and _alike(first, second) else (value,)


def _assigned(body: Sequence[ast.stmt]) -> list[str]:
    """The names that statements set, also inside of others, and those that they write into; in order, each once."""
    found: dict[str, None] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[node.id] = None
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                dotted = dotted_name(node.func)
                if dotted is not None and dotted[0] == "torch":
                    op = "aten." + ".".join(dotted[1:])
                    if op in MUTATING or in_place(op):
                        found[node.args[0].id] = None
    return list(found)
