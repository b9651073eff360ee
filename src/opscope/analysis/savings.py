"""Where time could be won in a measured run: what was found, by which rule, and what it would save at most.

Every figure is of this run and of what its operators cost; the peaks are those of the device that the profile names.
Where they are not known, no bound is given. A piece of work is in one row only, so that rows of kernels can be added
up; idle time is beside them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError
from opscope.ir import PHASES, Capture, Graph, Table, column, frozen, gaps_of
from opscope.ir.enumerations import SAVING_KINDS
from opscope.ir.events import COPY, GROUP_KERNEL, NODE, SET, Events, events_of
from opscope.ir.facts import SAVINGS, SPLIT
from opscope.ir.spellings import FRAMEWORK_FILE

from .costs.achieved import Work, work_of
from .costs.devices import Device
from .costs.stats import GraphStats
from .device import device_names, device_of, runs_of
from .gaps_in_time import gaps_between
from .times import clocks, in_seconds, measured_stages, node_times

SMALL = 10e-6  # seconds: a kernel shorter than it takes to launch the next one
_FAR = 0.6  # of the bound: a product that reaches more is not far from it
_FULL = 0.7  # of the bandwidth: what reaches more moves its bytes about as fast as can be
_LEAST = 0.002  # of the busy time: less is not listed
MOST_ROWS = 40
_MOST_NODES = 500
_ALIGNED = 8  # numbers of 16 bits that matrix units load at once


@dataclass(frozen=True)
class Saving:
    """Something that takes time. `most`: what it would save at most, None where nobody can say; `nodes`: the operators
    of the stage that it is about, the most expensive first."""

    stage: int
    kind: str
    name: str
    seconds: float
    most: float | None
    count: int
    nodes: tuple[int, ...]
    why: str


def savings(
    capture: Capture, device: Device | None = None, counted: Mapping[int, GraphStats] = MappingProxyType({})
) -> list[Saving]:
    """What could be won, most first. Without `device`, it is the one that the profile names. `counted`: the costs of
    stages, where they are known already."""
    stages = measured_stages(capture)
    if not stages:
        return []
    device = device or device_of(capture)
    found: list[Saving] = []
    events = events_of(capture)
    busy = 0.0
    for stage in stages:
        graph = capture.stages[stage].graph
        stats = counted.get(stage) or GraphStats(graph, capture.origin.framework, gaps=gaps_of(capture, stage))
        try:
            costs = stats.costs
        except OpscopeError:  # it cannot be counted, and the capture says so
            continue
        work = work_of(graph, costs, clocks(capture, stage), node_times(capture, stage), device)
        if work is not None:
            busy += float(work.seconds.sum())
            found += _of_work(capture, stage, stats, work, device)
    found = [saving for saving in found if saving.seconds >= _LEAST * busy]
    if events is not None:
        found += _of_gaps(capture, events) + _of_copies(capture, events)
    found += _of_split(capture)
    if not found:
        return []
    ordered = sorted(found, key=lambda one: (-(one.most or 0.0), -one.seconds))[:MOST_ROWS]
    if device is None and any(saving.kind not in ("launch-bound", "idle", "copies") for saving in ordered):
        ordered.append(_unknown(capture, stages[0]))
    return ordered


def _unknown(capture: Capture, stage: int) -> Saving:
    names = ", ".join(device_names(capture)) or "the profile does not name it"
    why = f"the peaks of this device ({names}) are not known here: nothing is said of how near kernels are to them"
    return Saving(stage, "unknown-device", "device", 0.0, None, 0, (), why)


# -- kernels and operators -----------------------------------------------------------------------------


def _of_work(capture: Capture, stage: int, stats: GraphStats, work: Work, device: Device | None) -> Iterator[Saving]:
    """Each piece by the first rule that it fits."""
    graph = stats.graph
    left = np.ones(len(work), dtype=bool)
    has_kernels = bool(work.kernels.any())
    ratio = np.divide(work.bound, work.seconds, out=np.zeros(len(work)), where=work.seconds > 0)
    bounded = work.known & work.has_device
    room = np.where(bounded, np.maximum(work.seconds - work.bound, 0.0), np.nan)

    def rows(
        kind: str, chosen: npt.NDArray[np.bool_], most: npt.NDArray[np.float64], why: Callable[[list[int]], str]
    ) -> Iterator[Saving]:
        chosen = chosen & left
        left[chosen] = False
        by_name: dict[tuple[str, Any], list[int]] = defaultdict(list)
        for piece in np.flatnonzero(chosen).tolist():
            name = _title(graph, work.groups.members(piece))
            by_name[name, _shape_of(graph, work, piece) if kind == "below-peak" else None].append(piece)
        for (name, _), pieces in by_name.items():
            took = float(work.seconds[pieces].sum())
            known = most[pieces]
            limit = float(np.nansum(known)) if np.isfinite(known).all() else None
            count = int(work.kernels[pieces].sum()) or len(pieces)
            yield Saving(stage, kind, name, took, limit, count, _nodes(work, pieces), why(pieces))

    yield from rows(
        "conversions",
        _only_casts(stats, work),
        work.seconds,
        lambda _: "only changes the type of numbers: not needed where they are made, or kept, in that type",
    )
    if has_kernels:
        each = work.seconds / np.maximum(work.kernels, 1)
        yield from rows(
            "small-kernels",
            (work.kernels > 0) & (each < SMALL) & (work.compute <= work.memory),
            room,
            lambda pieces: _small(work, pieces),
        )
    if device is None:
        return
    yield from rows(
        "below-peak",
        bounded & (work.flops > 0) & (work.compute > work.memory) & (ratio < _FAR),
        room,
        lambda pieces: _below(graph, work, pieces, device),
    )
    yield from rows(
        "memory-bound",
        bounded & (work.memory >= work.compute) & (work.memory > 0),
        room,
        lambda pieces: _moving(work, pieces, device),
    )


def _only_casts(stats: GraphStats, work: Work) -> npt.NDArray[np.bool_]:
    """Pieces whose operators do nothing but change a type."""
    kinds = stats.kinds
    is_cast = np.isin(stats.graph.node_op, [op for op, kind in kinds.by_op.items() if kind == "cast"])
    for node, kind in kinds.by_node.items():
        is_cast[node] = kind == "cast"
    sizes = np.diff(work.groups.start)
    owner = np.repeat(np.arange(len(work)), sizes)
    found = np.bincount(owner, is_cast[work.groups.member], minlength=len(work))
    return (sizes > 0) & (found == sizes)


def _title(graph: Graph, nodes: Sequence[int] | npt.NDArray[Any]) -> str:
    strings = graph.pools.strings
    ops = dict.fromkeys(strings[int(graph.node_op[node])] for node in nodes)
    listed = list(ops)
    return f"{listed[0]} + {len(nodes) - 1} fused" if len(nodes) > 1 else (listed[0] if listed else "(no operator)")


def _nodes(work: Work, pieces: Sequence[int]) -> tuple[int, ...]:
    ordered = sorted(pieces, key=lambda piece: -float(work.seconds[piece]))
    found: dict[int, None] = {}
    for piece in ordered:
        found.update(dict.fromkeys(work.groups.members(piece).tolist()))
        if len(found) >= _MOST_NODES:
            break
    return tuple(found)[:_MOST_NODES]


def _small(work: Work, pieces: Sequence[int]) -> str:
    count = int(work.kernels[pieces].sum())
    mean = float(work.seconds[pieces].sum()) / max(count, 1) * 1e6
    return (
        f"{count:,} kernels of {mean:.1f} µs on average, below {SMALL * 1e6:g} µs: launching one takes as long. "
        "Fewer, fused ones (torch.compile, foreach=True or fused=True of an optimizer) move their bytes once"
    )


def _below(graph: Graph, work: Work, pieces: Sequence[int], device: Device) -> str:
    share = float(work.bound[pieces].sum() / work.seconds[pieces].sum())
    speed = float(work.flops[pieces].sum() / work.seconds[pieces].sum()) / 1e12
    text = f"bound by computing, and {share:.0%} of what {device.title} can do ({speed:,.0f} TFLOP/s)"
    odd = sorted({size for piece in pieces for size in _odd(graph, work.groups.members(piece))})
    if odd:
        sizes = ", ".join(f"{size:,}" for size in odd[:3])
        text += f". Matrix units load {_ALIGNED} numbers at once: {sizes} is no multiple of that, so pad it"
    return text


def _moving(work: Work, pieces: Sequence[int], device: Device) -> str:
    rate = float(work.bytes[pieces].sum() / work.seconds[pieces].sum())
    share = rate / device.bandwidth
    text = f"bound by memory, and moves {rate / 1e12:.2f} TB/s, {share:.0%} of the bandwidth of {device.title}"
    if share > 1:
        return text + " (its data are still in a cache): only moving less, such as by fusing it, is faster"
    return text + (": only moving less, such as by fusing it, is faster" if share >= _FULL else "")


def _shape_of(graph: Graph, work: Work, piece: int) -> Any:
    """Products of the same sizes are one row."""
    nodes = work.groups.members(piece)
    return tuple(str(v.type) for n in nodes[:4] for v in graph.node(int(n)).inputs if v is not None)


def _odd(graph: Graph, nodes: npt.NDArray[Any]) -> Iterator[int]:
    """Sizes of matrices of 16-bit numbers that are no multiple of what matrix units load."""
    for node in nodes.tolist():
        for value in graph.node(node).inputs:
            if value is None or value.type.shape is None or value.type.dtype not in ("float16", "bfloat16"):
                continue
            for size in value.type.shape[-2:]:
                if isinstance(size, int) and size > 4 * _ALIGNED and size % _ALIGNED and len(value.type.shape) > 1:
                    yield size


# -- devices that wait ---------------------------------------------------------------------------------


def _of_gaps(capture: Capture, events: Events) -> list[Saving]:
    """By phase of what came next: nothing ran because it was not launched, or for another reason."""
    found = gaps_between(events)
    runs = runs_of(capture)
    rows: dict[tuple[int, str], dict[int, list[float]]] = defaultdict(dict)
    for event, length, waited in zip(found.next.tolist(), found.length.tolist(), found.waited.tolist(), strict=True):
        stage, node = _operator(capture, events, event)
        phase = PHASES[int(capture.stages[stage].graph.node_phase[node])] if node >= 0 else "outside of the graph"
        entry = rows[stage, phase].setdefault(node, [0.0, 0.0, 0.0, 0.0])
        entry[0] += waited
        entry[1] += length - waited
        entry[2] += waited > 0
        entry[3] += length - waited > 0
    out: list[Saving] = []
    for (stage, phase), by_node in rows.items():
        for place, kind in enumerate(("launch-bound", "idle")):
            total = sum(entry[place] for entry in by_node.values()) * 1e-6 / runs
            count = round(sum(entry[place + 2] for entry in by_node.values()) / runs)
            ordered = sorted((n for n in by_node if n >= 0), key=lambda n: -by_node[n][place])
            nodes = tuple(n for n in ordered[:_MOST_NODES] if by_node[n][place] > 0)
            if total > 0:
                out.append(Saving(stage, kind, phase, total, total, count, nodes, _WHY_IDLE[kind]))
    whole = sum(one.seconds for one in out)
    return [one for one in out if one.seconds >= _LEAST * whole]


_WHY_IDLE = {
    "launch-bound": "the device had nothing to do until the call that launches its next kernel was over: the CPU is "
    "the limit (CUDA graphs, torch.compile, larger batches, fewer operators)",
    "idle": "the device had nothing to do although its next work was launched already: it waited for another stream, "
    "a copy, or its own start (a few µs a kernel)",
}


def _operator(capture: Capture, events: Events, event: int) -> tuple[int, int]:
    """The stage and the first operator that an event belongs to; -1: none."""
    stage, by, index = int(events.stage[event]), int(events.by[event]), int(events.index[event])
    if by == NODE:
        return stage, index
    groups = capture.stages[stage].graph.groups.get("kernel") if by == GROUP_KERNEL else None
    members: list[int] = groups.members(index).tolist() if groups is not None and index < len(groups) else []
    return stage, members[0] if members else -1


def _of_copies(capture: Capture, events: Events) -> list[Saving]:
    runs = runs_of(capture)
    rows: dict[tuple[int, str], list[Any]] = {}
    for event in np.flatnonzero(np.isin(events.kind, (COPY, SET))).tolist():
        stage, node = _operator(capture, events, event)
        entry = rows.setdefault((stage, events.names[int(events.name[event])]), [0.0, 0, defaultdict(float)])
        entry[0] += float(events.time[event])
        entry[1] += 1
        entry[2][node] += float(events.time[event])
    why = "copies between memories and setting them: those of inputs can run beside computing (pinned, non_blocking)"
    out: list[Saving] = []
    for (stage, name), (took, count, nodes) in rows.items():
        ordered = tuple(sorted((n for n in nodes if n >= 0), key=lambda n: -nodes[n])[:_MOST_NODES])
        seconds = took * 1e-6 / runs
        out.append(Saving(stage, "copies", name, seconds, seconds, round(count / runs), ordered, why))
    return out


def _of_split(capture: Capture) -> Iterator[Saving]:
    """Communication beside which nothing was computed, as the profile's own reader counted it."""
    for table in capture.tables.values():
        if table.fact != SPLIT.name:
            continue
        seconds = in_seconds(table.columns["time"])
        counts = np.asarray(table.columns["count"].values)
        for row, name in enumerate(table.columns["name"].values):
            if str(name).startswith("exposed communication") and seconds[row] > 0:
                took = float(seconds[row])
                why = "collectives while nothing was computed: overlap them with the backward pass, or send less"
                yield Saving(table.stage, "communication", str(name), took, took, int(counts[row]), (), why)


# -- in words, and as a fact -----------------------------------------------------------------------------------------


def described(capture: Capture, found: Sequence[Saving]) -> list[dict[str, Any]]:
    """For JSON: each with the module around its operators, and the line of the most expensive one."""
    return [
        {
            "kind": one.kind,
            "name": one.name,
            "seconds": one.seconds,
            "at_most": one.most,
            "count": one.count,
            "stage": capture.stages[one.stage].name,
            "module": module_of(capture.stages[one.stage].graph, one.nodes),
            "line": line_of(capture.stages[one.stage].graph, one.nodes),
            "nodes": list(one.nodes),
            "why": one.why,
        }
        for one in found
    ]


def module_of(graph: Graph, nodes: Sequence[int]) -> str:
    """The innermost module around all of these."""
    scopes = graph.pools.scopes
    common = -1
    for scope in {int(graph.node_scope[node]) for node in nodes}:
        if common < 0:
            common = scope
        while common != scope:  # parents have smaller numbers
            if common > scope:
                common = scopes[common].parent
            else:
                scope = scopes[scope].parent
    return graph.pools.scope_path(common) if common > 0 else ""


def line_of(graph: Graph, nodes: Sequence[int]) -> str | None:
    """The innermost frame of the user's own."""
    stack = int(graph.node_stack[nodes[0]]) if nodes else 0
    first: str | None = None
    while stack > 0:
        entry = graph.pools.stacks[stack]
        frame = graph.pools.frames[entry.frame]
        first = first or f"{frame.file}:{frame.line}"
        if not FRAMEWORK_FILE.search(frame.file):
            return f"{frame.file}:{frame.line}"
        stack = entry.parent
    return first


def tables_of(found: Sequence[Saving]) -> list[Table]:
    """One table for each stage."""
    out: list[Table] = []
    for stage in sorted({saving.stage for saving in found}):
        mine = [saving for saving in found if saving.stage == stage]
        columns = {
            "kind": column(np.array([SAVING_KINDS.index(one.kind) for one in mine], dtype=np.int8)),
            "name": column([one.name for one in mine]),
            "time": column(np.array([one.seconds for one in mine]), "s"),
            "most": column(np.array([one.most or 0.0 for one in mine]), "s", [one.most is not None for one in mine]),
            "count": column(np.array([one.count for one in mine], dtype=np.int64)),
            "nodes": column([list(one.nodes) for one in mine]),
            "why": column([one.why for one in mine]),
        }
        out.append(Table(stage, "row", frozen(range(len(mine))), columns, SAVINGS.name))
    return out
