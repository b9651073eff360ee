"""What a measured run made of its device: each piece of work beside the least time that it could take.

A piece of work is what ran together: the operators of a kernel, with the time of all kernels that are of just these
operators (a split product and its sum are one), or an operator where only its time is known. Where a cost is not known,
the piece has a time and no bound; it is in no share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.analysis.times import Clocks, Times
from opscope.ir import Column, Graph, Groups, Table, column, frozen
from opscope.ir.facts import WORK

from . import rollup
from .devices import Device
from .operators import CostTable

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Work:
    """Pieces of work; `groups` has the operators of each. Seconds are measured but for the last three."""

    groups: Groups
    kernels: npt.NDArray[np.int64]  # of how many kernels it is; 0: only the operator was measured
    seconds: Floats
    macs: Floats
    least_macs: Floats  # without what causal masks hide
    other: Floats
    bytes: Floats
    known: Mask  # what it costs
    products: Floats  # the least time of its products, with nothing else to do
    compute: Floats  # of all that it computes
    memory: Floats  # of moving its bytes
    has_device: bool

    @property
    def flops(self) -> Floats:
        """Of products."""
        return 2 * self.macs

    @property
    def bound(self) -> Floats:
        """The least time that it can take."""
        return np.maximum(self.compute, self.memory)

    def __len__(self) -> int:
        return len(self.seconds)


def work_of(
    graph: Graph, costs: CostTable, clocks: Clocks | None, times: Times | None, device: Device | None
) -> Work | None:
    """None where nothing was measured."""
    if clocks is not None and len(clocks.kernels) and clocks.gpu_known.any():
        groups, seconds, kernels, first = _together(clocks)
        sums = rollup.by_kernel(graph, costs)
        if sums is None:
            return None
        moved = (sums.read + sums.written)[first].astype(np.float64)
        sized = sums.bytes_unknown[first] == 0
    elif times is not None and times.by == "node" and times.known.any():
        nodes = np.flatnonzero(times.known)
        blank = frozen([0] * len(nodes))
        groups = Groups("kernel", blank, blank, blank, frozen(range(len(nodes) + 1)), frozen(nodes))
        seconds, kernels = times.seconds[nodes], np.zeros(len(nodes), dtype=np.int64)
        moved = (costs.read + costs.written)[nodes].astype(np.float64)
        sized = costs.bytes_known[nodes]
    else:
        return None
    owner = np.repeat(np.arange(len(groups)), np.diff(groups.start))

    def summed(column: npt.NDArray[Any]) -> Floats:
        return np.bincount(owner, column[groups.member], minlength=len(groups)).astype(np.float64)

    least = np.where(costs.causal_known, costs.causal, 0)  # what masks hide need not be computed
    peaks = _peaks(graph, device) if device is not None else np.ones(graph.n_nodes)
    others = device.other if device is not None else 1.0
    unknown = summed((costs.unknown | costs.lower).astype(np.float64))
    computed = summed((costs.macs + costs.other).astype(np.float64))
    return Work(
        groups,
        kernels,
        seconds,
        macs=summed(costs.macs.astype(np.float64)),
        least_macs=summed(least.astype(np.float64)),
        other=summed(costs.other.astype(np.float64)),
        bytes=moved,
        # What took time and costs nothing is in a graph that does not know values.
        known=(unknown == 0) & sized & ((computed > 0) | (moved > 0)),
        products=summed(2.0 * costs.macs / peaks),
        compute=summed(2.0 * least / peaks + costs.other / others),
        memory=moved / (device.bandwidth if device is not None else 1.0),
        has_device=device is not None,
    )


def work_table(stage: int, work: Work) -> Table:
    """The pieces as a fact. What belongs to no operator is in no row."""
    sizes = np.diff(work.groups.start)
    rows = np.flatnonzero(sizes > 0)
    known = work.known[rows]
    figures = {
        "macs": Column(work.macs[rows], known, "MACs"),
        "causal": Column(work.least_macs[rows], known, "MACs"),
        "other": Column(work.other[rows], known, "FLOPs"),
        "bytes": Column(work.bytes[rows], known, "B"),
    }
    columns = {
        "time": column(work.seconds[rows], "s"),
        **figures,
        "kernels": column(work.kernels[rows]),
        "nodes": column([work.groups.members(row).tolist() for row in rows.tolist()]),
    }
    return Table(stage, "node", frozen(work.groups.member[work.groups.start[:-1][rows]]), columns, WORK.name)


def _peaks(graph: Graph, device: Device) -> Floats:
    """By the first result, as the roofline has it."""
    peak = np.array([device.peak(type_.dtype) for type_ in graph.pools.types])
    peaks = np.full(graph.n_nodes, device.peak("float32"))
    made = np.flatnonzero(graph.value_producer >= 0)[::-1]
    peaks[graph.value_producer[made]] = peak[graph.value_type[made]]
    return peaks


def _together(clocks: Clocks) -> tuple[Groups, Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Kernels of the same operators as one: their operators, seconds and number, and the first of each."""
    kernels = clocks.kernels
    blank = np.zeros(len(kernels), dtype=np.int32)
    if (np.diff(kernels.start) == 1).all():  # nothing is fused: what most profiles of many kernels hold
        measured = np.flatnonzero(clocks.gpu_known)
        nodes, first, number, counts = np.unique(
            kernels.member[measured], return_index=True, return_inverse=True, return_counts=True
        )
        seconds = np.bincount(number.reshape(-1), clocks.gpu[measured], minlength=len(nodes)).astype(np.float64)
        none = frozen(blank[: len(nodes)])
        groups = Groups("kernel", none, none, none, frozen(np.arange(len(nodes) + 1)), frozen(nodes))
        return groups, seconds, counts, measured[first]
    seen: dict[bytes, int] = {}
    place = np.full(len(kernels), -1, dtype=np.int64)
    firsts: list[int] = []
    for kernel in np.flatnonzero(clocks.gpu_known).tolist():
        key = np.unique(kernels.members(kernel)).tobytes()
        # A kernel that computes nothing is a piece by itself.
        number = seen.setdefault(key, len(firsts)) if key else len(firsts)
        if number == len(firsts):
            firsts.append(kernel)
        place[kernel] = number
    rows = np.flatnonzero(place >= 0)
    seconds = np.bincount(place[rows], clocks.gpu[rows], minlength=len(firsts)).astype(np.float64)
    counts = np.bincount(place[rows], minlength=len(firsts))
    members = [np.unique(kernels.members(kernel)) for kernel in firsts]
    start = np.concatenate([[0], np.cumsum([len(nodes) for nodes in members])]).astype(np.int32)
    member = np.concatenate([*members, np.zeros(0, dtype=np.int32)]).astype(np.int32)
    none = frozen(blank[: len(firsts)])
    groups = Groups("kernel", none, none, none, frozen(start), frozen(member))
    return groups, seconds, counts, np.array(firsts, dtype=np.int64)


# -- shares --------------------------------------------------------------------------------------------

# What a row says: its products at the peak of the device, its bytes at the bandwidth, and the least time of both, each
# as a share of the time that it took.
SHARES = ("mfu", "bandwidth", "of_bound")


def sums_by(work: Work, label: npt.NDArray[Any], count: int) -> Floats:
    """By row (`label` is the row of each operator): seconds, products, memory and bound of the pieces that are wholly
    its own and whose cost is known."""
    sizes = np.diff(work.groups.start)
    owner = np.repeat(np.arange(len(work)), sizes)
    labels = np.asarray(label)[work.groups.member]
    low = np.full(len(work), np.iinfo(np.int64).max)
    high = np.full(len(work), -1, dtype=np.int64)
    np.minimum.at(low, owner, labels)
    np.maximum.at(high, owner, labels)
    own = np.flatnonzero((low == high) & work.known)
    columns = (work.seconds, work.products, work.memory, work.bound)
    return np.array([np.bincount(low[own], column[own], minlength=count) for column in columns], dtype=np.float64)


def shares_of(sums: Floats) -> dict[str, Floats]:
    """NaN where nothing is known."""
    seconds, *parts = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return {name: np.where(seconds > 0, part / seconds, np.nan) for name, part in zip(SHARES, parts, strict=True)}


def total_of(work: Work) -> dict[str, float]:
    """Seconds of all that ran, and of what its cost is known."""
    known = work.known
    return {
        "busy_seconds": float(work.seconds.sum()),
        "known_seconds": float(work.seconds[known].sum()),
        "products": float(work.products[known].sum()),
        "memory": float(work.memory[known].sum()),
        "bound_seconds": float(work.bound[known].sum()),
    }
