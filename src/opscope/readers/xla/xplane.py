"""Profiles of JAX and TensorFlow (`*.xplane.pb`, from `jax.profiler.trace`): what ran on each device, and when.

A profile holds the compiled modules that ran while it was taken, so that it can be opened alone. The events of a device
are joined to instructions by name where they carry it, and otherwise by order: a module launches its kernels as
scheduled, also out of a CUDA graph, and equal fusions share one kernel and so one name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Capture, Graph, Origin, Pools, Stage, column
from opscope.ir.measurements import coverage_table, times_table
from opscope.readers.source import Source

from . import proto
from .build import Builder
from .fields import Malformed, Value, integer, message, messages, raw, text

NAME = "xplane"
_DEVICE = re.compile(r"/device:")
_NOT_KERNELS = frozenset(
    (
        *("bitcast", "tuple", "get-tuple-element", "parameter", "constant", "after-all", "add-dependency", "domain"),
        *("optimization-barrier", "partition-id", "replica-id", "async-done", "copy-done", "opt-barrier"),
    )
)
_NO_WORK = (
    "XLA Modules",
    "Steps",
    "XLA TraceMe",
    "Framework Ops",
    "Framework Name Scope",
    "Source code",
    "TensorFlow Ops",
)


class Event(NamedTuple):
    name: str
    op: str  # the instruction that it says it is; may be empty
    module: str
    start: int  # picoseconds
    duration: int


@dataclass
class Profile:
    modules: dict[str, bytes] = field(default_factory=dict[str, bytes])  # HloProtos, by name and program id
    events: list[Event] = field(default_factory=list[Event])


def match(source: Source) -> bool:
    """An XSpace: planes, the first of which begins with a number and a name such as `/host:CPU`."""
    head = source.head
    return head[:1] == b"\x0a" and bool(re.search(rb"\x12[\x06-\x40]/(host|device|task):?", head[:40], re.IGNORECASE))


def profile_in(source: Source) -> Profile:
    profile = Profile()
    try:
        for plane in messages(message(source.read()).get(1)):
            _plane(profile, message(plane))
    except (Malformed, ValueError, KeyError, IndexError) as error:
        raise BadInput(f"{source.name}: not a whole XSpace profile ({error})") from None
    profile.events.sort(key=lambda event: event.start)
    return profile


def read(source: Source) -> Capture:
    """The modules that ran while the profile was taken, with what each instruction took."""
    profile = profile_in(source)
    if not profile.modules:
        raise BadInput(
            f"{source.name}: a profile without compiled modules: join it to a dump of the program (--profile)"
        )
    capture = Capture(pools=Pools(), origin=Origin(NAME, "jax", how="profile"))
    builder = Builder(capture.pools)
    ran = Counter(event.module for event in profile.events)
    # What ran the most comes first: profiles are full of tiny modules.
    for name, content in sorted(profile.modules.items(), key=lambda item: -ran[_bare(item[0])]):
        capture.stages.append(Stage(name, builder.graph(proto.read_module(content, source.name), source.name)))
    lay_on(capture, profile, list(range(len(capture.stages))))
    return capture


def join(capture: Capture, source: Source) -> None:
    """Lay a profile on the compiled modules of a dump: the last stage of each line of stages."""
    profile = profile_in(source)
    if not profile.events:
        raise BadInput(f"{source.name}: a profile in which no device ran anything")
    later = {stage.after for stage in capture.stages}
    last = [i for i in range(len(capture.stages)) if i not in later and " optimizations" in capture.stages[i].name]
    if not lay_on(capture, profile, last or [len(capture.stages) - 1]):
        raise BadInput(f"{source.name}: a profile of another program: none of its kernels is in the compiled module")


def lay_on(capture: Capture, profile: Profile, stages: list[int]) -> bool:
    covered: dict[tuple[str, str, str], list[float]] = {}
    placed: set[int] = set()
    by_module: dict[str, list[int]] = {}
    for i, event in enumerate(profile.events):
        by_module.setdefault(event.module, []).append(i)
    for stage in stages:
        graph = capture.stages[stage].graph
        own = [i for i in by_module.get(_bare(capture.stages[stage].name), ()) if i not in placed]
        own = own or [i for i in range(len(profile.events)) if i not in placed and len(stages) == 1]
        found = _Joining(graph, [profile.events[i] for i in own]).run()
        _times(capture, stage, found, [profile.events[i] for i in own])
        for at, (node, evidence) in found.items():
            placed.add(own[at])
            handle = graph.node(node)
            row = covered.setdefault((evidence, "", ""), [0, 0.0, 0, 0])
            row[0] += 1
            row[1] += profile.events[own[at]].duration / 1e12
            row[2] += bool(handle.path)
            row[3] += bool(handle.frames)
    for i, event in enumerate(profile.events):
        if i not in placed:
            row = covered.setdefault(
                ("", event.name, "no instruction of the compiled module has this name"), [0, 0.0, 0, 0]
            )
            row[0] += 1
            row[1] += event.duration / 1e12
    if covered:
        capture.add(coverage_table(covered))
    return bool(placed)


def _times(capture: Capture, stage: int, found: dict[int, tuple[int, str]], events: list[Event]) -> None:
    durations: dict[int, list[int]] = {}
    starts: dict[int, int] = {}
    for at, (node, _) in found.items():
        durations.setdefault(node, []).append(events[at].duration)
        starts.setdefault(node, events[at].start)
    if not durations:
        return
    # How often the module ran: as often as most of its instructions did. One in a loop ran oftener.
    runs = Counter(map(len, durations.values())).most_common(1)[0][0]
    nodes = sorted(durations)
    first = min(starts.values())
    more = {
        "start": column(np.array([(starts[node] - first) / 1e3 for node in nodes]), "ns"),
        "least": column(np.array([min(durations[node]) / 1e3 for node in nodes]), "ns"),
        "most": column(np.array([max(durations[node]) / 1e3 for node in nodes]), "ns"),
        "runs": column(np.array([len(durations[node]) for node in nodes], dtype=np.int64)),
    }
    capture.add(times_table(stage, "node", nodes, [sum(durations[node]) / runs / 1e3 for node in nodes], more=more))


class _Joining:
    """Which instruction each event is: event -> (node, evidence)."""

    def __init__(self, graph: Graph, events: list[Event]) -> None:
        self.graph, self.events = graph, events
        self.by_name: dict[str, int] = {}
        for node in graph.nodes:
            self._name(node.index, node.name)
            for body in node.bodies:
                self._inside(node.index, body.graph)

    def _name(self, node: int, name: str) -> None:
        self.by_name.setdefault(_kernel_name(name), node)

    def _inside(self, node: int, graph: Graph) -> None:
        for inner in graph.nodes:
            self._name(node, inner.name)
            for body in inner.bodies:
                self._inside(node, body.graph)

    def run(self) -> dict[int, tuple[int, str]]:
        found = {
            i: (self.by_name[op], "by name")
            for i, event in enumerate(self.events)
            if (op := _kernel_name(event.op)) and op in self.by_name
        }
        if found:
            return found
        return self._in_order() or {
            i: (self.by_name[name], "by name")
            for i, event in enumerate(self.events)
            if (name := _kernel_name(event.name)) in self.by_name
        }

    def _in_order(self) -> dict[int, tuple[int, str]]:
        """Every run launches the kernels as scheduled. The names of some of them show that it is so."""
        kernels = [node.index for node in self.graph.nodes if node.op not in _NOT_KERNELS]
        if not kernels or not self.events or len(self.events) % len(kernels):
            return {}
        names = [_kernel_name(self.graph.node(node).name) for node in kernels]
        first: dict[str, str] = {}  # the kernel of equal instructions has the name of one of them: always the same
        shared: dict[str, int] = Counter(names)
        agreeing = told = 0
        for i, event in enumerate(self.events):
            own, name = names[i % len(kernels)], _kernel_name(event.name)
            if name in shared:
                told += 1
                agreeing += first.setdefault(own, name) == name and (own == name or name.rpartition("_")[0] in own)
        if agreeing * 2 < max(told, len(self.events) / 2):
            return {}
        return {i: (kernels[i % len(kernels)], "by order") for i in range(len(self.events))}


def _kernel_name(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _bare(module: str) -> str:
    """`jit_loss` of `jit_loss(1325)`."""
    return module.partition("(")[0]


def _plane(profile: Profile, plane: dict[int, list[Value]]) -> None:
    name = text(plane.get(2))
    stats = {number: text(found.get(2)) for number, found in _map(plane, 5)}
    if name.startswith("/host:metadata"):
        for _, found in _map(plane, 4):
            for stat in map(message, messages(found.get(5))):
                if stats.get(integer(stat.get(1))) in ("Hlo Proto", "hlo_proto") and 6 in stat:
                    profile.modules[text(found.get(2))] = raw(stat[6])
        return
    is_device = bool(_DEVICE.match(name))
    events = {number: text(found.get(2)) for number, found in _map(plane, 4)}
    for line in map(message, messages(plane.get(3))):
        if text(line.get(2)) in _NO_WORK:
            continue
        profile.events += _events(line, events, stats, is_device)


def _events(
    line: dict[int, list[Value]], names: dict[int, str], stats: dict[int, str], is_device: bool
) -> Iterator[Event]:
    begin = integer(line.get(3)) * 1000
    for event in map(message, messages(line.get(4))):
        told = {"hlo_op": "", "hlo_module": ""}
        for stat in map(message, messages(event.get(4))):
            key = stats.get(integer(stat.get(1)), "")
            if key in told:
                told[key] = text(stat[5]) if 5 in stat else stats.get(integer(stat.get(7)), "")
        # On the CPU the instructions run on threads of the host, beside all that is no instruction.
        if told["hlo_op"] or (is_device and told["hlo_module"]):
            start, duration = begin + integer(event.get(2)), integer(event.get(3))
            yield Event(names.get(integer(event.get(1)), ""), told["hlo_op"], told["hlo_module"], start, duration)


def _map(plane: dict[int, list[Value]], field: int) -> Iterator[tuple[int, dict[int, list[Value]]]]:
    for entry in map(message, messages(plane.get(field))):
        if 2 in entry:
            yield integer(entry.get(1)), message(raw(entry[2]))
