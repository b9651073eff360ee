"""Sizes with symbols (`s77`, `2*b`, `(n + 1)//2`), and captures with numbers in their place."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np

from .capture import Capture
from .columns import frozen
from .files import all_graphs
from .graph import Body, Graph
from .pools import Dim, Interned, Pools, Type, attrs_to_text, text_to_attrs

Kind = TypeVar("Kind", bound=Capture)

_LONGEST = 500  # characters of an expression
_MOST = 1 << 62


def _modulo(a: int, b: int) -> int:
    return a % b


def _down(a: int, b: int) -> int:
    return a // b


def _up(a: int, b: int) -> int:
    return -(-a // b)


def _part(a: int, b: int, c: int) -> int:
    return a // b % c


# Functions of sympy and of Hidet that sizes are written with.
_FUNCTIONS: Mapping[str, Any] = {
    "Max": max, "max": max, "Min": min, "min": min, "Abs": abs, "abs": abs, "Mod": _modulo, "PythonMod": _modulo,
    "FloorDiv": _down, "CleanDiv": _down, "CeilDiv": _up, "cdiv": _up, "ModularIndexing": _part,
}  # fmt: skip


class NotASize(ValueError):
    """Text that is no arithmetic with whole numbers."""


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise NotASize(text[:40])
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise NotASize(text) from None


def names(text: str) -> set[str]:
    """The symbols in a size; none of text that is no size.

    >>> sorted(names("Max(1, 2*s0 + b)"))
    ['b', 's0']
    """
    try:
        tree = _parsed(text)
        _value(tree, None)
    except (NotASize, ArithmeticError, RecursionError):
        return set()
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """The number that a size is; NotASize where a symbol has none, or where it is none.

    >>> evaluate("(b + 1)//2 * 8", {"b": 4})
    16
    """
    try:
        value = _value(_parsed(text), sizes)
    except (ArithmeticError, RecursionError):
        raise NotASize(text) from None
    if not 0 <= value < _MOST:
        raise NotASize(text)
    return value


def _value(node: ast.expr, sizes: Mapping[str, int] | None) -> int:
    """Without sizes, whether it is arithmetic at all: every symbol is 1 then."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if sizes is None:
            return 1
        if node.id in sizes:
            return sizes[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.BinOp):
        a, b = _value(node.left, sizes), _value(node.right, sizes)
        return _arithmetic(node.op, a, b)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        function = _FUNCTIONS.get(node.func.id)
        if function is not None:
            try:
                return function(*[_value(item, sizes) for item in node.args])
            except TypeError:
                pass
    raise NotASize(ast.dump(node)[:80])


def _arithmetic(op: ast.operator, a: int, b: int) -> int:
    if isinstance(op, ast.Add):
        found = a + b
    elif isinstance(op, ast.Sub):
        found = a - b
    elif isinstance(op, ast.Mult):
        found = a * b
    elif isinstance(op, ast.FloorDiv):
        found = a // b
    elif isinstance(op, ast.Mod):
        found = a % b
    elif isinstance(op, ast.Div) and a % b == 0:
        found = a // b
    elif isinstance(op, ast.Pow) and 0 <= b <= 8:
        found = a**b
    else:
        raise NotASize("operator")
    if abs(found) > _MOST:
        raise NotASize("too large")
    return found


def symbols(capture: Capture) -> list[str]:
    """The symbols in the sizes of a capture, as they come."""
    found: dict[str, None] = {}
    for graph in all_graphs(capture):
        for number in np.unique(graph.value_type).tolist():
            for size in graph.pools.types[number].shape or ():
                if isinstance(size, str):
                    found.update(dict.fromkeys(sorted(names(size))))
    return list(found)


def bound(capture: Kind, sizes: Mapping[str, int]) -> Kind:
    """The capture with numbers for symbols, in types and in attributes. What has other symbols as well keeps them."""

    def number(size: Dim) -> Dim:
        try:
            return evaluate(size, sizes) if isinstance(size, str) else size
        except NotASize:
            return size

    return _changed(capture, set(sizes), number)


def renamed(capture: Kind, new: Mapping[str, str]) -> Kind:
    """The capture with other names for symbols."""
    if not new:
        return capture
    word = re.compile(r"\b(" + "|".join(map(re.escape, new)) + r")\b")

    def name(size: Dim) -> Dim:
        return word.sub(lambda found: new[found[1]], size) if isinstance(size, str) and names(size) else size

    return _changed(capture, set(new), name)


def _changed(capture: Kind, about: set[str], change: Callable[[Dim], Dim]) -> Kind:
    """The capture with every size changed that has one of these symbols."""
    old = capture.pools
    types = _rows(Interned(old.types[0]), (_changed_type(row, change) for row in old.types.rows()))
    attrs = _rows(Interned(old.attr_texts[0]), (_changed_attrs(row, about, change) for row in old.attr_texts.rows()))
    pools = Pools()
    pools.__dict__.update(old.__dict__)
    pools.types, pools.attr_texts = types[0], attrs[0]
    done: dict[int, Graph] = {}

    def moved(graph: Graph) -> Graph:
        if id(graph) not in done:
            done[id(graph)] = replace(
                graph,
                pools=pools,
                value_type=frozen(types[1][graph.value_type]),
                node_attrs=frozen(attrs[1][graph.node_attrs]),
                groups=MappingProxyType(
                    {kind: replace(g, attrs=frozen(attrs[1][g.attrs])) for kind, g in graph.groups.items()}
                ),
                bodies=tuple(Body(b.node, b.label, moved(b.graph), b.bindings) for b in graph.bodies),
            )
        return done[id(graph)]

    stages = [replace(stage, graph=moved(stage.graph)) for stage in capture.stages]
    return replace(capture, pools=pools, stages=stages)


def _rows(pool: Any, rows: Iterator[Any]) -> tuple[Any, Any]:
    """A pool with these rows, and the new number of each."""
    return pool, np.array([pool.add(row) for row in rows], dtype=np.int32)


def _changed_type(type_: Type, change: Callable[[Dim], Dim]) -> Type:
    if type_.shape is None or all(not isinstance(size, str) for size in type_.shape):
        return type_
    return Type(type_.dtype, tuple(map(change, type_.shape)))


def _changed_attrs(text: str, about: set[str], change: Callable[[Dim], Dim]) -> str:
    if not any(name in text for name in about):
        return text
    try:
        attrs = text_to_attrs(text)
    except ValueError:
        return text
    return attrs_to_text({name: _changed_item(value, change) for name, value in attrs.items()})


def _changed_item(value: Any, change: Callable[[Dim], Dim]) -> Any:
    """Lists of sizes (`[s0, 8]`) only: a text by itself may be anything."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if all(isinstance(item, int) or (isinstance(item, str) and names(item)) for item in items):
            return [change(item) for item in items]
    return cast("Any", value)
