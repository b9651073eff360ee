"""What joins nodes beyond the data that flows: links (pairs of nodes) and groups (sets of nodes)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .columns import Int32, frozen


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of nodes of one kind; a node may be in many pairs. The kinds, read from source to target:

    grad       the target computes a gradient of the source
    recompute  the target runs the source once more
    alias      the target makes a view of what the source made
    control    the target must run after the source
    """

    kind: str
    source: Int32
    target: Int32

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, eq=False)
class Groups:
    """Sets of nodes of one kind, such as fused kernels in the order they ran. Sets may overlap."""

    kind: str
    name: Int32  # into pools.strings
    code: Int32  # into pools.strings; 0 where the code is not known
    attrs: Int32  # into pools.attr_texts
    start: Int32  # group i has the members start[i] up to start[i + 1]
    member: Int32  # nodes, in order

    def __len__(self) -> int:
        return len(self.name)

    def members(self, index: int) -> Int32:
        return self.member[self.start[index] : self.start[index + 1]]

    def of_node(self, node: int) -> list[int]:
        """The groups that a node is in, in order."""
        places = np.flatnonzero(self.member == node)
        return sorted({int(g) for g in np.searchsorted(self.start, places, side="right") - 1})


def no_links(kind: str) -> Links:
    return Links(kind, frozen([]), frozen([]))
