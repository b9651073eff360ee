"""How long a step takes at least: every class of ranks on a device and a network, one waiting for the other's messages.

Operators run one after another, each as fast as the device's data sheet allows. Collectives are waited for, and so is a
message when something reads what it brought; sending costs the sender nothing. No real program is faster than that
unless it hides collectives behind computing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.analysis.costs.communication import peers_of
from opscope.analysis.costs.devices import Device
from opscope.analysis.costs.networks import Network, seconds
from opscope.analysis.costs.operators import node_costs
from opscope.analysis.costs.roofline import roofline
from opscope.ir import PHASES, Capture, Graph
from opscope.ir.enumerations import PHASE_ID
from opscope.ir.ranks import ranks_of
from opscope.ops import kinds_of

from .messages import messages_of
from .summary import World

COMMUNICATES = "communicates"


class Piece(NamedTuple):
    """A stretch of time in which a rank does one thing: a phase, `communicates`, or `waits`."""

    what: str
    start: float
    end: float


class Lane(NamedTuple):
    """One class of ranks: seconds by what they do, and in which order."""

    stage: int
    total: float
    computes: float
    communicates: float
    waits: float
    pieces: list[Piece]


class Estimate(NamedTuple):
    device: Device
    network: Network
    seconds: float
    mfu: float
    bubble: float  # the share of the step in which a rank waits for another one, in the mean over all ranks
    lanes: list[Lane]
    assumptions: list[str]


class _Rank:
    """A class of ranks on its way through the step."""

    def __init__(self, graph: Graph, framework: str, device: Device, network: Network) -> None:
        table = node_costs(graph, framework)
        kinds = kinds_of(framework, graph)
        self.graph = graph
        self.took: npt.NDArray[np.float64] = roofline(graph, table, device).seconds.copy()
        self.wire = np.zeros(graph.n_nodes)
        self.unknown = bool(table.lower.any()) or not bool(table.wire_known.all())
        self.macs = int(table.macs[graph.node_phase != PHASE_ID["recompute"]].sum())
        found = messages_of(graph)
        self.sent = {node: way for way, (node, _) in found.sent.items()}
        self.came = {way: other for way, (_, other) in found.received.items()}
        received = {node: way for way, (node, _) in found.received.items()}
        self.reads: dict[int, list[tuple[str, int, int]]] = {}
        self.lasts: dict[tuple[str, int, int], float] = {}
        readers = _first_readers(graph, received)
        for node, peers in peers_of(graph):
            kind = kinds.of(graph, node)
            ranks = ranks_of(peers.ranks)
            if node in self.sent:
                to = found.sent[self.sent[node]][1]
                pair = [ranks[peers.index], to]
                self.lasts[self.sent[node]] = seconds(network, "send", int(table.wire[node]), pair)
            elif node not in received:
                self.wire[node] = seconds(network, kind, int(table.wire[node]), ranks)
            self.took[node] = 0.0 if node in self.sent or node in received else self.took[node]
        for node, way in received.items():
            self.reads.setdefault(readers.get(node, node), []).append(way)
        self.at = 0
        self.clock = 0.0
        self.waited = 0.0
        self.pieces: list[Piece] = []
        self.left: dict[tuple[str, int, int], float] = {}  # message -> when it has arrived
        self.events = sorted({*self.sent, *self.reads, graph.n_nodes})

    def go(self, arrival: Callable[[tuple[str, int, int]], float | None]) -> bool:
        """On to the next message that is not there yet. Whether it got anywhere."""
        began = self.at
        for event in self.events:
            if event < self.at:
                continue
            self._run(event)
            if event == self.graph.n_nodes:
                break
            for way in self.reads.get(event, ()):
                there = arrival(way)
                if there is None:
                    return self.at > began
                if there > self.clock:
                    self.pieces.append(Piece("waits", self.clock, there))
                    self.waited += there - self.clock
                    self.clock = there
            self.reads.pop(event, None)
            if event in self.sent:
                way = self.sent[event]
                self.left[way] = self.clock + self.lasts[way]
            self._run(event + 1)
        return self.at > began

    def _run(self, until: int) -> None:
        if until <= self.at:
            return
        sends = self.wire[self.at : until] > 0
        phases = np.where(sends, -1, self.graph.node_phase[self.at : until])
        took = (self.took + self.wire)[self.at : until] if until - self.at > 1 else self._one()
        edges = np.flatnonzero(np.diff(phases)) + 1
        for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), len(phases)], strict=True):
            lasts = float(np.sum(took[begin:end]))
            if lasts > 0:
                word = PHASES[int(phases[begin])] if phases[begin] >= 0 else COMMUNICATES
                last = self.pieces[-1] if self.pieces else None
                if last is not None and last.what == word and last.end == self.clock:
                    self.pieces[-1] = Piece(word, last.start, self.clock + lasts)
                else:
                    self.pieces.append(Piece(word, self.clock, self.clock + lasts))
                self.clock += lasts
        self.at = until

    def _one(self) -> npt.NDArray[np.float64]:
        return self.took[self.at : self.at + 1] + self.wire[self.at : self.at + 1]


def _first_readers(graph: Graph, received: Mapping[int, Any]) -> dict[int, int]:
    """The first operator that reads what each of these received."""
    found: dict[int, int] = {}
    for use in np.flatnonzero(graph.use_value >= 0).tolist():
        producer = int(graph.value_producer[graph.use_value[use]])
        if producer in received:
            found.setdefault(producer, int(graph.use_node[use]))
    return found


def estimate(capture: Capture, world: World, device: Device, network: Network) -> Estimate:
    framework = capture.origin.framework
    ranks = {one.stage: _Rank(capture.stages[one.stage].graph, framework, device, network) for one in world.classes}
    stage_of = {rank: one.stage for one in world.classes for rank in one.ranks}

    def arrival(stage: int) -> Callable[[tuple[str, int, int]], float | None]:
        own = ranks[stage]

        def when(way: tuple[str, int, int]) -> float | None:
            other = ranks.get(stage_of.get(own.came[way], -1))
            if other is None or way not in other.lasts:
                return 0.0  # nobody sends it: then nothing is waited for
            return other.left.get(way)

        return when

    going = True
    while going:
        moved = [rank.go(arrival(stage)) for stage, rank in ranks.items()]
        going = any(moved)
    assumptions: list[str] = [*_ASSUMPTIONS]
    if any(rank.at < rank.graph.n_nodes for rank in ranks.values()):
        assumptions.append("some ranks wait for messages that never come: their time ends there")
    if any(rank.unknown for rank in ranks.values()):
        assumptions.append("operators whose cost is not known take no time")
    whole = max(rank.clock for rank in ranks.values())
    counts = {one.stage: len(one.ranks) for one in world.classes}
    many = sum(counts.values())
    work = sum(2 * ranks[stage].macs * count for stage, count in counts.items())
    lanes = [_lane(stage, rank) for stage, rank in ranks.items()]
    idle = sum((whole - lane.computes - lane.communicates) * counts[lane.stage] for lane in lanes)
    peak = device.peak("bfloat16")
    return Estimate(
        device,
        network,
        whole,
        work / (whole * peak * many) if whole else 0.0,
        idle / (whole * many) if whole else 0.0,
        lanes,
        assumptions,
    )


_ASSUMPTIONS = (
    "every operator takes the time that the data sheet of the device allows at best, one after another",
    "collectives run as rings at the full speed of the wire, and nothing is computed meanwhile",
    "a message is waited for by what reads it, and costs its sender nothing",
    "all ranks of a class run in step; MFU is of the device's peak in bfloat16, without recomputation",
)


def _lane(stage: int, rank: _Rank) -> Lane:
    done = slice(0, rank.at)
    return Lane(
        stage,
        rank.clock,
        float(rank.took[done].sum()),
        float(rank.wire[done].sum()),
        rank.waited,
        rank.pieces,
    )


def info(found: Estimate, capture: Capture) -> dict[str, Any]:
    """`estimate` of `opscope info --json`."""
    return {
        "device": found.device.name,
        "network": found.network.name,
        "seconds_at_least": found.seconds,
        "mfu_at_most": found.mfu,
        "bubble": found.bubble,
        "assumptions": found.assumptions,
        "classes": [
            {
                "stage": capture.stages[lane.stage].name,
                "seconds": lane.total,
                "computes": lane.computes,
                "communicates": lane.communicates,
                "waits": lane.waits,
                "timeline": [[piece.what, piece.start, piece.end] for piece in lane.pieces],
            }
            for lane in found.lanes
        ],
    }
