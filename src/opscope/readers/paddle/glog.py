"""What a backward pass writes on stderr with GLOG_v=3 and more (or paddle.base.framework.vlog_guard).

Lines are known by their text, never by the source line that glog prints in front, which changes with each version:

    v3  X(0x…) Preparing                                 nodes, in the order they ran
    v4  X(0x…) Found pending node: Y(0x…)                edges
    v5  { Input: [ ( grad_out , [{ … Shape: 1, 10,       what came in: gradients, and tensors kept from the forward pass
    v6  grad_output_tensor info Place(cpu),float32, (1)  what goes along the edge before
    v7  … with slot: 0, rank: 0 's name is: w@Grad       from which slot and, `edge slot:`, into which

Up to 2023 a node was written `Node: X addr:0x…` and `Preparing GradNode:X addr:0x…`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from opscope.errors import BadInput
from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage
from opscope.readers.source import Options, Source

from .backward import Edge, GradNode, gradient_table, in_order, place, types_from_leaves
from .names import dtype

NAME = "paddle-log"
_SEARCHED = 256 << 20  # of a long log, to find the first line of a backward pass
_CHUNK = 1 << 20
_TELLING = re.compile(
    rb"Found pending node: \w|\w\(0x[0-9a-f]+\) Preparing|Preparing GradNode:|RunBackward: Start Backward"
)

_PREFIX = re.compile(r"[IWEF]\d{4,8} \d\d:\d\d:\d\d\.\d+ +(\d+) [^\s:\]]+:\d+\] ?")
_NAME_PTR = r"([\w:<>,]{1,200}?)\((0x[0-9a-fA-F]{1,16})\)"
_ADDR = r"([\w:<>]{1,200}?),? addr: ?(0x[0-9a-fA-F]{1,16})"
_START = re.compile(r"Start Backward|Run in Backward")
_PREPARING = (re.compile(_NAME_PTR + r" Preparing"), re.compile(r"Preparing GradNode: ?" + _ADDR))
_BEGIN = re.compile(_NAME_PTR + r" begin run")
_PENDING = (
    re.compile(_NAME_PTR + r" Found pending node: " + _NAME_PTR),
    re.compile(r"Node: ?" + _ADDR + r", Found pending node: ?" + _ADDR),
)
_ROOT = re.compile(r"of grad node: " + _NAME_PTR)
_TOTAL = re.compile(r"Tot\w*al GradNodes num is (\d{1,9})")
_SLOT = re.compile(r"grad_output_tensor with slot: (\d{1,6}), rank: (\d{1,6}) 's name is: ?(\S*)")
_EDGE_SLOT = re.compile(r"grad inputs for edge slot: (\d{1,6}), rank: (\d{1,6})")
_INFO = re.compile(r"grad_output_tensor info (Place\([^)]*\)),\s*([\w:]+),\s*\(([-\d, ]*)\)")

_ENTRY = re.compile(r"\s*\( (\w+) ?, \[\{")
_FIELD = re.compile(r"\s*(Name|Initialized|Dtype|Place|Shape): ?(.*)")
_MOST_NODES = 5_000_000


@dataclass
class _Tensor:
    """One entry of an Input or Output block."""

    argument: str
    name: str = ""
    dtype: str = ""
    place: str = ""
    shape: tuple[int, ...] | None = None


@dataclass
class _Pass:
    """One backward pass."""

    nodes: list[GradNode] = field(default_factory=list[GradNode])
    index: dict[str, int] = field(default_factory=dict[str, int])
    times: dict[int, float] = field(default_factory=dict[int, float])
    inputs: dict[int, list[_Tensor]] = field(default_factory=dict[int, list[_Tensor]])
    outputs: dict[int, list[_Tensor]] = field(default_factory=dict[int, list[_Tensor]])
    roots: set[int] = field(default_factory=set[int])
    total: int | None = None
    has_start: bool = False
    edges: int = 0

    def node(self, name: str, pointer: str) -> int:
        pointer = pointer.lower()
        found = self.index.get(pointer)
        if found is None:
            if len(self.nodes) >= _MOST_NODES:
                raise BadInput(f"more than {_MOST_NODES:,} nodes")
            found = self.index[pointer] = len(self.nodes)
            self.nodes.append(GradNode(name, pointer))
        return found


@dataclass
class _Thread:
    """What one thread of one process writes: its passes, and where it is in the text."""

    passes: list[_Pass] = field(default_factory=list[_Pass])
    open: list[_Pass] = field(default_factory=list[_Pass])  # a recomputed part has a pass inside a pass
    edge: Edge | None = None
    running: tuple[_Pass, int] | None = None
    block: list[_Tensor] | None = None
    tensor: _Tensor | None = None  # whose fields are being read

    def current(self) -> _Pass:
        if not self.open:
            self.begin(has_start=False)
        return self.open[-1]

    def begin(self, has_start: bool) -> None:
        new = _Pass(has_start=has_start)
        self.passes.append(new)
        self.open.append(new)

    def holding(self, pointer: str) -> _Pass:
        """The innermost pass that knows this node; passes inside it are over."""
        pointer = pointer.lower()
        for depth in range(len(self.open) - 1, -1, -1):
            if pointer in self.open[depth].index:
                del self.open[depth + 1 :]
                return self.open[depth]
        return self.current()


def match(source: Source) -> bool:
    if source.is_folder or b"\0" in source.head or source.head.lstrip()[:1] in (b"{", b"["):
        return False
    with source.open() as file:
        before = b""
        for _ in range(_SEARCHED // _CHUNK):
            chunk = file.read(_CHUNK)
            if not chunk:
                return False
            if _TELLING.search(before + chunk):
                return True
            before = chunk[-256:]
    return False


def read(source: Source, options: Options) -> Capture:
    try:
        return _capture(_threads(source.lines()))
    except BadInput as error:
        raise error.named(source.name) from None


def _capture(threads: list[_Thread]) -> Capture:
    passes = [entry for thread in threads for entry in thread.passes if entry.nodes]
    if not passes:
        raise BadInput(
            "a log of Paddle without a single gradient node: run with GLOG_v=4 or more (6 for shapes, 7 for slots), "
            "or capture live with opscope.trace(y, how='autograd')"
        )
    capture = Capture(pools=Pools(), origin=Origin(format=NAME, framework="paddle", how="glog"))
    for number, entry in enumerate(passes):
        builder = GraphBuilder(capture.pools)
        warnings = list(_finish(builder, entry))
        placed = place(builder, entry.nodes, in_order(entry.nodes, entry.times))
        name = "backward" if len(passes) == 1 else f"backward {number + 1}"
        table = gradient_table(placed.gradients, number)
        if table is not None:
            capture.tables["gradients" if number == 0 else f"gradients {number + 1}"] = table
        capture.stages.append(Stage(name, builder.freeze(), warnings=tuple(warnings)))
    return capture


# -- lines ----------------------------------------------------------------------------------------


def _threads(lines: Iterable[str]) -> list[_Thread]:
    threads: dict[str, _Thread] = {}
    thread = _Thread()
    for line in lines:
        found = _PREFIX.search(line)
        if found is not None:
            thread = threads.setdefault(found[1], thread if not threads and not thread.passes else _Thread())
            thread.block = thread.tensor = None
            line = line[found.end() :]
        _line(thread, line)
    return list(threads.values()) or [thread]


def _line(thread: _Thread, line: str) -> None:
    if thread.block is not None and _in_block(thread, line):
        return
    if "Input: [" in line or "Output: [" in line:
        _open_block(thread, line)
    elif "grad_output_tensor " in line or "edge slot" in line:
        _about_edge(thread, line)
    elif "0x" in line:
        _about_nodes(thread, line)
    elif _START.search(line) is not None:
        # `Run in Backward` and `Start Backward` both stand at the beginning, the second one in every version.
        if "Start Backward" in line or "Run in Backward" not in line:
            thread.begin(has_start=True)
    elif (found := _TOTAL.search(line)) is not None:
        thread.current().total = int(found[1])


def _about_nodes(thread: _Thread, line: str) -> None:
    for pattern in _PENDING:
        if (found := pattern.search(line)) is not None:
            entry = thread.holding(found[2])
            source, target = entry.node(found[1], found[2]), entry.node(found[3], found[4])
            thread.edge = Edge(target)
            entry.nodes[source].edges.append(thread.edge)
            entry.edges += 1
            return
    for pattern in (*_PREPARING, _BEGIN):
        if (found := pattern.search(line)) is not None:
            entry = thread.holding(found[2])
            index = entry.node(found[1], found[2])
            entry.times.setdefault(index, float(len(entry.times)))
            thread.running = entry, index
            thread.edge = None
            return
    if (found := _ROOT.search(line)) is not None and "Create Value" in line:
        entry = thread.current()
        entry.roots.add(entry.node(found[1], found[2]))


def _about_edge(thread: _Thread, line: str) -> None:
    edge = thread.edge
    if edge is None:
        return
    if (found := _SLOT.search(line)) is not None:
        edge.out_slot, edge.out_rank = int(found[1]), int(found[2])
        edge.name = "" if found[3] == "@Grad" else found[3]
    elif (found := _EDGE_SLOT.search(line)) is not None:
        edge.in_slot, edge.in_rank = int(found[1]), int(found[2])
    elif (found := _INFO.search(line)) is not None:
        edge.place, edge.dtype, edge.evidence = found[1], dtype(found[2]), "reported"
        edge.shape = _shape(found[3])


def _open_block(thread: _Thread, line: str) -> None:
    if thread.running is None:
        return
    entry, index = thread.running
    kinds = entry.inputs if "Input: [" in line else entry.outputs
    thread.block = kinds[index] = []  # printed twice, without and with the outputs: the same both times
    thread.tensor = None


def _in_block(thread: _Thread, line: str) -> bool:
    """Whether the line is part of an Input or Output block of a gradient node."""
    assert thread.block is not None
    if "Output: [" in line or "Input: [" in line:
        return False
    found = _ENTRY.match(line)
    if found is not None:
        thread.tensor = _Tensor(found[1])
        thread.block.append(thread.tensor)
        return True
    stripped = line.strip()
    if stripped.startswith("ADInfo"):
        thread.tensor = None  # what follows is about its gradient
    elif (field := _FIELD.match(line)) is not None:
        if thread.tensor is not None:
            _take(thread.tensor, field[1], field[2].rstrip().removesuffix(","))
    elif thread.tensor is None and stripped in ("}, {", "},{", "{") and thread.block and not line.startswith("\t\t"):
        thread.tensor = _Tensor(thread.block[-1].argument)  # the next of a list
        thread.block.append(thread.tensor)
    return True


def _take(tensor: _Tensor, key: str, text: str) -> None:
    if key == "Name":
        tensor.name = "" if text == "None" or re.fullmatch(r"Tensor_[0-9a-f]+", text) else text
    elif key == "Dtype":
        tensor.dtype = dtype(text)
    elif key == "Place":
        tensor.place = text
    elif key == "Shape":
        tensor.shape = _shape(text)


def _shape(text: str) -> tuple[int, ...] | None:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(re.fullmatch(r"-?\d{1,18}", part) for part in parts):
        return None
    return tuple(map(int, parts))


# -- what the pass adds up to -----------------------------------------------------------------------


def _finish(builder: GraphBuilder, entry: _Pass) -> Iterator[str]:
    """Types from the blocks where the edges do not say, saved tensors, and what is missing."""
    pools = builder.pools
    saved: dict[tuple[str, str, tuple[int, ...] | None], int] = {}
    for index, tensors in entry.outputs.items():
        edges = [edge for edge in entry.nodes[index].edges if edge.target is not None]
        known = [tensor for tensor in tensors if tensor.shape is not None and tensor.dtype]
        if len(known) == len(edges):
            for edge, tensor in zip(edges, known, strict=True):
                _fill(edge, tensor)
    arriving: dict[int, list[Edge]] = {}
    for node in entry.nodes:
        for edge in node.edges:
            if edge.target is not None:
                arriving.setdefault(edge.target, []).append(edge)
    for index, tensors in entry.inputs.items():
        gradients = [tensor for tensor in tensors if _is_gradient(tensor.argument)]
        for edge in arriving.get(index, []):
            if len(gradients) == 1:
                _fill(edge, gradients[0], named=False)
        kept: list[tuple[str, int]] = []
        for tensor in tensors:
            if not _is_gradient(tensor.argument) and tensor.shape is not None:
                key = (tensor.name or f"{index}.{tensor.argument}", tensor.dtype, tensor.shape)
                if key not in saved:
                    saved[key] = builder.value(pools.type(tensor.dtype, tensor.shape), name=tensor.name)
                kept.append((tensor.argument, saved[key]))
        entry.nodes[index].saved = kept
    for node in entry.nodes:
        for edge in node.edges:
            target = None if edge.target is None else entry.nodes[edge.target]
            if target is not None and target.is_leaf and edge.name and not target.leaf:
                target.leaf = edge.name.removesuffix("@Grad")
    types_from_leaves(entry.nodes)
    yield from _missing(entry)


def _is_gradient(argument: str) -> bool:
    return argument.startswith("grad") or argument.endswith("_grad")


def _fill(edge: Edge, tensor: _Tensor, named: bool = True) -> None:
    if edge.shape is None and tensor.shape is not None:
        edge.dtype, edge.shape, edge.place, edge.evidence = tensor.dtype, tensor.shape, tensor.place, "reported"
    if named and tensor.name and not edge.name:
        edge.name = tensor.name


def _missing(entry: _Pass) -> Iterator[str]:
    count = len(entry.nodes)
    if not entry.has_start:
        yield "the log begins in the middle of a backward pass: what came before is missing"
    if entry.total is not None and count < entry.total + 1:
        yield f"the log has {count} of the {entry.total + 1} nodes: it was cut off, or other output is mixed into it"
    elif entry.times and len(entry.times) < count:
        yield f"{count - len(entry.times)} of {count} nodes were found but not seen running: the log was cut off"
    if entry.nodes and not entry.edges and count > 1:
        yield "the log has no edges, only the order of the nodes: run with GLOG_v=4 or more"
        return
    edges = [edge for node in entry.nodes for edge in node.edges]
    unknown = sum(edge.shape is None for edge in edges)
    if edges and unknown:
        word = "no shapes" if unknown == len(edges) else f"no shape for {unknown} of {len(edges)} edges"
        yield f"the log has {word}: run with GLOG_v=6 or more"
    silent = [i for i in entry.times if not entry.nodes[i].edges and not entry.nodes[i].is_leaf]
    if silent:
        named = entry.nodes[silent[-1]].name
        yield f"the log was cut off: {len(silent)} nodes ({named}) ran, but where their gradients go is not there"
    reached = {edge.target for edge in edges} | entry.roots
    loose = [i for i in range(count) if i not in reached] if entry.roots else []
    if loose:
        yield f"{len(loose)} nodes have no edge that leads to them: lines of the log are missing"
