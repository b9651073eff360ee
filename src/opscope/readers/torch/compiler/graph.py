"""A printed graph as our graph. Values and operators are known by the names that the compiler gave them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opscope.ir import NULL, Frame, Graph, GraphBuilder, Listing, Pools
from opscope.ir.attributes import MODULE_GUESSED, RECOMPUTE_POLICY, RECOMPUTED_BECAUSE
from opscope.readers.torch.names import VIEWS, base_name, in_place, op_name

from .annotations import annotation
from .printed import Argument, Node, Place, Printed, names_in, split

_NUMBER = re.compile(r"^-?\d+$")
_LIST = re.compile(r"^[\[(](.*)[\])]$", re.DOTALL)
_MOST_ITEMS = 64
_LONGEST_TEXT = 400
_HIGHER_ORDER = "torch.ops.higher_order."
CALL = "the call of the model"
_CUT = "the partitioner: cheaper to run again than to keep"


class Named(NamedTuple):
    """What an input stands for."""

    name: str
    role: str = "input"


@dataclass
class Built:
    graph: Graph
    nodes: dict[str, int] = field(default_factory=dict[str, int])  # printed name -> node; a folded pick: its source's
    values: dict[str, int] = field(default_factory=dict[str, int])
    sources: dict[int, Node] = field(default_factory=dict[int, Node])
    listing: Listing = field(default_factory=lambda: Listing(""))
    picked: int = 0  # lines that only name one result of an operator with several


@dataclass
class Way:
    """How the operators of one graph are placed and named."""

    pools: Pools
    named: Callable[[str], Named | None] = lambda name: None
    phase: Callable[[Node], str] = lambda node: "forward"
    scope: Callable[[Node], int] = lambda node: 0
    guess: Callable[[Node], str] = lambda node: ""  # where the scope is one: what it is from
    called: Place | None = None  # the line of operators that have none: where all of it runs
    relate: Callable[[GraphBuilder, Mapping[str, int]], None] | None = None


def build(printed: Printed, way: Way, text: str = "") -> Built:
    return _Building(printed, way).run(text)


class _Building:
    def __init__(self, printed: Printed, way: Way) -> None:
        self.printed, self.way, self.pools = printed, way, way.pools
        self.builder = GraphBuilder(way.pools)
        self.values: dict[str, int] = {}  # also of aliases
        self.parts: dict[str, list[int]] = {}  # of an operator with several results
        self.inner: dict[str, Printed] = {}  # names that stand for a graph inside
        self.attributes: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        self.sources: dict[int, Node] = {}
        self.picks = picks(printed)
        self.annotations = {node.name: node.annotation for node in printed.nodes if node.name in self.picks}
        self.slots: dict[str, dict[int, str]] = {}  # by operator: the name of each result that is picked
        for name, (source, slot) in self.picks.items():
            self.slots.setdefault(source, {})[slot] = name
        self.stacks: dict[Place | None, int] = {None: 0}

    def run(self, text: str) -> Built:
        for entry in self.printed.inputs:
            known = self.way.named(entry.name) or Named(entry.name)
            self.values[entry.name] = self.builder.input(
                self.type_of(entry.annotation), name=known.name, role=known.role
            )
        self.add_aliases()
        for node in self.printed.nodes:
            self.node(node)
            self.add_aliases()
        for result, _ in self.printed.outputs:
            for name in names_in(result):
                if name in self.values:
                    self.builder.outputs.append(self.values[name])
        if self.way.relate is not None:
            self.way.relate(self.builder, self.nodes)
        graph = self.builder.freeze()
        lines = [(node.line, self.nodes[node.name]) for node in self.printed.nodes if node.name in self.nodes]
        return Built(graph, self.nodes, self.values, self.sources, Listing(text, lines), len(self.picks))

    def add_aliases(self) -> None:
        for name, source in self.printed.aliases.items():
            if name not in self.values and source in self.values:
                self.values[name] = self.values[source]

    def node(self, node: Node) -> None:
        if node.target == "get_attr":
            self.attribute(node)
        elif node.name in self.picks:
            source, slot = self.picks[node.name]
            self.values[node.name] = self.parts[source][slot]
            self.nodes[node.name] = self.nodes[source]
        else:
            self.call(node)

    def attribute(self, node: Node) -> None:
        path = node.arguments[0].text
        if path in self.printed.inner:
            self.inner[node.name] = self.printed.inner[path]
            return
        if path not in self.attributes:
            self.attributes[path] = self.builder.value(self.type_of(node.annotation), name=path, role="constant")
        self.values[node.name] = self.attributes[path]

    def call(self, node: Node) -> None:
        op = _op(node.target)
        uses: list[tuple[str, int]] = []
        attrs: dict[str, Any] = {}
        bodies: list[tuple[str, Printed]] = []
        for position, argument in enumerate(node.arguments):
            self.argument(argument.name or str(position), argument, uses, attrs, bodies)
        if node.target.startswith("self.") and node.target[5:] in self.printed.inner:
            bodies.append(("forward", self.printed.inner[node.target[5:]]))
        if node.borrowed or (node.place is None and self.way.called is not None):
            attrs["line of"] = node.borrowed or CALL
        if guess := self.way.guess(node):
            attrs[MODULE_GUESSED] = guess
        if node.policy:
            attrs[RECOMPUTE_POLICY] = node.policy
        phase = self.way.phase(node)
        if phase == "recompute":
            attrs[RECOMPUTED_BECAUSE] = f"activation checkpointing says: {node.policy}" if node.policy else _CUT
        index = self.builder.node(
            op,
            [value for _, value in uses],
            args=[name for name, _ in uses],
            name=node.name,
            scope=self.way.scope(node),
            stack=self.stack(node.place or self.way.called),
            attrs=attrs,
            phase=phase,
        )
        self.nodes[node.name] = index
        self.sources[index] = node
        self.results(node, op, index, uses)
        for label, printed in bodies:
            self.body(index, label, printed, uses)

    def argument(
        self,
        name: str,
        argument: Argument,
        uses: list[tuple[str, int]],
        attrs: dict[str, Any],
        bodies: list[tuple[str, Printed]],
    ) -> None:
        text = argument.text
        if text in self.values:
            uses.append((name, self.values[text]))
            return
        if text in self.inner:
            bodies.append((name, self.inner[text]))
            return
        read = [found for found in names_in(text) if found in self.values or found in self.inner]
        listed = _LIST.match(text)
        if not read:
            attrs[name] = _plain(text)
        elif listed:
            for i, item in enumerate(split(listed[1])):
                if item.text == "None":
                    uses.append((f"{name}[{i}]", NULL))
                else:
                    self.argument(f"{name}[{i}]", item, uses, attrs, bodies)
        else:  # a slice with sizes, an expression
            attrs[name] = _plain(text)
            uses += [(f"{name}.{i}", self.values[found]) for i, found in enumerate(read) if found in self.values]

    def results(self, node: Node, op: str, index: int, uses: list[tuple[str, int]]) -> None:
        slots = self.slots.get(node.name)
        if slots:
            names = [slots.get(slot, "") for slot in range(max(slots) + 1)]
            types = [self.type_of(self.annotations.get(name, "")) for name in names]
            self.parts[node.name] = [
                self.builder.output(index, kind, name=name) for kind, name in zip(types, names, strict=True)
            ]
            self.values[node.name] = self.parts[node.name][0]
            return
        value = self.builder.output(index, self.type_of(node.annotation), name=node.name)
        self.values[node.name] = value
        if uses and (base_name(op) in VIEWS or in_place(op)):
            self.builder.set_storage(value, uses[0][1])

    def body(self, index: int, label: str, printed: Printed, uses: list[tuple[str, int]]) -> None:
        built = build(printed, Way(self.pools, phase=self.way.phase, scope=self.way.scope, guess=self.way.guess))
        operands = [value for _, value in uses if value != NULL][-len(printed.inputs) :] if printed.inputs else []
        bindings = []
        if len(operands) == len(printed.inputs):
            inside = [built.values[entry.name] for entry in printed.inputs]
            bindings = list(zip(inside, operands, strict=True))
        self.builder.body(index, label, built.graph, bindings)

    def type_of(self, text: str) -> int:
        found = annotation(text) if text else None
        return 0 if found is None else self.pools.type(found.dtype, found.shape)

    def stack(self, place: Place | None) -> int:
        if place not in self.stacks:
            assert place is not None
            self.stacks[place] = self.pools.stack([Frame(place.file, place.line, place.function)])
        return self.stacks[place]


def picks(printed: Printed) -> dict[str, tuple[str, int]]:
    """`getitem_1 = var_mean[1]` of an operator whose results are all picked: name -> (operator, slot).

    A result with a type is one tensor, and picking from it is an operator of its own.
    """
    makers = {node.name: node for node in printed.nodes}
    found: dict[str, tuple[str, int]] = {}
    others: set[str] = set()
    for node in printed.nodes:
        picked = node.arguments[0].text if node.target == "operator.getitem" else ""
        maker = makers.get(picked)
        if maker is not None and not maker.annotation and _has_parts(maker.target):
            text = node.arguments[1].text
            if _NUMBER.match(text) and 0 <= int(text) < 10_000:
                found[node.name] = (picked, int(text))
                continue
        for argument in node.arguments:
            others.update(names_in(argument.text))
    for result, _ in printed.outputs:
        others.update(names_in(result))
    return {name: pick for name, pick in found.items() if pick[0] not in others}


def _has_parts(target: str) -> bool:
    return target.startswith("torch.ops.")


def _op(target: str) -> str:
    if target.startswith(_HIGHER_ORDER):
        return f"higher_order.{target.removeprefix(_HIGHER_ORDER)}"
    return op_name(target.replace("torch._C._nn.", "torch.nn.functional."))


def _plain(text: str) -> Any:
    """An argument that is no tensor, as JSON can hold it."""
    if _NUMBER.match(text) and len(text) < 20:
        return int(text)
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    listed = _LIST.match(text)
    if listed:
        items = [_plain(item.text) for item in split(listed[1])]
        return items if len(items) <= _MOST_ITEMS else [*items[:_MOST_ITEMS], f"… {len(items) - _MOST_ITEMS} more"]
    try:
        return float(text) if re.match(r"^-?[\d.]+(?:[eE][-+]?\d+)?$", text) else _text(text)
    except ValueError:
        return _text(text)


def _text(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        text = text[1:-1]
    text = text.removeprefix("torch.")
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
