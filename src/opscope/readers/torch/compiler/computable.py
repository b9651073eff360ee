"""What can be computed from the values that a kernel reads, and from which of them."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass, field

from opscope.readers.torch.names import base_name

from .dependence import FUNCTIONS, REDUCTIONS
from .flow import Flow

_MOST = 4000  # operators
_DEEPEST = 50
_Leaves = frozenset[str]


@dataclass
class Computable:
    flow: Flow
    reads: frozenset[str]
    barrier: frozenset[str]
    leaves: dict[str, _Leaves] = field(default_factory=dict[str, _Leaves])  # operator -> what is read for it
    functions: dict[str, _Leaves] = field(default_factory=dict[str, _Leaves])

    def behind(self, name: str) -> set[str]:
        """The operators that make a value from what is read."""
        found: set[str] = set()
        todo = [name]
        while todo:
            at = todo.pop()
            if at in found or at not in self.leaves:
                continue
            found.add(at)
            todo += [read for read in self.flow.reads[at] if not self.is_read(read, at)]
        return found

    def is_read(self, name: str, by: str) -> bool:
        return name in self.reads or (self.flow.base(name) in self.reads and name not in self.leaves)

    def add(self, name: str, depth: int = 0) -> bool:
        """Add an operator, if all that it reads is there."""
        flow = self.flow
        leaves, functions = set[str](), set[str]()
        reads = flow.reads[name]
        if base_name(flow.op[name]) == "aten.copy_":
            reads = reads[1:]  # what it writes over does not matter
        for read in reads:
            if read in self.reads:
                leaves.add(read)
            elif read in self.leaves or (read in flow.free and depth < _DEEPEST and self.free(read, depth)):
                leaves |= self.leaves[read]
                functions |= self.functions[read]
            elif (base := flow.base(read)) in self.reads:
                leaves.add(base)
            elif not flow.is_size(read):
                return False
        function = FUNCTIONS.get(base_name(flow.op[name]))
        if function:
            functions.add(function)
        if base_name(flow.op[name]) in REDUCTIONS:
            functions.add("reduce")
        self.leaves[name], self.functions[name] = frozenset(leaves), frozenset(functions)
        return True

    def free(self, name: str, depth: int) -> bool:
        """Add what needs nothing at all: positions, zeros."""
        return name not in self.barrier and self.add(name, depth + 1)


def sweep(flow: Flow, reads: Collection[str], barrier: Collection[str], free: bool) -> Computable:
    """All operators that need nothing but `reads`; none of `barrier`, which somebody else computes. With `free`, also
    those that need nothing at all."""
    found = Computable(flow, frozenset(reads), frozenset(barrier))
    order = flow.order
    waiting = [(order[name], name) for read in reads for name in flow.readers.get(read, ())]
    if free:
        waiting += [(order[name], name) for name in flow.free]
    heapq.heapify(waiting)
    while waiting and len(found.leaves) < _MOST:
        _, name = heapq.heappop(waiting)
        if name in found.leaves or name in found.barrier or name in found.reads or not found.add(name):
            continue
        for reader in flow.readers.get(name, ()):
            heapq.heappush(waiting, (order[reader], reader))
    return found
