"""One compilation as stages: from Dynamo's graph to the kernels, each joined to the one it was made from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from opscope.ir import PHASES, Capture, GraphBuilder, Listing, Pools, Stage, StageLink, add_listings
from opscope.ir.columns import frozen

from . import graph as graphs
from . import kernels, modules, printed, wrapper
from .log import CompileId, Entry
from .printed import Node, Printed

_GRADIENT = re.compile(r"GradAOTOutput\(grad_of=PlainAOTInput\(idx=(\d{1,6})\)\)")
_NAMES = {
    "dynamo_output_graph": "dynamo",
    "before_pre_grad_graph": "pre-grad before",
    "after_pre_grad_graph": "pre-grad",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
    "before_post_grad_graph": "post-grad before",
    "inductor_post_grad_graph": "post-grad",
}


@dataclass
class Part:
    """What Inductor made of one graph: forward, backward or inference."""

    before: str = ""
    after: str = ""
    code: str = ""
    file: str = ""
    reported: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    from_source: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # pre-grad name -> post-grad


@dataclass
class Compilation:
    """Everything that the log says of one compiled frame."""

    id: CompileId
    texts: dict[str, str] = field(default_factory=dict[str, str])  # by kind
    parts: list[Part] = field(default_factory=list[Part])
    sources: set[str] = field(default_factory=set[str])  # Dynamo's words for its inputs
    breaks: list[str] = field(default_factory=list[str])
    why: str = ""  # of a compilation that is not the first

    def add(self, entry: Entry) -> None:
        kind = entry.kind
        if kind == "before_post_grad_graph":
            self.parts.append(Part(before=entry.text))
        elif kind == "inductor_post_grad_graph":
            if not self.parts or self.parts[-1].after:
                self.parts.append(Part())
            self.parts[-1].after = entry.text
        elif kind == "inductor_output_code":
            if not self.parts or self.parts[-1].code:
                self.parts.append(Part())
            self.parts[-1].code = entry.text
            if isinstance(entry.data, dict):
                self.parts[-1].file = str(cast("dict[str, Any]", entry.data).get("filename", ""))
        elif kind == "inductor_provenance_tracking_node_mappings" and self.parts:
            mappings = _json(entry.text)
            self.parts[-1].reported = _lists(mappings.get("cppCodeToPost"))
            self.parts[-1].from_source = _lists(mappings.get("preToPost"))
        elif kind == "describe_source" and isinstance(entry.data, dict):
            self.sources.add(str(cast("dict[str, Any]", entry.data).get("source", "")))
        elif kind in _NAMES and entry.payload:
            self.texts[kind] = entry.text
        elif kind == "dynamo_graph_break_reason":
            self.breaks.append(entry.text)
        elif kind == "recompile_reasons":
            self.why = " ".join(entry.text.split())[:400]


def _json(text: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _lists(content: object) -> dict[str, list[str]]:
    if not isinstance(content, dict):
        return {}
    entries = cast("dict[object, object]", content)
    return {
        str(key): [name for name in cast("list[object]", names) if isinstance(name, str)]
        for key, names in entries.items()
        if isinstance(names, list)
    }


@dataclass
class _Made:
    """A stage that is there, with its names."""

    index: int
    printed: Printed
    built: graphs.Built
    owners: dict[str, modules.Path]


class Stages:
    """Adds the stages of one compilation after another to a capture."""

    def __init__(self, capture: Capture, suffixes: bool) -> None:
        self.capture, self.pools, self.suffixes = capture, capture.pools, suffixes
        self.scopes: dict[modules.Path, int] = {(): 0}

    def add(self, compilation: Compilation) -> None:
        _Compiled(self, compilation).run()

    def scope(self, path: modules.Path) -> int:
        if path not in self.scopes:
            self.scopes[path] = self.pools.scope(self.scope(path[:-1]), path[-1])
        return self.scopes[path]


class _Compiled:
    def __init__(self, stages: Stages, compilation: Compilation) -> None:
        self.stages, self.capture, self.pools = stages, stages.capture, stages.pools
        self.compilation = compilation
        self.suffix = f" [{compilation.id}]" if stages.suffixes else ""
        self.held: dict[str, modules.Held] = {}  # by name of an input of Dynamo's graph
        self.primals: dict[str, modules.Held] = {}  # the same by AOTAutograd's names
        self.course = modules.Course([], {})
        self.known: dict[str, modules.Path] = {}  # values that forward hands to backward
        self.reported: dict[str, modules.Path] = {}  # by name of an operator after Dynamo
        self.dynamo: _Made | None = None

    def run(self) -> None:
        texts = self.compilation.texts
        for kind in ("dynamo_output_graph", "before_pre_grad_graph", "after_pre_grad_graph"):
            if kind in texts:
                self.python_level(kind, texts[kind])
        joint = self.lowered("aot_joint_graph", self.dynamo)
        forward = self.lowered("aot_forward_graph", joint or self.dynamo)
        backward = self.lowered("aot_backward_graph", joint)
        inference = self.lowered("aot_inference_graph", self.dynamo)
        for part in self.compilation.parts:
            self.part(part, forward, backward, inference)

    # -- Dynamo's level -----------------------------------------------------------------------------

    def python_level(self, kind: str, text: str) -> None:
        graph = printed.parse(text)
        if graph is None:
            self.unreadable(kind)
            return
        by_spelling = {modules.spelled(source): source for source in self.compilation.sources}
        for entry in graph.inputs:
            source = by_spelling.get(modules.spelled(entry.name), "")
            if found := modules.held(source):
                self.held[entry.name] = found
        owners = modules.of_dynamo(graph, self.held)

        def named(name: str) -> graphs.Named:
            found = self.held.get(name)
            return graphs.Named(".".join(found.path), found.role) if found else graphs.Named(_short(name))

        made = self.stage(_NAMES[kind], text, graph, self.dynamo, owners, named, _forward)
        if self.dynamo is None:
            self.course = modules.course_of(graph, owners)
            for i, entry in enumerate(graph.inputs, start=1):
                if entry.name in self.held:
                    self.primals[f"primals_{i}"] = self.primals[f"arg{i - 1}_1"] = self.held[entry.name]
        self.dynamo = made
        for part in self.compilation.parts:
            for old, news in part.from_source.items():
                if old in owners:
                    self.reported.update(dict.fromkeys(news, owners[old]))

    # -- AOTAutograd's level --------------------------------------------------------------------------

    def lowered(self, kind: str, before: _Made | None) -> _Made | None:
        text = self.compilation.texts.get(kind)
        if text is None:
            return None
        graph = printed.parse(text)
        if graph is None:
            self.unreadable(kind)
            return None
        return self.lowered_stage(_NAMES[kind], text, graph, before, self.phases(kind, graph))

    def phases(self, kind: str, graph: Printed) -> dict[str, str]:
        """Forward, backward or recomputed, by name."""
        if kind == "aot_backward_graph":
            forward = self.known
            return {node.name: "recompute" if node.name in forward else "backward" for node in graph.nodes}
        if kind != "aot_joint_graph":
            return {}
        # Backward is what depends on a gradient that comes in, and what only such operators read.
        flow = kernels.Flow(graph)
        late = {entry.name for entry in graph.inputs if entry.name.startswith("tangents")}
        for name in flow.nodes:
            if any(read in late for read in flow.reads[name]):
                late.add(name)
        results = [next(iter(printed.names_in(text)), "") for text, comment in graph.outputs if "Grad" not in comment]
        needed: set[str] = set()
        todo = [name for name in results if name in flow.nodes]
        while todo:
            name = todo.pop()
            if name not in needed:
                needed.add(name)
                todo += [read for read in flow.reads[name] if read in flow.nodes]
        return {name: "backward" if name in late or name not in needed else "forward" for name in flow.nodes}

    def lowered_stage(
        self,
        name: str,
        text: str,
        graph: Printed,
        before: _Made | None,
        phases: Mapping[str, str],
        relate: Any = None,
    ) -> _Made:
        late = [name for name, phase in phases.items() if phase == "backward"]
        self.note_gradients(graph)
        owners = modules.of_lowered(graph, self.primals, self.course, self.known, self.reported, late)
        if not phases or "forward" in phases.values():
            self.known.update(owners)

        def named(name: str) -> graphs.Named:
            found = self.primals.get(name)
            if found:
                return graphs.Named(".".join(found.path), found.role)
            role = "gradient" if name.startswith("tangents") else "input"
            return graphs.Named(name, "activation" if name in self.known else role)

        def phase(node: Node) -> str:
            return phases.get(node.name, "forward")

        return self.stage(name, text, graph, before, owners, named, phase, relate)

    def note_gradients(self, graph: Printed) -> None:
        """What ends in the gradient of a parameter is work of the module that holds the parameter."""
        flow = kernels.Flow(graph)
        for text, comment in graph.outputs:
            found = _GRADIENT.search(comment)
            held = self.primals.get(f"primals_{int(found[1]) + 1}") if found else None
            name = next(iter(printed.names_in(text)), "")
            if held is not None and name in flow.nodes:
                base = flow.base(name)
                for known in (name, base):
                    if known in flow.nodes:
                        self.reported.setdefault(known, held.path[:-1])

    # -- Inductor's level -----------------------------------------------------------------------------

    def part(self, part: Part, forward: _Made | None, backward: _Made | None, inference: _Made | None) -> None:
        text = part.after or part.before
        graph = printed.parse(text) if text else None
        is_backward = graph is not None and any(entry.name.startswith("tangents") for entry in graph.inputs)
        word = "backward" if is_backward else "inference" if inference is not None else "forward"
        before = {"backward": backward, "inference": inference, "forward": forward}[word] or self.dynamo
        if part.before:
            first = printed.parse(part.before)
            if first is not None:
                before = self.lowered_stage(
                    f"post-grad before {word}", part.before, first, before, self.part_phases(first, is_backward)
                )
        if graph is None:
            return
        output = wrapper.parse(part.code) if part.code else None
        placed = kernels.place(graph, output, part.reported) if output is not None else []

        def group(builder: GraphBuilder, nodes: Mapping[str, int]) -> None:
            for launch, found in zip(output.launches if output else (), placed, strict=False):
                members = sorted({nodes[name] for name in found.nodes if name in nodes})
                kernel = launch.kernel
                builder.group(
                    "kernel",
                    members,
                    name=launch.target,
                    code=kernel.code if kernel is not None else "",
                    attrs={
                        "language": kernel.language if kernel is not None else "library",
                        "evidence": found.evidence,
                    },
                )

        post = self.lowered_stage(
            f"post-grad {word}", part.after or part.before, graph, before, self.part_phases(graph, is_backward), group
        )
        self.from_source(part, post)
        if output is not None and output.launches:
            self.launches(f"kernels {word}", part, output, placed, post)

    def part_phases(self, graph: Printed, is_backward: bool) -> dict[str, str]:
        if not is_backward:
            return {}
        return {node.name: "recompute" if node.name in self.known else "backward" for node in graph.nodes}

    def from_source(self, part: Part, post: _Made) -> None:
        """Inductor's own report of what became of Dynamo's operators."""
        if self.dynamo is None or not part.from_source:
            return
        pairs = [
            (self.dynamo.built.nodes[old], post.built.nodes[new])
            for old, news in part.from_source.items()
            for new in news
            if old in self.dynamo.built.nodes and new in post.built.nodes
        ]
        self.link(self.dynamo.index, post.index, pairs, "reported")

    def launches(
        self, name: str, part: Part, output: wrapper.Output, placed: list[kernels.Placed], post: _Made
    ) -> None:
        """The kernels in the order of the run, as a graph of buffers."""
        building = _Launches(self, output, placed, post)
        graph = building.build(part.code)
        self.capture.stages.append(Stage(f"{name}{self.suffix}", graph, post.index))
        add_listings(self.capture, len(self.capture.stages) - 1, building.listings(part.code))
        pairs = [
            (post.built.nodes[member], i)
            for i, found in enumerate(placed)
            for member in found.nodes
            if member in post.built.nodes
        ]
        evidence = {found.evidence for found in placed if found.nodes}
        self.link(
            post.index, len(self.capture.stages) - 1, pairs, "reported" if evidence == {"reported"} else "structure"
        )

    # -- shared ---------------------------------------------------------------------------------------

    def stage(
        self,
        name: str,
        text: str,
        graph: Printed,
        before: _Made | None,
        owners: dict[str, modules.Path],
        named: Any,
        phase: Any,
        relate: Any = None,
    ) -> _Made:
        way = graphs.Way(
            self.pools,
            named=named,
            phase=phase,
            scope=lambda node: self.stages.scope(owners.get(node.name, ())),
            relate=relate,
        )
        built = graphs.build(graph, way, text)
        warnings = _not_understood(graph)
        index = len(self.capture.stages)
        if before is not None and relate is None and _same(before.printed, graph):
            built.graph = before.built.graph  # equal graphs are stored once
        self.capture.stages.append(
            Stage(
                f"{name}{self.suffix}",
                built.graph,
                before.index if before else None,
                warnings=warnings,
            )
        )
        add_listings(self.capture, index, {"native": built.listing})
        if before is not None:
            pairs = [(before.built.nodes[n], i) for n, i in built.nodes.items() if n in before.built.nodes]
            self.link(before.index, index, pairs, "name")
        return _Made(index, graph, built, owners)

    def link(self, before: int, after: int, pairs: Iterable[tuple[int, int]], evidence: str) -> None:
        unique = sorted(set(pairs))
        if unique:
            source, target = (frozen(column) for column in zip(*unique, strict=True))
            self.capture.stage_links.append(StageLink(before, after, "lowers", source, target, evidence))

    def unreadable(self, kind: str) -> None:
        self.capture.warnings.append(f"compilation {self.compilation.id}: its {kind} holds no graph that can be read")


class _Launches:
    """Launches as operators: what they read and write are buffers."""

    def __init__(self, owner: _Compiled, output: wrapper.Output, placed: list[kernels.Placed], post: _Made) -> None:
        self.owner, self.output, self.placed, self.post = owner, output, placed, post
        self.pools: Pools = owner.pools
        self.builder = GraphBuilder(self.pools)
        self.values: dict[str, int] = {}
        self.storages: dict[str, int] = {}

    def build(self, code: str) -> Any:
        inputs = {entry.name: entry.annotation for entry in self.post.printed.inputs}
        for name in self.output.inputs:
            known = self.owner.primals.get(name)
            self.values[name] = self.builder.input(
                self.type_of(name, inputs.get(name, "")),
                name=".".join(known.path) if known else name,
                role=known.role if known else "activation" if name in self.owner.known else "input",
            )
        for index, launch in enumerate(self.output.launches):
            self.launch(index, launch)
        self.builder.outputs += [self.values[name] for name in self.output.returned if name in self.values]
        return self.builder.freeze()

    def type_of(self, name: str, text: str = "") -> int:
        found = graphs.annotation(text) if text else None
        if found is not None:
            return self.pools.type(found.dtype, found.shape)
        buffer = self.output.buffers.get(name)
        return self.pools.type(buffer.dtype, buffer.shape) if buffer and buffer.shape is not None else 0

    def launch(self, index: int, launch: wrapper.Launch) -> None:
        found, kernel = self.placed[index], launch.kernel
        about = found.nodes or [found.serves]
        owners = [self.post.owners[name] for name in about if name in self.post.owners]
        members = [self.post.built.nodes[name] for name in about if name in self.post.built.nodes]
        graph = self.post.built.graph
        reads = [name for name in dict.fromkeys(launch.reads) if self.value_of(name) is not None]
        attrs: dict[str, Any] = {"kernel": launch.target, "operators": found.nodes, "evidence": found.evidence}
        if found.serves:
            attrs["copies for"] = found.serves
        if kernel is not None:
            attrs["language"] = kernel.language
        phases = [int(graph.node_phase[i]) for i in members]
        node = self.builder.node(
            _kernel_op(launch),
            [cast("int", self.value_of(name)) for name in reads],
            name=launch.handle or launch.target,
            scope=self.owner.stages.scope(_shared(owners)),
            stack=next((stack for i in reversed(members) if (stack := int(graph.node_stack[i]))), 0),
            attrs=attrs,
            phase=PHASES[max(set(phases), key=phases.count)] if phases else "other",
        )
        self.builder.group(
            "kernel",
            [node],
            name=launch.target,
            code=kernel.code if kernel is not None else "",
            attrs={"language": _language(launch)},
        )
        for name in dict.fromkeys(launch.writes):
            value = self.builder.output(node, self.type_of(name), name=name)
            root = self.root(name)
            if root in self.storages:
                self.builder.set_storage(value, self.storages[root])
            self.storages.setdefault(root, value)
            self.values[name] = value

    def root(self, name: str) -> str:
        """The buffer whose memory a buffer has."""
        for _ in range(10_000):
            buffer = self.output.buffers.get(name)
            if buffer is None or not buffer.reuses:
                return name
            name = buffer.reuses
        return name

    def value_of(self, name: str) -> int | None:
        for _ in range(10_000):
            if name in self.values:
                return self.values[name]
            buffer = self.output.buffers.get(name)
            if buffer is None:
                return None
            name = buffer.reuses or (buffer.picked[0] if buffer.picked else "")
        return None

    def listings(self, code: str) -> dict[str, Listing]:
        return {"code": Listing(code, [(launch.line, i) for i, launch in enumerate(self.output.launches)])}


def _forward(node: Node) -> str:
    return "forward"


def _language(launch: wrapper.Launch) -> str:
    return launch.kernel.language if launch.kernel is not None else "library"


def _kernel_op(launch: wrapper.Launch) -> str:
    """`triton_poi_fused_add_mul`: without the number, so that equal kernels have one name."""
    if launch.kernel is None:
        return launch.target.removeprefix("torch.ops.").removesuffix(".default")
    return launch.target.rstrip("0123456789").rstrip("_") or launch.target


def _shared(paths: list[modules.Path]) -> modules.Path:
    """The module of a kernel: the innermost one that all its operators are in."""
    if not paths:
        return ()
    shared = paths[0]
    for path in paths[1:]:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    return shared


def _short(name: str) -> str:
    return name.strip("_").removeprefix("L_")


def _same(a: Printed, b: Printed) -> bool:
    """Do two texts print one graph? Comments and places do not count."""

    def rows(graph: Printed) -> list[tuple[Any, ...]]:
        return [(node.name, node.target, tuple(node.arguments), node.annotation) for node in graph.nodes]

    return (
        not a.inner
        and not b.inner
        and [(entry.name, entry.annotation) for entry in a.inputs] == [(e.name, e.annotation) for e in b.inputs]
        and rows(a) == rows(b)
        and [text for text, _ in a.outputs] == [text for text, _ in b.outputs]
    )


def _not_understood(graph: Printed) -> tuple[str, ...]:
    if not graph.not_understood:
        return ()
    lines = ", ".join(map(str, graph.not_understood[:5]))
    return (f"{len(graph.not_understood)} lines of the printed graph could not be read (lines {lines} …)",)
