"""What every operator of a graph costs, as columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import Body, Graph
from opscope.ir.attributes import STARTS_FROM, WRITTEN_BEFORE
from opscope.ir.enumerations import ESTIMATED, HOW, UNKNOWN, ZERO
from opscope.ir.pools import Type
from opscope.ops import Argument, Cost, cost_of, parts
from opscope.ops import cost as rules

from .signatures import signatures
from .sizes import NOT_KNOWN, Ints, Mask, Storages, inside_kernels, storages, value_bytes

HOW_ID = {how: i for i, how in enumerate(HOW)}
_MOST = 1 << 62  # what a sum may come to
_SAME = -2  # of the causal MACs: as many as the dense ones
_MOST_TRIPS = 1 << 31  # more is how a `while` says that it has no end
_LOOPS = ("loop", "while", "scan", "map")
_BRANCHES = ("if", "cond", "switch", "case")


@dataclass(frozen=True, eq=False)
class CostTable:
    """One row for each node. `how` is a place in ops.cost.HOW.

    Where it is `unknown`, `macs` and `other` are 0 and mean nothing. `lower` marks what the node costs at least: an
    unknown operator somewhere in its bodies, or a loop of unknown length counted once. `bytes_known` is False where a
    size that counts is not known; `view` marks nodes that only show memory under another shape.

    `causal` are the MACs if attention computes only what causal masks show; where `causal_known` is False, the node has
    a mask of which nothing is known, and `causal` is the dense count, the most that it can be.

    `wire` are the bytes that it sends to other ranks; where `wire_known` is False, nothing says to how many.
    """

    macs: Ints
    other: Ints
    read: Ints
    written: Ints
    how: npt.NDArray[np.int8]
    lower: Mask
    bytes_known: Mask
    view: Mask
    storages: Storages
    inside: Mask  # values that are never in memory
    unknown_ops: Counter[str]  # in bodies too
    causal: Ints
    causal_known: Mask
    wire: Ints
    wire_known: Mask

    def __len__(self) -> int:
        return len(self.macs)

    @property
    def unknown(self) -> Mask:
        return self.how == HOW_ID[UNKNOWN]

    @property
    def estimated(self) -> Mask:
        return self.how == HOW_ID[ESTIMATED]

    @cached_property
    def total(self) -> Cost:
        """All nodes together. `how` is the least certain one."""
        how = HOW[int(self.how.max(initial=0))] if len(self) else rules.EXACT
        causal = int(self.causal.sum()) if bool(self.causal_known.all()) else rules.NOT_TOLD
        wire = int(self.wire.sum()) if bool(self.wire_known.all()) else rules.NOT_TOLD
        return Cost(
            int(self.macs.sum()),
            int(self.other.sum()),
            int(self.read.sum()),
            int(self.written.sum()),
            how,
            causal,
            wire,
        )


def node_costs(graph: Graph, framework: str = "") -> CostTable:
    """The cost of every node, by `framework`'s formulas."""
    return _Costs(framework).of(graph)


class _Costs:
    def __init__(self, framework: str) -> None:
        self._framework = framework
        self._known: dict[int, CostTable] = {}  # by graph: bodies may share one
        self._attrs: dict[int, dict[str, Any]] = {}  # read once: many signatures differ only by shapes

    def of(self, graph: Graph) -> CostTable:
        if id(graph) not in self._known:
            self._known[id(graph)] = self._table(graph)
        return self._known[id(graph)]

    def _table(self, graph: Graph) -> CostTable:
        kinds = signatures(graph)
        costs = [self._cost(graph, int(node)) for node in kinds.first]
        macs, other, read, written, how = (_column(costs, field)[kinds.of_node] for field in range(5))
        # As the MACs, which may change below, but for attention with a mask.
        causal = np.array([_SAME if cost.causal is None else cost.causal for cost in costs], dtype=np.int64)
        causal = causal[kinds.of_node] if costs else np.zeros(0, dtype=np.int64)
        wire = np.array([cost.wire for cost in costs], dtype=np.int64)
        wire = wire[kinds.of_node] if costs else np.zeros(0, dtype=np.int64)
        lower = np.zeros(graph.n_nodes, dtype=bool)
        unknown_ops: Counter[str] = Counter()
        for node, (cost, _) in parts(self._framework, graph).items():
            if cost is None:
                continue
            macs[node], other[node], how[node] = cost.macs, cost.other, HOW_ID[cost.how]
            read[node] = NOT_KNOWN if cost.read is None else cost.read
            written[node] = NOT_KNOWN if cost.written is None else cost.written
        for node, bodies in graph.bodies_by_node.items():
            if how[node] == HOW_ID[UNKNOWN]:
                cost, lower[node], inner = self._bodies(graph, node, bodies)
                macs[node], other[node], how[node] = cost.macs, cost.other, HOW_ID[cost.how]
                read[node] = NOT_KNOWN if cost.read is None else cost.read
                written[node] = NOT_KNOWN if cost.written is None else cost.written
                causal[node] = _SAME if cost.causal is None else cost.causal
                wire[node] = cost.wire
                unknown_ops += inner
        too_large = _too_large(macs) | _too_large(other)
        how[too_large] = HOW_ID[UNKNOWN]
        unknown = how == HOW_ID[UNKNOWN]
        macs[unknown] = other[unknown] = 0
        causal_known = causal != rules.NOT_TOLD
        wire_known = (wire != rules.NOT_TOLD) & ~_too_large(wire)
        causal = np.where(unknown | (causal < 0), macs, causal)
        missing: list[int] = graph.node_op[unknown].tolist()
        for op, count in Counter(missing).items():
            unknown_ops[graph.pools.strings[op]] += count

        view = (how == HOW_ID[ZERO]) & (written == 0) & (read <= 0)
        memory = storages(graph, view)
        inside = inside_kernels(graph)
        general_read, general_written, known = _traffic(graph, memory, inside)
        ruled = (read != NOT_KNOWN) & (written != NOT_KNOWN)
        read = np.where(read == NOT_KNOWN, general_read, read)
        written = np.where(written == NOT_KNOWN, general_written, written)
        for column in (read, written):
            absurd = _too_large(column)
            column[absurd] = 0
            known = known & ~absurd
        return CostTable(
            macs=macs,
            other=other,
            read=read,
            written=written,
            how=how.astype(np.int8),
            lower=lower | unknown,
            bytes_known=known | ruled,
            view=view,
            storages=memory,
            inside=inside,
            unknown_ops=unknown_ops,
            causal=causal,
            causal_known=causal_known,
            wire=np.where(wire_known, wire, 0),
            wire_known=wire_known,
        )

    def _cost(self, graph: Graph, node: int) -> Cost:
        handle = graph.node(node)
        inputs: list[Argument] = []
        for use in handle.uses:
            if use.arg == WRITTEN_BEFORE or (inputs and inputs[-1].name == use.arg and use.value is not None):
                continue  # parts of one tensor, written one by one: the first has the type of the whole
            inputs.append(Argument(use.arg, use.value.type if use.value is not None else None))
        inputs += _starts(self._attrs_of(graph, node))
        outputs = [value.type for value in handle.outputs]
        attrs = self._attrs_of(graph, node)
        try:
            return _checked(cost_of(self._framework, handle.op, inputs, outputs, attrs))
        except Exception as error:
            whole = ".".join(handle.op.split(".")[:2])  # formulas may be for all overloads
            if not any((place, op) in rules.registered for place in (self._framework, "") for op in (handle.op, whole)):
                return Cost(how=UNKNOWN)  # a damaged file has shapes that no formula expects
            raise OpscopeError(
                f"the formula registered for {handle.op} fails on node {node}: {type(error).__name__}: {error}"
            ) from error

    def _attrs_of(self, graph: Graph, node: int) -> dict[str, Any]:
        number = int(graph.node_attrs[node])
        if number not in self._attrs:
            self._attrs[number] = graph.pools.attrs_of(number)
        return self._attrs[number]

    def _bodies(self, graph: Graph, node: int, bodies: tuple[Body, ...]) -> tuple[Cost, bool, Counter[str]]:
        """What an operator made of graphs costs; whether that is the least it can be; what is unknown inside."""
        tables = [self.of(body.graph) for body in bodies]
        totals = [table.total for table in tables]
        unknown_ops: Counter[str] = Counter()
        for table in tables:
            unknown_ops += table.unknown_ops
        lower = any(bool(table.lower.any()) for table in tables)
        op = graph.pools.strings[int(graph.node_op[node])].lower().rpartition(".")[2]
        exact = all(total.how in (rules.EXACT, ZERO) for total in totals)
        if any(word in op for word in _LOOPS):
            trips = _trips(graph.node(node).attrs)
            cost = _sum(totals, trips or 1)
            return cost._replace(how=rules.EXACT if exact and trips else ESTIMATED), lower or not trips, unknown_ops
        if len(bodies) > 1 and any(op.startswith(word) for word in _BRANCHES):
            most = max(totals, key=lambda total: (total.macs, total.other))  # one of them runs
            return most._replace(how=ESTIMATED), lower, unknown_ops
        return _sum(totals, 1)._replace(how=rules.EXACT if exact else ESTIMATED), lower, unknown_ops


def _starts(attrs: dict[str, Any]) -> list[Argument]:
    """The gradients that a backward pass begins with; no value represents them."""
    try:
        return [Argument("grad", Type(dtype, tuple(shape))) for dtype, shape in attrs.get(STARTS_FROM, ())]
    except (TypeError, ValueError):
        return []  # a file may say anything


def _sum(totals: list[Cost], times: int) -> Cost:
    macs, other, read, written = (times * sum(int(total[field] or 0) for total in totals) for field in range(4))
    told = [total.macs if total.causal is None else total.causal for total in totals]
    causal = rules.NOT_TOLD if rules.NOT_TOLD in told else times * sum(told)
    wires = [total.wire for total in totals]
    wire = rules.NOT_TOLD if rules.NOT_TOLD in wires else times * sum(wires)
    return Cost(macs, other, read, written, causal=causal, wire=wire)


def _trips(attrs: dict[str, Any]) -> int | None:
    for name in ("trip_count", "max_trip_count", "length"):
        count = attrs.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _MOST_TRIPS:
            return count
    return None


def _checked(cost: Cost) -> Cost:
    """A formula's answer, with whole numbers that fit; one that does not is no answer."""
    numbers = [None if figure is None else int(figure) for figure in cost[:4]]
    if cost.how not in HOW_ID or any(figure is not None and not 0 <= figure < _MOST for figure in numbers):
        return Cost(how=UNKNOWN)
    macs, other, read, written = numbers
    causal = cost.causal
    if causal is not None and causal != rules.NOT_TOLD and not 0 <= causal <= (macs or 0):
        return Cost(how=UNKNOWN)
    if cost.wire != rules.NOT_TOLD and not 0 <= cost.wire < _MOST:
        return Cost(how=UNKNOWN)
    return Cost(macs or 0, other or 0, read, written, cost.how, causal, int(cost.wire))


def _column(costs: list[Cost], field: int) -> Ints:
    if field == 4:
        return np.array([HOW_ID[cost.how] for cost in costs], dtype=np.int64)
    return np.array([NOT_KNOWN if cost[field] is None else cost[field] for cost in costs], dtype=np.int64)


def _too_large(column: Ints) -> Mask:
    """Rows without which the sum stays a whole number of 64 bits."""
    if float(column.sum(dtype=np.float64)) < _MOST:
        return np.zeros(len(column), dtype=bool)
    return column > _MOST // len(column)


def _traffic(graph: Graph, memory: Storages, inside: Mask) -> tuple[Ints, Ints, Mask]:
    """By the general rule: what a node reads, each value once; what it makes; whether all sizes are known."""
    own = value_bytes(graph)
    whole = memory.size[memory.of_value]
    # What `expand` makes is no larger than the memory behind it.
    size = np.where((own != NOT_KNOWN) & (whole != NOT_KNOWN), np.minimum(own, whole), own)
    size[inside] = 0
    absent = size == NOT_KNOWN
    size[absent] = 0

    known = np.ones(graph.n_nodes, dtype=bool)
    rows = np.flatnonzero((graph.use_value >= 0) & ~_repeated(graph))
    value, node = graph.use_value[rows], graph.use_node[rows]
    read = sum_by(node, size[value], graph.n_nodes)
    known[node[absent[value]]] = False
    made = np.flatnonzero(graph.value_producer >= 0)
    maker = graph.value_producer[made]
    written = sum_by(maker, _once(maker, memory.of_value[made], size[made], memory.size), graph.n_nodes)
    known[maker[absent[made]]] = False
    return read, written, known


def _once(maker: npt.NDArray[Any], storage: npt.NDArray[Any], size: Ints, whole: Ints) -> Ints:
    """What a node writes to each memory, at its first value there. One write seen through two windows is two values,
    but no more than all of the memory."""
    several = np.flatnonzero(np.bincount(maker)[maker] > 1) if len(maker) else maker
    if not len(several):
        return size
    key = maker[several].astype(np.int64) * len(whole) + storage[several]
    _, first, pair = np.unique(key, return_index=True, return_inverse=True)
    first = several[first]
    total, most = sum_by(pair, size[several], len(first)), whole[storage[first]]
    size = size.copy()
    size[several] = 0
    size[first] = np.where(most == NOT_KNOWN, total, np.minimum(total, most))
    return size


def _repeated(graph: Graph) -> Mask:
    """Uses of a value that the same node has read already."""
    value, node = graph.use_value, graph.use_node
    repeated = np.zeros(len(value), dtype=bool)
    lengths = np.diff(graph.use_start)
    few = 8
    for back in range(1, min(few, int(lengths.max(initial=0)))):
        repeated[back:] |= (value[back:] == value[:-back]) & (node[back:] == node[:-back])
    many = np.flatnonzero((lengths > few)[node])
    if len(many):
        key = node[many].astype(np.int64) * graph.n_values + value[many]
        _, first = np.unique(key, return_index=True)
        repeated[many] = True
        repeated[many[first]] = False
    return repeated


def sum_by(row: npt.NDArray[Any], figure: Ints, count: int) -> Ints:
    """Whole numbers summed by row, exactly: `bincount` alone counts in floating point."""
    if float(figure.sum(dtype=np.float64)) < 1 << 52:
        return np.bincount(row, figure, minlength=count).astype(np.int64)
    low = np.bincount(row, figure & 0xFFFFFFFF, minlength=count).astype(np.int64)
    high = np.bincount(row, figure >> 32, minlength=count).astype(np.int64)
    return (high << 32) + low
