"""A backward graph as Paddle describes it (in a dump, in a log, or live), and how it becomes a graph of ours.

A gradient node is a node. What it hands on are its outputs, in the order of Paddle's slots, also where nobody takes
them. What it is handed are its inputs, several in one slot where gradients are added up. The gradient that
backward() starts from is made by no node and is not drawn, so that edges are exactly Paddle's; the node says its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opscope.ir import GraphBuilder, Pools
from opscope.ir.attributes import NO_GRADIENT, STARTS_FROM
from opscope.ir.capture import Table, column
from opscope.ir.columns import frozen
from opscope.ir.facts import GRADIENTS

from .names import ACCUMULATION, grad_op

FIGURES = ("norm", "min", "max", "mean", "nan", "inf")
NOT_KNOWN = -1  # of a slot or a rank


@dataclass(slots=True)
class Edge:
    """One entry of a node's `next_functions`: where a gradient goes, and what was seen of it."""

    target: int | None  # a node, or None: this input wants no gradient
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    place: str = ""
    name: str = ""
    out_slot: int = NOT_KNOWN
    out_rank: int = NOT_KNOWN
    in_slot: int = NOT_KNOWN
    in_rank: int = NOT_KNOWN
    evidence: str = ""  # where the type comes from; empty: it is not known
    figures: tuple[float, ...] | None = None


@dataclass(slots=True)
class GradNode:
    """One gradient node."""

    name: str
    ptr: str = ""
    edges: list[Edge] = field(default_factory=list[Edge])
    leaf: str = ""  # the parameter that an accumulation node adds into
    leaf_dtype: str = ""
    leaf_shape: tuple[int, ...] | None = None
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    scope: int = 0
    stack: int = 0
    call: int = -1  # live: the operator whose gradient it is
    starts: list[tuple[str, tuple[int, ...]]] = field(
        default_factory=list[tuple[str, tuple[int, ...]]]
    )  # of backward()
    saved: Sequence[tuple[str, int]] = ()  # (argument, value): tensors kept from the forward pass

    @property
    def is_leaf(self) -> bool:
        return self.name == ACCUMULATION


def in_order(nodes: Sequence[GradNode], times: Mapping[int, float] | None = None) -> list[int]:
    """Nodes as Paddle's engine takes them: what is ready, first come first served. Where the time that nodes ran is
    known, that decides, and the others come right after what they wait for. Cycles (of damaged files) are cut."""
    waiting = [0] * len(nodes)
    for node in nodes:
        for edge in node.edges:
            if edge.target is not None:
                waiting[edge.target] += 1
    queue = [i for i, count in enumerate(waiting) if count == 0]
    seen = [False] * len(nodes)
    order: list[int] = []
    start = 0
    rest = 0
    while len(order) < len(nodes):
        if start == len(queue):  # only cycles are left
            while rest < len(nodes) and seen[rest]:
                rest += 1
            queue.append(rest)
        i = queue[start]
        start += 1
        if seen[i]:
            continue
        seen[i] = True
        order.append(i)
        for edge in nodes[i].edges:
            if edge.target is not None:
                waiting[edge.target] -= 1
                if waiting[edge.target] == 0:
                    queue.append(edge.target)
    if not times:
        return order
    when = [0.0] * len(nodes)
    for i in order:
        when[i] = times.get(i, when[i])
        for edge in nodes[i].edges:
            if edge.target is not None:
                when[edge.target] = max(when[edge.target], when[i] + 1e-6)
    return sorted(range(len(nodes)), key=when.__getitem__)


class Placing:
    """Appends nodes one by one, in any order. Values come first: a node may come before what it reads."""

    def __init__(self, builder: GraphBuilder, nodes: Sequence[GradNode]) -> None:
        self._builder = builder
        self._nodes = nodes
        self._types: dict[tuple[str, tuple[int, ...] | None], int] = {}
        self._values: list[list[int]] = []
        self._coming: list[list[tuple[int, int, int]]] = [[] for _ in nodes]  # (slot, rank, value)
        self.rows = [-1] * len(nodes)
        self.leaf_values: dict[str, int] = {}  # parameter -> the value of its gradient
        self.gradients: list[tuple[int, Edge]] = []  # value -> the edge
        for node in nodes:
            made: list[int] = []
            for edge in node.edges:
                if edge.target is None and node.is_leaf:
                    continue  # it always says so: nothing comes after a leaf
                value = builder.value(self._type(edge.dtype, edge.shape), name=edge.name, role="gradient")
                made.append(value)
                if edge.target is not None:
                    self._coming[edge.target].append((edge.in_slot, edge.in_rank, value))
                    self.gradients.append((value, edge))
            self._values.append(made)

    def _type(self, dtype: str, shape: tuple[int, ...] | None) -> int:
        key = (dtype, shape)
        if key not in self._types:
            self._types[key] = self._builder.pools.type(dtype, shape) if dtype or shape is not None else 0
        return self._types[key]

    def emit(self, i: int) -> int:
        node, builder = self._nodes[i], self._builder
        arriving = sorted(self._coming[i], key=lambda entry: entry[:2])
        op = grad_op(node.name)
        index = builder.node(
            op,
            [value for _, _, value in arriving] + [value for _, value in node.saved],
            args=[_argument(slot, rank) for slot, rank, _ in arriving] + [name for name, _ in node.saved],
            name=node.leaf or (node.name if op != node.name else ""),
            scope=node.scope,
            stack=node.stack,
            attrs=_attrs(node),
            phase="backward",
        )
        self.rows[i] = index
        for value in self._values[i]:
            builder.produce(index, value)
        if node.is_leaf:
            name = f"{node.leaf}.grad" if node.leaf else ""
            gradient = builder.output(index, self._type(node.leaf_dtype, node.leaf_shape), name=name, role="gradient")
            builder.outputs.append(gradient)
            self.leaf_values[node.leaf] = gradient
        return index


def place(builder: GraphBuilder, nodes: Sequence[GradNode], order: Sequence[int] | None = None) -> Placing:
    """Append all nodes."""
    placing = Placing(builder, nodes)
    for i in in_order(nodes) if order is None else order:
        placing.emit(i)
    return placing


def _argument(slot: int, rank: int) -> str:
    if slot < 0:
        return "grad"
    return f"grad[{slot}]" if rank <= 0 else f"grad[{slot}][{rank}]"


def _attrs(node: GradNode) -> dict[str, Any]:
    attrs = dict(node.attrs)
    if node.ptr:
        attrs["ptr"] = node.ptr
    if node.starts:
        attrs[STARTS_FROM] = [[dtype, list(shape)] for dtype, shape in node.starts]
    if not node.is_leaf:
        nulls = [i for i, edge in enumerate(node.edges) if edge.target is None]
        if nulls:
            attrs[NO_GRADIENT] = nulls
    return attrs


def types_from_leaves(nodes: Sequence[GradNode]) -> None:
    """A gradient that is added into a parameter has the parameter's shape; and the other way round."""
    for node in nodes:
        for edge in node.edges:
            if edge.target is None or not nodes[edge.target].is_leaf:
                continue
            leaf = nodes[edge.target]
            if edge.in_slot < 0:
                edge.in_slot, edge.in_rank = 0, 0
            if edge.shape is not None and leaf.leaf_shape is None:
                leaf.leaf_dtype, leaf.leaf_shape = edge.dtype, edge.shape
            elif edge.shape is None and leaf.leaf_shape is not None:
                edge.dtype, edge.shape, edge.evidence = leaf.leaf_dtype, leaf.leaf_shape, "parameter"


def gradient_table(gradients: Sequence[tuple[int, Edge]], stage: int = 0) -> Table | None:
    """Place, slots and evidence of every edge, and the figures where they were measured."""
    if not gradients:
        return None
    rows = sorted(gradients, key=lambda entry: entry[0])
    edges = [edge for _, edge in rows]
    columns = {
        "place": column([edge.place for edge in edges], known=[bool(edge.place) for edge in edges]),
        "evidence": column([edge.evidence or "not seen" for edge in edges]),
    }
    slots: tuple[tuple[str, Callable[[Edge], int]], ...] = (
        ("out_slot", lambda edge: edge.out_slot),
        ("out_rank", lambda edge: edge.out_rank),
        ("in_slot", lambda edge: edge.in_slot),
        ("in_rank", lambda edge: edge.in_rank),
    )
    for name, of in slots:
        numbers = np.array([of(edge) for edge in edges], dtype=np.int32)
        if (numbers >= 0).any():
            columns[name] = column(np.maximum(numbers, 0), known=(numbers >= 0).tolist())
    if any(edge.figures is not None for edge in edges):
        known = [edge.figures is not None for edge in edges]
        for i, name in enumerate(FIGURES):
            figures = np.array([edge.figures[i] if edge.figures else 0.0 for edge in edges], dtype=np.float64)
            columns[name] = column(figures, unit="elements" if i >= 4 else "", known=known)
    return Table(
        stage, "value", frozen(np.array([value for value, _ in rows], dtype=np.int32)), columns, GRADIENTS.name
    )


def layer_scope(pools: Pools, steps: Sequence[tuple[str, str]], scope: int = 0) -> int:
    """The scope of layers one inside the other, each by name and class; `scope` is around them."""
    for name, cls in steps:
        scope = pools.scope(scope, name, cls)
    return scope
