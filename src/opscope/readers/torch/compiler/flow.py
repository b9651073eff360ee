"""A printed graph by its names: who reads whom, and which values are views of others."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import cast

from opscope.ir.pools import Dim
from opscope.readers.torch.names import VIEWS, base_name, op_name

from .annotations import annotation
from .printed import Node, Printed, names_in

LIKE_VIEWS = VIEWS | {"aten.reshape", "aten._unsafe_view", "prims.view_of", "prims.broadcast_in_dim"}


def flow_of(printed: Printed) -> Flow:
    """The flow of a graph, made once."""
    if printed.flow is None:
        printed.flow = Flow(printed)
    return cast("Flow", printed.flow)


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

    @cached_property
    def free(self) -> dict[str, None]:
        """Operators that need no tensor: positions, zeros, and what is made of them."""
        found: dict[str, None] = {}
        for name, read in self.reads.items():
            if not self.is_size(name) and all(other in found or self.is_size(other) for other in read):
                found[name] = None
        return found

    def is_size(self, name: str) -> bool:
        """A number of the shapes, no tensor."""
        text = self.inputs.get(name) or (self.nodes[name].annotation if name in self.nodes else "")
        return text.startswith("Sym")

    def type(self, name: str) -> tuple[str, tuple[Dim, ...]] | None:
        text = self.inputs.get(name) or (self.nodes[name].annotation if name in self.nodes else "")
        found = annotation(text) if text else None
        return (found.dtype, found.shape) if found else None

    def borrow_places(self) -> None:
        """Operators that the compiler put in have no line: theirs is that of who reads them, or of what they read."""
        names = [name for name, node in self.nodes.items() if node.place is None]
        for name in reversed(names):
            self._borrow(name, self.readers.get(name, ()), "its reader")
        for name in names:
            self._borrow(name, self.reads[name][::-1], "what it reads")

    def _borrow(self, name: str, others: Iterable[str], whose: str) -> None:
        node = self.nodes[name]
        place = next((self.nodes[other].place for other in others if other in self.nodes), None)
        if node.place is None and place is not None:
            node.place, node.borrowed = place, whose
