"""A printed graph by its names: who reads whom, and which values are views of others."""

from __future__ import annotations

from functools import cached_property

from opscope.ir.pools import Dim
from opscope.readers.torch.names import VIEWS, base_name, op_name

from .annotations import annotation
from .printed import Node, Printed, names_in

LIKE_VIEWS = VIEWS | {"aten.reshape", "aten._unsafe_view", "prims.view_of", "prims.broadcast_in_dim"}


class Flow:
    """A printed graph by its names: who reads whom."""

    def __init__(self, printed: Printed) -> None:
        self.inputs = {entry.name: entry.annotation for entry in printed.inputs}
        self.nodes: dict[str, Node] = {node.name: node for node in printed.nodes}
        self.order = {name: i for i, name in enumerate(self.nodes)}
        known = self.inputs.keys() | self.nodes.keys()
        self.reads: dict[str, list[str]] = {
            node.name: [name for argument in node.arguments for name in names_in(argument.text) if name in known]
            for node in printed.nodes
        }
        self.op = {name: op_name(node.target) for name, node in self.nodes.items()}
        self.outputs = [next((name for name in names_in(text) if name in known), "") for text, _ in printed.outputs]

    @cached_property
    def readers(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, read in self.reads.items():
            for source in read:
                found.setdefault(source, []).append(name)
        return found

    @cached_property
    def by_op(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, op in self.op.items():
            found.setdefault(op, []).append(name)
        return found

    def base(self, name: str) -> str:
        """The value whose memory this one is a view of."""
        for _ in range(1000):
            if (
                name in self.nodes
                and self.reads[name]
                and (base_name(self.op[name]) in LIKE_VIEWS or self.picks_a_view(name))
            ):
                name = self.reads[name][0]
            else:
                return name
        return name

    def picks_a_view(self, name: str) -> bool:
        """`getitem` of a split: a part of the tensor that was split."""
        return self.op[name] == "operator.getitem" and base_name(self.op.get(self.reads[name][0], "")) in LIKE_VIEWS

    def type(self, name: str) -> tuple[str, tuple[Dim, ...]] | None:
        text = self.inputs.get(name) or (self.nodes[name].annotation if name in self.nodes else "")
        found = annotation(text) if text else None
        return (found.dtype, found.shape) if found else None
