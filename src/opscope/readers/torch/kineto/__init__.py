"""Profiles of `torch.profiler` (Kineto), as Chrome traces: `export_chrome_trace`, `tensorboard_trace_handler`.

Alone, a profile becomes a capture of what ran: its operators in their modules and on their lines, the kernels that they
started, and how long each took. It does not say which operator read what another made, so there are no edges; joined to
a capture of the same program (`analysis.joining`), its times stand on that graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opscope.errors import BadInput
from opscope.ir import Capture, Graph, GraphBuilder, Origin, Pools, Stage, Table, column
from opscope.ir.columns import frozen
from opscope.ir.facts import IDS, TIMES
from opscope.ir.measurements import coverage_table
from opscope.readers.json_text import ONNX_RUNTIME
from opscope.readers.source import Options, Source

from .columns import Columns
from .operators import Operators, operators
from .profile import Profile
from .split import split_table
from .stream import Trace
from .timeline import tables as timeline

NAME = "kineto"
_KEYS = re.compile(rb'"(?:traceEvents|schemaVersion|deviceProperties|baseTimeNanoseconds)"\s*:')
_EVENT = re.compile(rb'"ph"\s*:\s*"[A-Za-z]"')
GROUPS = ("kernel", "copy", "copy")  # by kind of work: that of groups


def match(source: Source) -> bool:
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head[:1] == b"{":
        return _KEYS.search(head) is not None
    return head[:1] == b"[" and _EVENT.search(head) is not None and not ONNX_RUNTIME.match(head)


def read(source: Source, options: Options) -> Capture:
    with source.open() as file:
        trace = Trace(file, source.name)
        columns = Columns()
        columns.take(trace.events())
    warnings = [] if trace.complete else ["the trace is cut off: what came after is missing"]
    profile = columns.profile(NAME, trace.fields, warnings)
    if not len(profile.calls) and not len(profile.work):
        raise BadInput(f"{source.name}: a Chrome trace in which neither operators nor kernels ran{columns.others()}")
    if columns.collide:
        raise BadInput(
            f"{source.name}: a trace of several processes whose ids collide, such as one that was merged from those of "
            "several ranks: which of them started a kernel is not known. Open the trace of each rank by itself"
        )
    return capture_of(profile)


def capture_of(profile: Profile) -> Capture:
    """What ran, as a graph without edges."""
    pools = Pools()
    found = operators(profile, pools)
    b = GraphBuilder(pools)
    _nodes(b, profile, found)
    for node, forward in enumerate(found.forward):
        if forward >= 0:
            b.link("grad", forward, node)
    owner, lost = _owners(b, profile, found)
    rows = _groups(b, profile, owner)
    graph = b.freeze()
    warnings = [
        "a profile does not say which operator reads what another made: there are no edges. Join it to a capture "
        "of the same program (--profile) to see its times on the graph",
        *profile.warnings,
    ]
    happened, cut = timeline(profile, found, rows)
    warnings += [cut] if cut else []
    if lost:
        warnings.append(f"{lost:,} kernels and copies were started outside of what was profiled: each is an operator")
    capture = Capture(
        pools,
        [Stage("profile", graph, warnings=tuple(warnings))],
        origin=Origin(NAME, "torch", how="profile"),
    )
    for table in _times(profile, owner, rows, found, graph.n_nodes):
        capture.add(table)
    if len(profile.kernels):
        capture.add(_coverage(profile, owner, graph))
    if (split := split_table(profile)) is not None:
        capture.add(split)
    for table in happened:
        capture.add(table)
    records = profile.calls.record[found.calls]
    capture.add(
        Table(0, "node", frozen(range(len(found.calls))), {"id": column(records, known=_mask(records >= 0))}, IDS.name)
    )
    return capture


def _nodes(b: GraphBuilder, profile: Profile, found: Operators) -> None:
    calls = profile.calls
    shapes: dict[int, int] = {0: 0}  # the number of a text -> that of the attributes which it says
    names: list[int] = calls.name[found.calls].tolist()
    texts: list[int] = calls.shapes[found.calls].tolist()
    ops = {name: profile.names[name].replace("::", ".", 1) for name in set(names)}
    for name, text, place in zip(names, texts, found.places, strict=True):
        if text not in shapes:
            shapes[text] = _shapes(b.pools, profile.names[text])
        b.node(ops[name], scope=place.scope, stack=place.stack, attrs=shapes[text], phase=place.phase)


def _shapes(pools: Pools, text: str) -> int:
    try:
        return pools.attrs({"input shapes": json.loads(text)})
    except ValueError:  # it was too long, and is cut
        return 0


def _owners(b: GraphBuilder, profile: Profile, found: Operators) -> tuple[npt.NDArray[np.int64], int]:
    """The node of each piece of work. What nothing in the profile started gets a node of its own."""
    work = profile.work
    owner = np.full(len(work), -1, dtype=np.int64)
    is_started = work.call >= 0
    owner[is_started] = found.within[work.call[is_started]]
    lost = np.flatnonzero(owner < 0)
    for row in lost.tolist():
        owner[row] = b.node(profile.text(work.name, row)[:200])
    return owner, len(lost)


def _groups(b: GraphBuilder, profile: Profile, owner: npt.NDArray[np.int64]) -> dict[str, list[int]]:
    """A group for each kernel and each copy that ran; by kind of group, which rows of `work` they are."""
    work = profile.work
    rows: dict[str, list[int]] = {}
    known: dict[tuple[int, int, int], int] = {}
    kinds: list[int] = work.kind.tolist()
    names: list[int] = work.name.tolist()
    nodes: list[int] = owner.tolist()
    keys: list[list[int]] = np.stack((work.device, work.stream, work.attrs), axis=1).tolist()
    for row, (kind, name, node, (device, stream, attrs)) in enumerate(zip(kinds, names, nodes, keys, strict=True)):
        key = device, stream, attrs
        if key not in known:
            known[key] = b.pools.attrs({"device": device, "stream": stream, **profile.attr_sets[attrs]})
        group = GROUPS[kind]
        b.group(group, [node], name=profile.names[name], attrs=known[key])
        rows.setdefault(group, []).append(row)
    return rows


def _times(
    profile: Profile, owner: npt.NDArray[np.int64], rows: dict[str, list[int]], found: Operators, nodes: int
) -> list[Table]:
    """Of every kernel and copy, and of every operator: the work it started, and its call."""
    tables: list[Table] = []
    work = profile.work
    for group, listed in rows.items():
        figures = {"time": column(work.duration[listed], "us"), "start": column(work.start[listed], "us")}
        tables.append(Table(0, f"group:{group}", frozen(range(len(listed))), figures, TIMES.name))
    device = np.bincount(owner, work.duration, minlength=nodes).astype(np.float64)
    cpu, start = np.zeros(nodes), np.zeros(nodes)
    cpu[: len(found.calls)] = profile.calls.duration[found.calls]
    start[: len(found.calls)] = profile.calls.start[found.calls]
    called = np.arange(nodes) < len(found.calls)
    figures = {
        "time": column(device if len(work) else cpu, "us", _mask(called | (len(work) > 0))),
        "cpu": column(cpu, "us", _mask(called)),
        "start": column(start, "us", _mask(called)),
    }
    tables.append(Table(0, "node", frozen(range(nodes)), figures, TIMES.name))
    return tables


def _coverage(profile: Profile, owner: npt.NDArray[np.int64], graph: Graph) -> Table:
    """All kernels have a place here: the call that started them, or where nothing did, an operator of their own."""
    kernels = profile.kernels
    called = profile.work.call[kernels] >= 0
    rows: dict[tuple[str, str, str], list[float]] = {}
    for evidence, some in (("by id", kernels[called]), ("itself", kernels[~called])):
        if len(some):
            nodes = owner[some]
            in_module, on_line = (graph.node_scope[nodes] > 0).sum(), (graph.node_stack[nodes] > 0).sum()
            seconds = float(profile.work.duration[some].sum()) * 1e-6
            rows[evidence, "", ""] = [len(some), seconds, int(in_module), int(on_line)]
    return coverage_table(rows)


def _mask(known: npt.NDArray[np.bool_]) -> Sequence[bool]:
    return known.tolist()
