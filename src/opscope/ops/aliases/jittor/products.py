"""Matrix products and convolutions that Jittor writes as broadcast, multiply and sum.

Jittor has no matmul and no convolution: both operands are spread over one large index space (`broadcast_to`, or
`reindex` for the windows of a convolution), multiplied, and summed over some axes. A chain is a product if the sum
runs over an axis that both operands have: that is what tells it from a scaling followed by a sum. It is counted once,
at the sum: one multiply-accumulate for each element of the index space. The other operators of the chain cost nothing;
in the fused kernels they never exist.

A graph that was recorded with Jittor's libraries has their operators in place of the chain: they have formulas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

from opscope.ir.enumerations import PHASE_ID
from opscope.ir.graph import Graph
from opscope.ops.aliases import Part
from opscope.ops.call import NotKnown, bytes_of, size_of
from opscope.ops.cost import UNKNOWN, ZERO, Cost

_SPREADS = ("broadcast_to", "reindex")
_MULTIPLY = "binary.multiply"
_SUMS = ("reduce.add", "reindex_reduce.add")
_PART = Part(Cost(read=0, written=0, how=ZERO))
_AXIS = re.compile(r"\bi(\d+)\b")


class _Chain(NamedTuple):
    kind: str
    total: int  # the node that sums
    multiply: int
    spreads: tuple[int, ...]
    cost: Cost


def products(graph: Graph) -> dict[int, Part]:
    """What every node that is part of a product is; the others are what their names say."""
    strings = graph.pools.strings
    wanted = {name: number for number, name in enumerate(strings) if name in (*_SPREADS, _MULTIPLY, *_SUMS)}
    if _MULTIPLY not in wanted:
        return {}
    finder = _Finder(graph, {number: name for name, number in wanted.items()})
    chains = [chain for node in finder.sums() if (chain := finder.chain(node)) is not None]
    costs = {chain.total: Part(chain.cost, chain.kind) for chain in chains}
    # What something else reads as well has to be made for it, and keeps its own cost.
    inside = {node for chain in chains for node in (chain.total, chain.multiply)}
    multiplies = [c.multiply for c in chains if finder.readers(c.multiply) <= inside]
    costs.update(dict.fromkeys(multiplies, _PART))
    spreads = {node for chain in chains for node in chain.spreads}
    costs.update(dict.fromkeys([node for node in spreads if finder.readers(node) <= costs.keys()], _PART))
    return costs


class _Finder:
    def __init__(self, graph: Graph, names: Mapping[int, str]) -> None:
        self.graph = graph
        self.names = names

    def op(self, node: int) -> str:
        return self.names.get(int(self.graph.node_op[node]), "")

    def sums(self) -> list[int]:
        return [node for node, op in enumerate(self.graph.node_op.tolist()) if self.names.get(op) in _SUMS]

    def made_by(self, node: int) -> list[int]:
        """The nodes that make what a node reads; -1 for what no node makes."""
        graph = self.graph
        values = graph.use_value[graph.use_start[node] : graph.use_start[node + 1]].tolist()
        return [int(graph.value_producer[value]) if value >= 0 else -1 for value in values]

    def readers(self, node: int) -> set[int]:
        graph = self.graph
        return {
            int(graph.use_node[row])
            for value in graph.node_outputs.row(node).tolist()
            for row in graph.value_uses.row(value).tolist()
        }

    def chain(self, total: int) -> _Chain | None:
        sources = self.made_by(total)
        if len(sources) != 1 or sources[0] < 0 or self.op(sources[0]) != _MULTIPLY:
            return None
        multiply = sources[0]
        spreads = self.made_by(multiply)
        if len(spreads) != 2 or any(node < 0 or self.op(node) not in _SPREADS for node in spreads):
            return None
        graph = self.graph
        made = graph.node(multiply).outputs
        rank = len(made[0].type.shape or ()) if made else 0
        if not rank:
            return None
        axes = [self._axes(node, rank) for node in spreads]
        summed = self._summed(total, rank)
        if summed is None or axes[0] is None or axes[1] is None:
            return None
        if not (axes[0] & axes[1] & summed) or axes[0] >= set(range(rank)) or axes[1] >= set(range(rank)):
            return None
        kind = self._kind(total, spreads)
        try:
            cost = Cost(macs=size_of(made[0].type))
        except NotKnown:
            return _Chain(kind, total, multiply, tuple(spreads), Cost(how=UNKNOWN))
        read = [value.type for node in spreads for value in graph.node(node).inputs if value]
        with suppress(NotKnown):  # an operand from before the recording
            cost = cost._replace(read=sum(map(bytes_of, read)))
        return _Chain(kind, total, multiply, tuple(spreads), cost)

    def _kind(self, total: int, spreads: list[int]) -> str:
        """Windows make a product a convolution. The gradients of a matrix product are matrix products themselves."""
        if "reindex" not in map(self.op, spreads) and self.op(total) == "reduce.add":
            return "matmul"
        return "conv_backward" if self.graph.node_phase[total] == PHASE_ID["backward"] else "conv"

    def _axes(self, node: int, rank: int) -> set[int] | None:
        """The axes along which an operand differs; along the others it is repeated."""
        attrs = self.graph.node(node).attrs
        if self.op(node) == "reindex":
            return _mentioned(attrs.get("index"))
        repeated = _numbers(attrs.get("broadcast_dims"))
        return None if repeated is None else set(range(rank)) - repeated

    def _summed(self, node: int, rank: int) -> set[int] | None:
        """The axes that are added up. A reindex that reduces keeps those that stand alone in an index."""
        attrs = self.graph.node(node).attrs
        if self.op(node) == "reduce.add":
            return _numbers(attrs.get("reduce_dims"))
        index = attrs.get("index")
        if _mentioned(index) is None:
            return None
        alone = {int(text[1:]) for text in cast("list[str]", index) if re.fullmatch(r"i\d+", text)}
        return set(range(rank)) - alone


def _mentioned(index: Any) -> set[int] | None:
    if not isinstance(index, list):
        return None
    return {int(axis) for text in cast("list[Any]", index) for axis in _AXIS.findall(str(text))}


def _numbers(dims: Any) -> set[int] | None:
    if not isinstance(dims, list):
        return None
    return {dim for dim in cast("list[Any]", dims) if isinstance(dim, int)}
