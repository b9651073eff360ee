"""What one rank takes: parameters, what its optimizer keeps, activations, peak, work, bytes on each kind of wire."""

from __future__ import annotations

import numpy as np

from opscope.analysis.costs.communication import NO_DIMENSION, peers_of
from opscope.analysis.costs.stats import GraphStats
from opscope.ir import Capture, Table, column, frozen, gaps_of
from opscope.ir.enumerations import MEMORY_CLASSES
from opscope.ir.facts import RANK_CLASS, RANK_WIRES


def add_figures(capture: Capture, stage: int, ranks: str, seen: str, odd: str = "") -> None:
    """Add the facts about the ranks that compute what this stage computes."""
    stats = GraphStats(capture.stages[stage].graph, capture.origin.framework, gaps=gaps_of(capture, stage))
    total = stats.total
    held = {
        name: int(stats.memory.size[stats.memory.cls == MEMORY_CLASSES.index(name)].sum())
        for name in ("state", "gradient")
    }
    numbers = {
        "parameters": total.params,
        "parameter bytes": total.param_bytes,
        "state bytes": held["state"],
        "gradient bytes": held["gradient"],
        "activation bytes": total.activation_bytes,
        "peak bytes": total.peak_bytes,
        "macs": total.macs,
        "other": total.other_flops,
        "moved bytes": total.bytes,
        "wire bytes": total.wire,
    }
    columns = {
        "ranks": column([ranks]),
        "seen": column([seen]),
        **{
            name: column(np.array([number], dtype=np.int64), "B" if name.endswith("bytes") else "")
            for name, number in numbers.items()
        },
        "at least": column(np.array([total.at_least or total.wire_at_least], dtype=bool)),
        "odd": column([odd]),
    }
    columns["macs"] = column(columns["macs"].values, "MACs")
    columns["other"] = column(columns["other"].values, "FLOPs")
    capture.add(Table(stage, "row", frozen([0]), columns, RANK_CLASS.name))
    _add_wires(capture, stage, stats)


def _add_wires(capture: Capture, stage: int, stats: GraphStats) -> None:
    sizes: dict[str, int] = {}
    counts: dict[str, int] = {}
    for _, peers in peers_of(stats.graph):
        sizes[peers.dimension] = max(peers.size, sizes.get(peers.dimension, 0))
        counts[peers.dimension] = counts.get(peers.dimension, 0) + 1
    sent = stats.wire_by_dimension
    if not sent:
        return
    names = list(sent)
    columns = {
        "dimension": column(names),
        "size": column(
            np.array([sizes.get(name, 0) for name in names]), known=[name != NO_DIMENSION for name in names]
        ),
        "bytes": column(np.array([sent[name] for name in names], dtype=np.int64), "B"),
        "operators": column(np.array([counts.get(name, 0) for name in names])),
    }
    capture.add(Table(stage, "row", frozen(range(len(names))), columns, RANK_WIRES.name))
