"""One compilation as stages: from Dynamo's graph to the kernels, each joined to the one it was made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opscope.ir import Capture, Graph, GraphBuilder, Listing, Pools, Stage, StageLink, add_listings
from opscope.ir.columns import frozen
from opscope.readers.torch.names import base_name, op_name

from . import align, autograd, kernels, modules, printed, wrapper
from . import graph as graphs
from .compilation import GRAPHS, Compilation, Part, Text, Told
from .flow import LIKE_VIEWS, Flow, flow_of
from .launches import GUESS, Launches, group, shortened
from .printed import Node, Printed
from .runs import Owned, prefix

_GRADIENT = re.compile(r"GradAOTOutput\(grad_of=PlainAOTInput\(idx=(\d{1,6})\)\)")
_ADDRESS = re.compile(r"# graph id: \d{1,20}")  # in the memory of one process
_NOTHING = Told()
_CALL = graphs.CALL


@dataclass
class Made:
    """A stage that is there, with its names."""

    index: int
    printed: Printed
    built: graphs.Built
    owners: dict[str, modules.Path]
    guessed: set[str]  # of the owners
    phases: dict[str, str]
    is_python: bool  # Dynamo's graph, or Inductor's passes on it


class Stages:
    """Adds the stages of one compilation after another to a capture."""

    def __init__(self, capture: Capture, suffixes: bool) -> None:
        self.capture, self.pools, self.suffixes = capture, capture.pools, suffixes
        self.classes: dict[modules.Path, str] = {}
        self.scopes: dict[modules.Path, int] = {(): 0}
        self.names: set[str] = set()
        self.added: dict[tuple[Any, ...], list[int]] = {}  # stages by what they were made from
        self.backward: dict[str, Made] = {}  # backward graphs by AOTAutograd's number

    def add(self, compilation: Compilation) -> None:
        """Ranks compile the same again and again: what is equal is stored once."""
        self.classes.update(compilation.classes)
        key = _content(compilation)
        known = self.added.get(key)
        if known is not None:
            self.repeat(known, compilation)
            return
        first = len(self.capture.stages)
        Compiled(self, compilation).run()
        self.added[key] = list(range(first, len(self.capture.stages)))

    def repeat(self, known: list[int], compilation: Compilation) -> None:
        stages = self.capture.stages
        moved = {old: len(stages) + i for i, old in enumerate(known)}
        for old in known:
            stage = stages[old]
            name = stage.name.rpartition(" [")[0] or stage.name
            after = None if stage.after is None else moved.get(stage.after)
            stages.append(replace(stage, name=self.free(name, self.suffix(compilation)), after=after))
        for table in list(self.capture.tables.values()):
            if table.stage in moved:
                self.capture.add(replace(table, stage=moved[table.stage]))
        for link in list(self.capture.stage_links):
            if link.before in moved and link.after in moved:
                self.capture.stage_links.append(replace(link, before=moved[link.before], after=moved[link.after]))

    def free(self, name: str, suffix: str) -> str:
        """The name of a new stage. A log may hold the same part of a compilation twice."""
        number, found = 2, f"{name}{suffix}"
        while found in self.names:
            number, found = number + 1, f"{name} #{number}{suffix}"
        self.names.add(found)
        return found

    def suffix(self, compilation: Compilation) -> str:
        return f" [{compilation}]" if self.suffixes else ""

    def scope(self, path: modules.Path) -> int:
        if path not in self.scopes:
            self.scopes[path] = self.pools.scope(self.scope(path[:-1]), path[-1], self.classes.get(path, ""))
        return self.scopes[path]


def _content(compilation: Compilation) -> tuple[Any, ...]:
    def of(text: Text | None) -> Any:
        return (_ADDRESS.sub("", text.text), text.name, repr(text.told)) if text is not None else None

    parts = [
        (
            *map(of, (part.before, part.after, *part.passes)),
            _ADDRESS.sub("", part.code),
            repr(part.reported),
            repr(part.why),
        )
        for part in compilation.parts
    ]
    return (
        tuple((kind, of(text)) for kind, text in compilation.texts.items()),
        tuple(map(of, compilation.passes)),
        tuple(parts),
        frozenset(compilation.sources),
    )


class Compiled:
    """One compilation."""

    def __init__(self, stages: Stages, compilation: Compilation) -> None:
        self.stages, self.capture, self.pools = stages, stages.capture, stages.pools
        self.compilation = compilation
        self.suffix = stages.suffix(compilation)
        self.held: dict[str, modules.Held] = {}  # by name of an input of Dynamo's graph
        self.primals: dict[str, modules.Held] = {}  # the same by AOTAutograd's names
        self.course = modules.Course([], {}, [])
        self.known: dict[str, modules.Path] = {}  # values that forward hands to backward
        self.paired: dict[str, tuple[Node, modules.Path]] = {}  # operators of the joint graph
        self.reported: dict[str, modules.Path] = {}  # by name of an operator after Dynamo
        self.dynamo: Made | None = None
        self.without_line: set[str] = set()  # operators made from those of which Dynamo gives no line
        self.doubtful: set[str] = set()  # operators of the joint graph whose module is a guess
        self.top: tuple[Printed, Owned] | None = None  # Dynamo's own graph, and its modules
        self.lines: dict[tuple[str, int], dict[modules.Path, None]] = {}  # the modules whose operators are on a line

    def run(self) -> None:
        texts = self.compilation.texts
        self.dynamo = self.lowered("compiled_autograd_graph", None)
        for kind in ("dynamo_output_graph", "before_pre_grad_graph", "after_pre_grad_graph"):
            if kind == "after_pre_grad_graph":
                for text in self.passes("pre_grad"):
                    self.python_level(f"pre-grad: {text.name}", text)
            if kind in texts:
                self.python_level(GRAPHS[kind], texts[kind])
        joint = self.lowered("aot_joint_graph", self.dynamo)
        inference = self.lowered("aot_inference_graph", self.dynamo) if joint is None else None
        last = joint or inference
        for text in self.passes("joint"):
            made = self.lowered_text(f"joint: {text.name}", text, last or self.dynamo, joint is not None)
            last = made or last
        forward = self.lowered("aot_forward_graph", last if joint else self.dynamo)
        backward = self.lowered("aot_backward_graph", last if joint else None)
        inference = last if joint is None else None
        if backward is not None:
            self.stages.backward.update((number, backward) for number in self.compilation.numbers)
        for part in self.compilation.parts:
            self.part(part, forward, backward, inference)

    @property
    def is_autograd(self) -> bool:
        """Compiled autograd: the backward pass of a whole step as one graph."""
        return self.compilation.id.autograd >= 0

    def passes(self, level: str) -> list[Text]:
        return [text for text in self.compilation.passes if text.level == level]

    # -- Dynamo's level -----------------------------------------------------------------------------

    def python_level(self, name: str, content: Text) -> None:
        graph = printed.parse(content.text)
        if graph is None:
            self.unreadable(name)
            return
        told = content.told or _NOTHING
        by_spelling = {modules.spelled(source): source for source in self.compilation.sources}
        for entry in graph.inputs:
            source = by_spelling.get(modules.spelled(entry.name), "")
            if found := told.inputs.get(entry.name) or modules.held(source, self.compilation.roots):
                self.held[entry.name] = found
        owned = self.completed(graph, modules.of_dynamo(graph, self.held, self.compilation.calls), told)
        inlined = autograd.inlined(graph, self.stages.backward) if self.is_autograd else {}
        if inlined:
            owned = Owned({**owned.owners, **{name: origin.owner for name, origin in inlined.items()}}, owned.guessed)

        def named(name: str) -> graphs.Named:
            found = self.held.get(name)
            return graphs.Named(found.name, found.role) if found else graphs.Named(_short(name))

        made = self.stage(name, content, graph, self.dynamo, owned, {}, named, is_python=True)
        owners = owned.owners
        for backward, pairs in autograd.links(inlined, made.built.nodes).items():
            self.link(backward, made.index, pairs, "name")
        if self.dynamo is None:
            self.top = (graph, owned)
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

    def lowered(self, kind: str, before: Made | None) -> Made | None:
        content = self.compilation.texts.get(kind)
        if content is None:
            return None
        is_joint = kind == "aot_joint_graph"
        return self.lowered_text(GRAPHS[kind], content, before, is_joint, kind == "aot_backward_graph")

    def lowered_text(
        self, name: str, content: Text, before: Made | None, is_joint: bool, is_backward: bool = False
    ) -> Made | None:
        graph = printed.parse(content.text)
        if graph is None:
            self.unreadable(name)
            return None
        phases = _joint_phases(graph) if is_joint else self.backward_phases(graph) if is_backward else {}
        aligned = {} if is_backward or self.paired or self.is_autograd else self.aligned(graph, phases)
        if self.is_autograd and self.top is not None:
            for node, source in autograd.same(self.top[0], graph):
                node.place = node.place or source.place
                aligned[node.name] = source.name
                if source.name in self.top[1].owners:
                    self.paired[node.name] = node, self.top[1].owners[source.name]
        made = self.lowered_stage(name, content, graph, before, phases)
        if is_joint:
            self.paired.update(
                (node.name, (node, made.owners[node.name])) for node in graph.nodes if node.name in made.owners
            )
            self.doubtful |= made.guessed
        if aligned and before is not None:
            pairs = [
                (before.built.nodes[source], made.built.nodes[name])
                for name, source in aligned.items()
                if source in before.built.nodes and name in made.built.nodes
            ]
            self.link(before.index, made.index, pairs, "structure")
        return made

    def aligned(self, graph: Printed, phases: Mapping[str, str]) -> dict[str, str]:
        """By name of an operator below Dynamo's graph: the one there that it was made from."""
        if self.top is None:
            return {}
        top, _ = self.top
        plain = not any(entry.name.startswith("primals_") for entry in graph.inputs)
        below = {entry.name: f"arg{i}_1" if plain else f"primals_{i + 1}" for i, entry in enumerate(top.inputs)}
        above, flow = align.upper(top, below), flow_of(graph)
        late = {name for name, phase in phases.items() if phase == "backward"}
        found = align.forward(above, graph, flow, late)
        reported = self.reported_positions(above, flow, late)
        found.made.update(reported)
        found.doubtful -= reported.keys()
        if late:
            behind = align.backward(above, graph, flow, late, found.made, _gradients_of(graph, flow))
            found.made.update(behind.made)
            found.doubtful |= behind.doubtful
        self.pair(graph, above, found, late)
        return {name: above.names[position] for name, position in found.made.items()}

    def pair(self, graph: Printed, above: align.Upper, found: align.Aligned, late: set[str]) -> None:
        """What was made from an operator is in its module; the sum of two gradients in what theirs have in common."""
        assert self.top is not None
        owned, flow = self.top[1], flow_of(graph)
        # A doubt is about the operators beside it on one line: where these are in one module, it changes nothing.
        mixed = [len({owned.owners.get(above.names[i]) for i in range(*run)}) > 1 for run in above.runs]
        is_mixed = [flag for run, flag in zip(above.runs, mixed, strict=True) for _ in range(*run)]
        for node in graph.nodes:
            if align.is_sum(flow, node.name, late) and len({found.made.get(r) for r in flow.reads[node.name]}) == 2:
                found.made.pop(node.name, None)
                around = [self.paired[read][1] for read in flow.reads[node.name] if read in self.paired]
                if around:
                    self.paired[node.name] = node, prefix(around)
                if self.doubtful.intersection(flow.reads[node.name]):
                    self.doubtful.add(node.name)
                continue
            source = above.names[found.made[node.name]] if node.name in found.made else ""
            if source and above.places[found.made[node.name]] is None:
                self.without_line.add(node.name)
            if source in owned.owners:
                self.paired[node.name] = node, owned.owners[source]
                is_open = node.name in found.doubtful and is_mixed[found.made[node.name]]
                if source in owned.guessed or is_open:
                    self.doubtful.add(node.name)

    def reported_positions(self, above: align.Upper, flow: Flow, late: set[str]) -> dict[str, int]:
        """What Inductor reports, where its operators are still called as they were."""
        position = {name: i for i, name in enumerate(above.names)}
        return {
            new: position[old]
            for part in self.compilation.parts
            for old, news in part.from_source.items()
            for new in news
            if old in position and new in flow.nodes and new not in late
        }

    def backward_phases(self, graph: Printed) -> dict[str, str]:
        return {node.name: "recompute" if node.name in self.known else "backward" for node in graph.nodes}

    def lowered_stage(
        self,
        name: str,
        content: Text,
        graph: Printed,
        before: Made | None,
        phases: dict[str, str],
        relate: Any = None,
    ) -> Made:
        told = content.told or _NOTHING
        phases = {**phases, **told.phases}
        for node in graph.nodes:
            if node.place is None and node.name in told.lines:
                node.place = told.lines[node.name]
            if node.place is None and node.name in self.without_line:
                node.place, node.borrowed = self.compilation.called, _CALL
            if node.place is None and self.is_autograd and node.name in self.paired:
                node.place = self.paired[node.name][0].place
        flow_of(graph).borrow_places()
        self.primals.update(told.inputs)
        late = {name for name, phase in phases.items() if phase == "backward"}
        sure = {**self.gradients(graph), **self.same_operators(graph)}
        sure.update((name, path) for name, path in self.reported.items() if name not in late)
        if before is not None and not before.is_python:
            for new, old in _replaced(before.printed, graph).items():
                if old in before.owners and new not in sure:
                    sure[new] = before.owners[old]
                    self.doubtful.update([new] if old in before.guessed else ())
        sure.update({name: path for name, path in told.modules.items() if not self.is_autograd or name not in sure})
        owned = modules.of_lowered(graph, self.primals, self.course, self.known, sure, late)
        doubtful = {node.name for node in graph.nodes if node.name in sure and node.name in self.doubtful}
        owned = self.completed(graph, Owned(owned.owners, owned.guessed | doubtful), told)
        owners = owned.owners
        self.known.update((name, path) for name, path in owners.items() if phases.get(name, "forward") == "forward")

        def named(name: str) -> graphs.Named:
            found = self.primals.get(name)
            if found:
                return graphs.Named(found.name, found.role)
            role = "gradient" if name.startswith("tangents") else "input"
            return graphs.Named(name, "activation" if name in self.known else role)

        return self.stage(name, content, graph, before, owned, phases, named, relate)

    def completed(self, graph: Printed, owned: Owned, told: Told) -> Owned:
        """What is the code of one function has its name where no module is known."""
        if self.is_autograd:  # torch knows no modules there
            owners, guessed = {**told.modules, **owned.owners}, owned.guessed
        else:
            owners, guessed = {**owned.owners, **told.modules}, owned.guessed - told.modules.keys()
        if not owners and (whole := self.compilation.whole):
            return Owned({node.name: whole for node in graph.nodes}, set())
        return Owned(owners, guessed)

    def same_operators(self, graph: Printed) -> dict[str, modules.Path]:
        """Operators that the joint graph has under the same name, on the same line: AOTAutograd's own pairing."""
        found: dict[str, modules.Path] = {}
        for node in graph.nodes:
            paired = self.paired.get(node.name)
            if paired is None or paired[0].place != node.place:
                continue
            same = paired[0].target == node.target
            if same or all(base_name(op_name(one.target)) in LIKE_VIEWS for one in (paired[0], node)):
                found[node.name] = paired[1]
        return found

    def gradients(self, graph: Printed) -> dict[str, modules.Path]:
        """What ends in the gradient of a parameter is work of the module that holds the parameter."""
        flow = flow_of(graph)
        found: dict[str, modules.Path] = {}
        for text, comment in graph.outputs:
            gradient = _GRADIENT.search(comment)
            held = self.primals.get(f"primals_{int(gradient[1]) + 1}") if gradient else None
            name = next(iter(printed.names_in(text)), "")
            if held is not None and name in flow.nodes:
                for known in (name, flow.base(name)):
                    if known in flow.nodes and found.setdefault(known, held.module) != held.module:
                        self.doubtful.add(known)  # two parameters have the same gradient, which is computed once
        return found

    # -- Inductor's level -----------------------------------------------------------------------------

    def part(self, part: Part, forward: Made | None, backward: Made | None, inference: Made | None) -> None:
        final = part.after or part.before
        graph = printed.parse(final.text) if final else None
        is_backward = graph is not None and any(entry.name.startswith("tangents") for entry in graph.inputs)
        is_backward = is_backward or part.way == "backward"
        word = "backward" if is_backward else "inference" if inference is not None else part.way or "forward"
        before = {"backward": backward, "inference": inference}.get(word, forward) or self.dynamo
        output = wrapper.parse(part.code) if part.code else None
        if graph is None or final is None:
            if output is not None and output.launches:
                Launches(self, part, output, [], None).add(f"kernels {word}")
            return
        for name, content in self.levels(part, word):
            printed_graph = printed.parse(content.text)
            if printed_graph is not None:
                phases = self.backward_phases(printed_graph) if is_backward else {}
                before = self.lowered_stage(name, content, printed_graph, before, phases)
        placed = kernels.place(graph, output, part) if output is not None else []

        def relate(builder: GraphBuilder, nodes: Mapping[str, int]) -> None:
            for launch, found in zip(output.launches if output else (), placed, strict=False):
                group(builder, launch, found, nodes)

        phases = self.backward_phases(graph) if is_backward else {}
        post = self.lowered_stage(f"post-grad {word}", final, graph, before, phases, relate)
        self.from_source(part, post)
        if output is not None and output.launches:
            Launches(self, part, output, placed, post).add(f"kernels {word}")

    def levels(self, part: Part, word: str) -> Iterable[tuple[str, Text]]:
        if part.before is not None and part.after is not None:
            yield f"post-grad before {word}", part.before
        for content in part.passes:
            yield f"post-grad {word}: {content.name}", content

    def from_source(self, part: Part, post: Made) -> None:
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

    # -- shared ---------------------------------------------------------------------------------------

    def stage(
        self,
        name: str,
        content: Text,
        graph: Printed,
        before: Made | None,
        owned: Owned,
        phases: dict[str, str],
        named: Any,
        relate: Any = None,
        is_python: bool = False,
    ) -> Made:
        owners = owned.owners
        usual = "optimizer" if self.compilation.is_optimizer else "backward" if self.is_autograd else "forward"
        way = graphs.Way(
            self.pools,
            called=self.compilation.called if is_python else None,
            named=named,
            phase=lambda node: phases.get(node.name, usual),
            scope=lambda node: self.stages.scope(owners.get(node.name, ())),
            guess=lambda node: GUESS if node.name in owned.guessed else "",
            relate=relate,
        )
        built = graphs.build(graph, way, content.text)
        warnings = [*_not_understood(graph), *_miscounted(content, built), *_unplaced(graph, owners)]
        index = len(self.capture.stages)
        if before is not None and relate is None and phases == before.phases and _same(before.printed, graph):
            built.graph = before.built.graph  # equal graphs are stored once
        self.add_stage(name, built.graph, before, {"native": built.listing}, tuple(warnings), content.seconds)
        for node in graph.nodes:
            if node.place is not None and node.name in owners:
                self.lines.setdefault((node.place.file, node.place.line), {})[owners[node.name]] = None
        made = Made(index, graph, built, owners, owned.guessed, phases, is_python)
        if before is not None:
            self.link_names(before, made, content.told or _NOTHING)
        return made

    def link_names(self, before: Made, made: Made, told: Told) -> None:
        """Passes, and the partition of a joint graph, keep names. Dynamo's names mean something else below it: what was
        made of them is said by torch, or found by structure."""
        same_level = made.is_python == before.is_python
        old, new = before.built.nodes, made.built.nodes
        kept = {n for n in new if n in old} if same_level else set[str]()
        reported = told.replaced if same_level else told.sources
        pairs = [(old[o], new[n]) for n, os in reported.items() if n in new and n not in kept for o in os if o in old]
        self.link(before.index, made.index, pairs, "reported")
        self.link(before.index, made.index, [(old[n], new[n]) for n in kept], "name")

    def on_line(self, pools: Pools, stack: int) -> list[modules.Path]:
        """The modules whose operators are on the innermost line of a stack."""
        frame = pools.frames_of(stack)[-1]
        return list(self.lines.get((frame.file, frame.line), ()))

    def add_stage(
        self,
        name: str,
        graph: Graph,
        before: Made | None,
        listings: dict[str, Listing],
        warnings: tuple[str, ...] = (),
        seconds: float | None = None,
    ) -> int:
        after = before.index if before else None
        index = len(self.capture.stages)
        self.capture.stages.append(Stage(self.stages.free(name, self.suffix), graph, after, seconds, warnings=warnings))
        add_listings(self.capture, index, listings)
        return index

    def link(self, before: int, after: int, pairs: Iterable[tuple[int, int]], evidence: str) -> None:
        unique = sorted(set(pairs))
        if unique:
            source, target = (frozen(column) for column in zip(*unique, strict=True))
            self.capture.stage_links.append(StageLink(before, after, "lowers", source, target, evidence))

    def unreadable(self, what: str) -> None:
        self.capture.warnings.append(f"compilation {self.compilation}: its {what} graph cannot be read")


def _replaced(before: Printed, after: Printed) -> dict[str, str]:
    """What a pass has made anew, and the operator in whose place it is read."""
    old, new = flow_of(before), flow_of(after)
    found: dict[str, str] = {}
    for name in new.nodes:
        if name in old.nodes:
            continue
        for reader in new.readers.get(name, ()):
            was, now = old.reads.get(reader, []), new.reads[reader]
            if len(was) == len(now) and (source := was[now.index(name)]) in old.nodes and source not in new.nodes:
                found[name] = source
                break
    if len(old.outputs) == len(new.outputs):
        pairs = zip(old.outputs, new.outputs, strict=True)
        found.update((n, o) for o, n in pairs if n in new.nodes and n not in old.nodes and o in old.nodes)
    return found


def _joint_phases(graph: Printed) -> dict[str, str]:
    """Backward is what depends on a gradient that comes in, and what only such operators read, if it comes after the
    forward pass: what that keeps for backward is traced with it, views of its last results right behind."""
    flow = flow_of(graph)
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
    begun = min((flow.order[name] for name in late if name in flow.order), default=len(flow.order))
    end = max((flow.order[name] for name in needed), default=-1)

    def is_late(name: str, at: int) -> bool:
        is_view = base_name(flow.op[name]) in LIKE_VIEWS
        return name in late or (name not in needed and at > end and not (is_view and at < begun))

    return {name: "backward" if is_late(name, at) else "forward" for name, at in flow.order.items()}


def _gradients_of(graph: Printed, flow: Flow) -> dict[str, str]:
    """Results that are the gradient of an input, and that input."""
    found: dict[str, str] = {}
    for text, comment in graph.outputs:
        gradient = _GRADIENT.search(comment)
        name = next(iter(printed.names_in(text)), "")
        if gradient and name in flow.nodes:
            found[flow.base(name)] = found[name] = f"primals_{int(gradient[1]) + 1}"
    return found


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


def _unplaced(graph: Printed, owners: Mapping[str, modules.Path]) -> Iterable[str]:
    lost = [node.name for node in graph.nodes if node.target != "get_attr" and not owners.get(node.name)]
    if lost:
        yield f"no module is known of {len(lost):,} operators: {shortened(lost)}"


def _miscounted(content: Text, built: graphs.Built) -> Iterable[str]:
    """Live capture says how large the real graph is."""
    if content.told is not None and content.told.counts is not None:
        nodes, _ = content.told.counts
        found = built.graph.n_nodes + built.picked
        if nodes != found:
            yield f"the graph in memory had {nodes:,} operators, the printed one has {found:,}"
