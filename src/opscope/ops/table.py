"""From an operator's name to its kind and its formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from opscope.ir import dtypes
from opscope.ir.attributes import NESTED, SPARSE, WRITTEN_BEFORE
from opscope.ir.graph import Graph
from opscope.ir.pools import Type

from . import odd
from .aliases import Alias, Part, Spelled, aliases, framework_of
from .call import Call, NotKnown, Places, bytes_of
from .composed import composed
from .cost import ESTIMATED, UNKNOWN, ZERO, Argument, Cost, Formula, registered
from .kinds import RULES, VIEW, Rule

_PYTHON = ("int", "float", "str", "int[]", "float[]")


class Entry(NamedTuple):
    """What is known of an operator by its name."""

    kind: str
    rule: Rule
    places: Places
    spelled: Spelled


@lru_cache(maxsize=8192)
def entry(framework: str, op: str) -> Entry | None:
    spelled = framework_of(framework).spelled(op)
    table = aliases(framework)
    for name in spelled.names:
        alias = table.get(name)
        # A kind's own name counts only without namespace (`mylib.add` may be anything), and a reading is no name.
        if alias is None and name in RULES and "." not in name and "/" not in name:
            alias = Alias(name, {})
        if alias is not None:
            return Entry(alias.kind, RULES[alias.formula], alias.places, spelled)
    return None


def canonical(framework: str, op: str) -> str:
    """The one name of this kind of operator, such as `conv` or `add`; its own name where it has none."""
    found = entry(framework, op)
    return found.kind if found is not None else op


def title(framework: str) -> str:
    """The name of a framework as its makers write it; of one that is not known, its own."""
    return framework_of(framework).title or framework


def parts(framework: str, graph: Graph) -> Mapping[int, Part]:
    """The nodes of operations that the framework writes as several operators: what they cost, and of which kind they
    are. All others are what their names say. Looked for once."""
    known = _PARTS.setdefault(graph, {})
    if framework not in known:
        of = framework_of(framework)
        names = _by_name(framework, graph) if of.composes else {}
        known[framework] = {node: Part(kind=kind) for node, kind in composed(graph, names).items()} | dict(
            of.chains(graph)
        )
    return known[framework]


_PARTS: WeakKeyDictionary[Graph, dict[str, Mapping[int, Part]]] = WeakKeyDictionary()


class Kinds(NamedTuple):
    """The kinds of the operators of a graph: by name, and of single nodes whose name does not say it."""

    by_op: Mapping[int, str]  # string id of the op
    by_node: Mapping[int, str]

    def of(self, graph: Graph, node: int) -> str:
        return self.by_node.get(node) or self.by_op[int(graph.node_op[node])]


def kinds_of(framework: str, graph: Graph) -> Kinds:
    by_node = {node: part.kind for node, part in parts(framework, graph).items() if part.kind}
    return Kinds(_by_name(framework, graph), by_node)


def _by_name(framework: str, graph: Graph) -> dict[int, str]:
    ops: list[int] = np.unique(graph.node_op).tolist()
    return {op: canonical(framework, graph.pools.strings[op]) for op in ops}


def cost_of(
    framework: str, op: str, inputs: Sequence[Argument], outputs: Sequence[Type], attrs: Mapping[str, Any]
) -> Cost:
    """What an operator costs. One that is not known, or whose shapes are not, is `unknown`: never a silent zero."""
    users = _registered(framework, op)
    if users is not None:
        cost = users(inputs, outputs, attrs)
        if cost is not None:
            return cost
    found = entry(framework, op)
    if found is None:
        return Cost(how=UNKNOWN)
    if outputs and all(t.dtype in _PYTHON for t in outputs):
        return VIEW  # a size, or arithmetic with sizes
    try:
        if isinstance(attrs.get(NESTED), Mapping):
            return odd.nested(partial(_by_entry, found), inputs, outputs, attrs)
        return _by_entry(found, inputs, outputs, attrs)
    except (NotKnown, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        # A file may say anything of an operator: attributes of other types, fewer dimensions than it needs.
        return Cost(how=UNKNOWN)


def _by_entry(found: Entry, inputs: Sequence[Argument], outputs: Sequence[Type], attrs: Mapping[str, Any]) -> Cost:
    said = found.spelled
    call = Call(inputs, outputs, attrs, found.places, said.lists, said.in_place, said.only_computed)
    cost = odd.sparse(found.kind, found.rule, call) if isinstance(attrs.get(SPARSE), Mapping) else found.rule(call)
    cost = _complex(cost, call)
    return cost if cost.read is not None else _without_unread(cost, found, inputs)


def _registered(framework: str, op: str) -> Formula | None:
    """A formula of the user's: for this operator, or for all of its overloads."""
    if not registered:
        return None
    whole = ".".join(op.split(".")[:2])
    keys = ((framework, op), ("", op), (framework, whole), ("", whole))
    return next((registered[key] for key in keys if key in registered), None)


def _complex(cost: Cost, call: Call) -> Cost:
    """A product of complex numbers is four of real ones; how much the rest takes differs by operator."""
    if cost.how in (ZERO, ESTIMATED) or not any(dtypes.of_element(t.dtype).startswith("complex") for t in call.outputs):
        return cost
    causal = cost.causal if cost.causal is None or cost.causal < 0 else 4 * cost.causal
    return cost._replace(macs=4 * cost.macs, other=2 * cost.other, how=ESTIMATED, causal=causal)


def _without_unread(cost: Cost, found: Entry, inputs: Sequence[Argument]) -> Cost:
    """Tensors among the arguments that are not read: those that results go to."""
    read = [a for a in inputs if a.name != WRITTEN_BEFORE and not (found.spelled.has_out and _is_result(a.name))]
    if len(read) == len(inputs):
        return cost
    try:
        return cost._replace(read=sum(bytes_of(a.type) for a in read))
    except NotKnown:
        return cost


def _is_result(argument: str) -> bool:
    return argument.startswith("out") or argument in ("values", "indices")
