"""The least time that each operator can take on a device, and what bounds it: computing or memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opscope.ir import Graph

from .devices import Device
from .operators import CostTable

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Roofline:
    """Seconds by node; `total` is that of one after another."""

    device: Device
    compute: Floats
    memory: Floats

    @property
    def seconds(self) -> Floats:
        return np.maximum(self.compute, self.memory)

    @property
    def is_memory_bound(self) -> npt.NDArray[np.bool_]:
        return self.memory >= self.compute

    @property
    def total(self) -> float:
        return float(self.seconds.sum())


def roofline(graph: Graph, table: CostTable, device: Device) -> Roofline:
    peak = np.array([device.peak(type_.dtype) for type_ in graph.pools.types])
    peaks = np.full(graph.n_nodes, device.peak("float32"))
    made = np.flatnonzero(graph.value_producer >= 0)[::-1]
    peaks[graph.value_producer[made]] = peak[graph.value_type[made]]  # by the first result
    compute = 2.0 * table.macs / peaks + table.other / device.other
    return Roofline(device, compute, (table.read + table.written) / device.bandwidth)
