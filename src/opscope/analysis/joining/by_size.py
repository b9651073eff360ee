"""Join an allocator's history to the graph: which value is in each block, and what was alive when most was.

Allocations come in the order in which operators make their results, and ask for as many bytes as a result has: the two
sequences of sizes are nearly equal, and what lies between is looked for by its size. What was held before the history
begins is known by its size alone: of parameters of one size it is not known which is which, only that these are they.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opscope.analysis.costs.memory import Memory
from opscope.analysis.costs.stats import GraphStats
from opscope.errors import BadInput
from opscope.ir import Capture, Graph, Table, column, frozen
from opscope.ir.allocations import Allocations, Block
from opscope.ir.enumerations import MEMORY_CLASSES
from opscope.ir.facts import BLOCKS, OWN
from opscope.ir.places import users_frame

from .sequences import aligned

Kind = TypeVar("Kind", bound=Capture)

BY_ORDER, BY_SIZE = "by size and order", "by size"
_HELD = ("parameter", "buffer", "state", "input", "constant", "gradient")  # classes of what is there before a step
_NEAR = 64  # allocations around that are looked through for a size
_LEAST_RUN = 0.5  # of what a graph makes that a part of the history must have to be one run of it


class Match(NamedTuple):
    row: int  # of the graph's storages
    evidence: str


def join_memory(capture: Kind, history: Allocations, name: str) -> Kind:
    """The capture with what was alive at the peak, or when the memory was not enough."""
    graph = capture.graph
    memory = GraphStats(graph, capture.origin.framework).memory
    found = _Matching(graph, memory, history)
    if not found.matched and not found.held:
        raise BadInput(f"{name}: a memory snapshot of another program: no allocation has the size of any value here")
    joined = replace(capture, tables=dict(capture.tables), warnings=[*capture.warnings, *history.warnings])
    joined.add(found.blocks())
    joined.add(found.along())
    return joined


class _Matching:
    def __init__(self, graph: Graph, memory: Memory, history: Allocations) -> None:
        self._graph, self._memory, self._history = graph, memory, history
        self.matched: dict[int, Match] = {}  # by event
        self.held: dict[int, Match] = {}  # by block that was held before
        self._match_events()
        self._match_held()
        self._replay()

    def _match_events(self) -> None:
        memory = self._memory
        is_made = (self._graph.value_producer[memory.owner] >= 0) & (memory.size > 0)
        rows = np.flatnonzero(is_made)[np.argsort(memory.born[is_made], kind="stable")].tolist()
        taken = [at for at, event in enumerate(self._history.events) if not event.is_freed]
        want = [str(int(memory.size[row])) for row in rows]
        have = [str(self._history.events[at].block.bytes) for at in taken]
        begin = 0
        while want and begin < len(have):
            found = aligned(want, have[begin:])
            hits = sum(at >= 0 for at in found)
            if not hits or (begin and hits < _LEAST_RUN * len(want)):
                break
            for row, at in zip(rows, found, strict=True):
                if at >= 0:
                    self.matched[taken[begin + at]] = Match(row, BY_ORDER)
            end = begin + max(found) + 1
            self._match_near(rows, found, taken[begin:end], want)
            begin = end

    def _match_near(self, rows: list[int], found: list[int], taken: list[int], want: list[str]) -> None:
        """An operator with several results may allocate them in another order than it returns them."""
        free: dict[str, list[int]] = defaultdict(list)
        for place, at in enumerate(taken):
            if at not in self.matched:
                free[str(self._history.events[at].block.bytes)].append(place)
        last = -1
        for row, place, size in zip(rows, found, want, strict=True):
            if place >= 0:
                last = place
                continue
            near = next((p for p in free.get(size, ()) if abs(p - last) <= _NEAR), None)
            if near is not None:
                free[size].remove(near)
                self.matched[taken[near]] = Match(row, BY_SIZE)

    def _match_held(self) -> None:
        """What was there before, by the number of blocks and values of one size."""
        memory = self._memory
        kept = {MEMORY_CLASSES.index(name) for name in _HELD}
        free: dict[int, list[int]] = defaultdict(list)
        used = {match.row for match in self.matched.values()}
        for row in range(len(memory.owner) - 1, -1, -1):
            if int(memory.cls[row]) in kept and row not in used:
                free[int(memory.size[row])].append(row)
        for number, block in enumerate(self._history.held):
            if free.get(block.bytes):
                self.held[number] = Match(free[block.bytes].pop(), BY_SIZE)

    def _replay(self) -> None:
        """What is alive when most is, or when the program asked for more than there was."""
        alive: dict[int, tuple[Block, Match | None]] = {
            block.address: (block, self.held.get(number)) for number, block in enumerate(self._history.held)
        }
        total = sum(block.bytes for block, _ in alive.values())
        self._totals: list[int] = []
        self.peak, self._alive = total, dict(alive)
        stop = self._history.refused_at if self._history.refused is not None else None
        peak_at = -1
        for at, event in enumerate(self._history.events):
            if event.is_freed:
                total -= alive.pop(event.block.address, (Block(0, 0), None))[0].bytes
            else:
                alive[event.block.address] = event.block, self.matched.get(at)
                total += event.block.bytes
            self._totals.append(total)
            if total > self.peak and stop is None:
                self.peak, peak_at = total, at
        until = stop if stop is not None else peak_at + 1
        self._alive = self._at(until)
        self.peak = sum(block.bytes for block, _ in self._alive.values())

    def _at(self, until: int) -> dict[int, tuple[Block, Match | None]]:
        alive = {block.address: (block, self.held.get(number)) for number, block in enumerate(self._history.held)}
        for at, event in enumerate(self._history.events[:until]):
            if event.is_freed:
                alive.pop(event.block.address, None)
            else:
                alive[event.block.address] = event.block, self.matched.get(at)
        return alive

    def blocks(self) -> Table:
        """One row for each block that was alive then, the largest first."""
        rows = sorted(self._alive.values(), key=lambda row: -row[0].bytes)
        matches = [match for _, match in rows]
        owners = [int(self._memory.owner[match.row]) if match else -1 for match in matches]
        classes = [MEMORY_CLASSES[int(self._memory.cls[match.row])] if match else "" for match in matches]
        columns = {
            "value": column(np.array(owners, dtype=np.int64), known=[owner >= 0 for owner in owners]),
            "bytes": column(np.array([block.bytes for block, _ in rows], dtype=np.int64), "B"),
            "class": column(classes),
            "evidence": column([match.evidence if match else "" for match in matches]),
            "stack": column([_words(block) for block, _ in rows]),
        }
        refused = self._history.refused
        if refused is not None:  # the last row: what there was no room for
            columns = {
                "value": column(np.array([*owners, -1], dtype=np.int64), known=[*(o >= 0 for o in owners), False]),
                "bytes": column(np.array([*(block.bytes for block, _ in rows), refused.bytes], dtype=np.int64), "B"),
                "class": column([*classes, "refused"]),
                "evidence": column([*(match.evidence if match else "" for match in matches), ""]),
                "stack": column([*(_words(block) for block, _ in rows), _words(refused)]),
            }
        return Table(0, "row", frozen(range(len(columns["stack"].values))), columns, BLOCKS.name)

    def along(self) -> Table:
        """Measured beside predicted, by operator: the most that was alive while it ran."""
        measured: dict[int, int] = {}
        producer = self._graph.value_producer
        for at, match in self.matched.items():
            node = int(producer[self._memory.owner[match.row]])
            measured[node] = max(measured.get(node, 0), self._totals[at])
        nodes = sorted(measured)
        columns = {
            "memory measured": column(np.array([measured[node] for node in nodes], dtype=np.int64), "B"),
            "memory predicted": column(self._memory.total[nodes].astype(np.int64), "B"),
        }
        return Table(0, "node", frozen(nodes), columns, OWN.name)


def _words(block: Block) -> str:
    """The operator, the user's own line and where that was called from."""
    own = users_frame(block.stack[::-1])
    frames = [*([own] if own else []), *(frame for frame in block.stack if frame is not own)]
    lines = [f"{frame.file}:{frame.line} {frame.function}" for frame in frames[:8]]
    return "\n".join([*([block.op] if block.op else []), *lines])


def memory_summary(capture: Capture) -> dict[str, Any] | None:
    """What of a memory snapshot found its place; None where there is none."""
    table = next((table for table in capture.tables.values() if table.fact == BLOCKS.name), None)
    if table is None:
        return None
    columns: Mapping[str, Any] = {name: found.values for name, found in table.columns.items()}
    graph = capture.stages[table.stage].graph
    sizes: dict[str, int] = Counter()
    evidence: dict[str, int] = Counter()
    by_module: dict[str, int] = Counter()
    unmatched: list[dict[str, Any]] = []
    refused: dict[str, Any] | None = None
    for row in range(len(table.index)):
        size, how, cls = int(columns["bytes"][row]), str(columns["evidence"][row]), str(columns["class"][row])
        stack = str(columns["stack"][row])
        if cls == "refused":
            refused = {"bytes": size, "stack": stack}
        elif not how:
            sizes["unmatched"] += size
            unmatched.append({"bytes": size, "stack": stack or "allocated before the history begins"})
        else:
            sizes[cls] += size
            evidence[how] += size
            by_module[_module(graph, int(columns["value"][row]))] += size
    total = sum(sizes.values())
    return {
        "peak_bytes": total,
        "matched_bytes": total - sizes["unmatched"],
        "predicted_bytes": GraphStats(graph, capture.origin.framework).memory.peak_bytes,
        "blocks": len(table.index) - (refused is not None),
        "classes": dict(sizes),
        "evidence": dict(evidence),
        "modules": dict(Counter(by_module).most_common()),
        "unmatched": unmatched,
        "out_of_memory": refused,
    }


def _module(graph: Graph, value: int) -> str:
    producer = int(graph.value_producer[value])
    if producer >= 0:
        return graph.pools.scope_path(int(graph.node_scope[producer]))
    name = graph.pools.strings[int(graph.value_name[value])]
    return name.rpartition(".")[0]
