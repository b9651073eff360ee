"""What is in memory while the graph runs: by class, with the peak and what is alive there.

A storage lives from the operator that makes it until the last one that reads any value in it: the least that any
program needs to run these operators in this order. Python variables may hold on for longer, and kernels may take
workspaces that nobody sees, so every figure reads "at least".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Graph
from opscope.ir.enumerations import MEMORY_CLASSES, PHASE_ID, ROLE_ID

from .operators import CostTable, sum_by
from .sizes import NOT_KNOWN, Ints, Mask, element_counts

_KEPT = ("parameter", "buffer", "state", "input", "constant")  # by role; somebody outside holds them to the end


class Alive(NamedTuple):
    """A storage: the value that owns it, its class, its bytes, and the first and last node it is alive at."""

    value: int
    cls: str
    bytes: int
    born: int
    dies: int


@dataclass(frozen=True, eq=False)
class Memory:
    """`live` has a row for each class and a column for each node: the bytes alive while that node runs."""

    owner: Ints  # by storage
    size: Ints
    cls: npt.NDArray[np.int8]
    born: Ints
    dies: Ints
    steps: int
    activation_values: npt.NDArray[np.intp]  # what forward operators make, views not counted
    activations: int  # numbers in them
    activation_bytes: int
    saved_bytes: int | None  # of these, what backward operators read; None without a backward pass
    unknown: int  # storages of unknown size
    unknown_activations: Ints  # values among the activations whose size is not known

    @cached_property
    def live(self) -> Ints:
        changes = np.zeros(
            (len(MEMORY_CLASSES), self.steps + 2), dtype=np.int64
        )  # born and gone where nothing runs, too
        np.add.at(changes, (self.cls, self.born), self.size)
        np.subtract.at(changes, (self.cls, self.dies + 1), self.size)
        return np.cumsum(changes, axis=1)[:, : self.steps]

    @cached_property
    def total(self) -> Ints:
        return self.live.sum(axis=0)

    @property
    def peak_at(self) -> int:
        """The node at which most is alive."""
        return int(self.total.argmax()) if self.steps else 0

    @property
    def peak_bytes(self) -> int:
        return int(self.total[self.peak_at]) if self.steps else 0

    def at_peak(self) -> dict[str, int]:
        """Bytes by class at the peak."""
        if not self.steps:
            return {}
        return {cls: int(n) for cls, n in zip(MEMORY_CLASSES, self.live[:, self.peak_at].tolist(), strict=True) if n}

    def alive(self, node: int, most: int = 10) -> list[Alive]:
        """The largest storages that are alive at a node."""
        rows = np.flatnonzero((self.born <= node) & (node <= self.dies) & (self.size > 0))
        rows = rows[np.argsort(-self.size[rows], kind="stable")][:most]
        return [
            Alive(
                int(self.owner[i]), MEMORY_CLASSES[self.cls[i]], int(self.size[i]), int(self.born[i]), int(self.dies[i])
            )
            for i in rows.tolist()
        ]


def memory(graph: Graph, table: CostTable) -> Memory:
    of_value, whole = table.storages
    count, last = graph.n_values, max(graph.n_nodes - 1, 0)
    producer, role = graph.value_producer, graph.value_role
    made = producer >= 0

    born = np.zeros(count, dtype=np.int64)
    dies = np.zeros(count, dtype=np.int64)
    latest = np.flatnonzero(made)[np.argsort(producer[made], kind="stable")]
    dies[of_value[latest]] = producer[latest]
    born[of_value[latest[::-1]]] = producer[latest[::-1]]
    born[of_value[~made]] = 0
    read = np.flatnonzero(graph.use_value >= 0)
    used_at = np.zeros(count, dtype=np.int64)
    used_at[of_value[graph.use_value[read]]] = graph.use_node[read]  # in execution order: the last one stays
    dies = np.maximum(dies, used_at)

    is_owner = np.zeros(count, dtype=bool)
    is_owner[of_value] = True
    phase = np.full(count, PHASE_ID["forward"], dtype=np.int64)
    phase[made] = graph.node_phase[producer[made]]
    backward = (phase == PHASE_ID["backward"]) | (phase == PHASE_ID["optimizer"])
    cls = np.where(backward, MEMORY_CLASSES.index("temporary"), MEMORY_CLASSES.index("activation")).astype(np.int8)
    to_end = np.zeros(count, dtype=bool)
    held = of_value[role == ROLE_ID["gradient"]]
    held = held[_is_kept_gradient(graph)[role == ROLE_ID["gradient"]]]
    cls[held], to_end[held] = MEMORY_CLASSES.index("gradient"), True
    for name in reversed(_KEPT):  # a parameter that is also an input is a parameter
        owners = of_value[role == ROLE_ID[name]]
        if name in ("input", "constant"):  # made by an operator, and used up: data that a loader made, a number
            owners = owners[producer[owners] < 0]
        cls[owners], to_end[owners] = MEMORY_CLASSES.index(name), True
    to_end[of_value[graph.outputs]] = True
    dies[to_end] = last

    size = np.where(table.inside & (of_value == np.arange(count)), 0, whole)
    owners = np.flatnonzero(is_owner)
    known = size[owners] != NOT_KNOWN
    size = np.maximum(size, 0)

    forward = (
        made & is_owner & ~table.inside & (cls == MEMORY_CLASSES.index("activation")) & (phase != PHASE_ID["init"])
    )
    elements = np.maximum(element_counts(graph), 0)
    has_backward = bool((graph.node_phase == PHASE_ID["backward"]).any())
    saved: Mask = np.zeros(count, dtype=bool)
    late = read[graph.node_phase[graph.use_node[read]] == PHASE_ID["backward"]]
    saved[of_value[graph.use_value[late]]] = True
    return Memory(
        owner=owners,
        size=size[owners],
        cls=cls[owners],
        born=born[owners],
        dies=dies[owners],
        steps=graph.n_nodes,
        activation_values=np.flatnonzero(forward),
        activations=int(elements[forward].sum()),
        activation_bytes=int(size[forward].sum()),
        saved_bytes=int(size[forward & saved].sum()) if has_backward else None,
        unknown=int(np.count_nonzero(~known)),
        unknown_activations=np.flatnonzero(forward & (whole == NOT_KNOWN)),
    )


def activations_by_node(graph: Graph, found: Memory) -> tuple[Ints, Ints]:
    """Numbers and bytes that each node adds to the activations."""
    values = found.activation_values
    size = np.zeros(graph.n_values, dtype=np.int64)
    size[found.owner] = found.size
    maker = graph.value_producer[values]
    return (
        sum_by(maker, np.maximum(element_counts(graph)[values], 0), graph.n_nodes),
        sum_by(maker, size[values], graph.n_nodes),
    )


def _is_kept_gradient(graph: Graph) -> Mask:
    """Values that are the .grad of a parameter, by their name."""
    named = np.zeros(len(graph.pools.strings), dtype=bool)
    for name in np.unique(graph.value_name).tolist():
        named[name] = graph.pools.strings[name].endswith(".grad")
    return named[graph.value_name]
