"""The last stage of a compiled graph: every launch of a kernel, in the order of the run, as an operator on buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from opscope.ir import PHASES, GraphBuilder, Listing, Pools, Table, column, dtypes
from opscope.ir.attributes import COPIES_FOR, MODULE_GUESSED
from opscope.ir.columns import frozen
from opscope.ir.facts import NOT_FUSED
from opscope.ir.pools import Frame

from . import graph as graphs
from . import modules, wrapper
from .compilation import Part
from .kernels import Placed, told_by_launch

if TYPE_CHECKING:
    from .stages import Compiled, Made

_FRAME = re.compile(r'File "([^"\n]+)", line (\d{1,9}), in ([^\n]+)')
_HINTS = re.compile(r"size_hints=(\{[^}\n]*\})")
_HEURISTICS = re.compile(r"@triton_heuristics\.(\w+)\(")
_REDUCTION = re.compile(r"reduction_hint=ReductionHint\.(\w+)")
_THREADS = re.compile(r"#pragma omp parallel num_threads\((\d+)\)")
_COLLECTIVES = ("_c10d_functional.", "c10d.", "_c10d_functional_autograd.", "symm_mem.")
_TEMPLATES = (
    "triton_",
    "cpp_",
    "cuda_",
    "cutlass_",
    "ck_",
    "rocm_",
)  # their candidates; others are libraries
_MOST_WHY = 200_000
GUESS = "the lines around"  # what the module of an operator is guessed from


def group(builder: GraphBuilder, launch: wrapper.Launch, found: Placed, nodes: Mapping[str, int]) -> None:
    """The operators that a launch computes, as a group of the graph that it was made from."""
    kernel = launch.kernel
    builder.group(
        "kernel",
        sorted({nodes[name] for name in found.nodes if name in nodes}),
        name=launch.target,
        code=kernel.code if kernel is not None else "",
        attrs={
            "language": language(launch),
            "evidence": found.evidence,
            **({COPIES_FOR: found.serves} if found.serves else {}),
        },
    )


class Launches:
    """Builds the stage of one output code."""

    def __init__(
        self, owner: Compiled, part: Part, output: wrapper.Output, placed: list[Placed], post: Made | None
    ) -> None:
        self.owner, self.part, self.output, self.post = owner, part, output, post
        self.placed = placed or [fragment_of(launch) for launch in output.launches]
        self.told = told_by_launch(part, output.launches)
        self.pools: Pools = owner.pools
        self.builder = GraphBuilder(self.pools)
        self.values: dict[str, int] = {}
        self.types: dict[str, int] = {}
        self.storages: dict[str, int] = {}
        self.lost: list[str] = []  # launches of which no module is known

    def add(self, name: str) -> None:
        owner, post = self.owner, self.post
        graph = self.build()
        listings = {"code": Listing(self.part.code, [(e.line, i) for i, e in enumerate(self.output.launches)])}
        if self.part.scheduled:
            listings["schedule"] = Listing(self.part.scheduled, schedule_lines(self.part.scheduled, self.output))
        if self.part.unscheduled:
            listings["before fusion"] = Listing(self.part.unscheduled, [])
        stage = owner.add_stage(name, graph, post, listings, tuple(self.unknown()))
        if post is not None:
            for evidence in ("reported", "name", "structure"):
                pairs = [
                    (post.built.nodes[member], i)
                    for i, found in enumerate(self.placed)
                    if found.evidence == evidence
                    for member in found.nodes
                    if member in post.built.nodes
                ]
                owner.link(post.index, stage, pairs, evidence)
        self.not_fused(stage)

    def build(self) -> Any:
        printed = {entry.name: entry.annotation for entry in self.post.printed.inputs} if self.post else {}
        for name in self.output.inputs:
            known = self.owner.primals.get(name)
            self.types[name] = self.type_of(name, printed.get(name, ""))
            self.values[name] = self.builder.input(
                self.types[name],
                name=known.name if known else name,
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
        found = self.placed[index]
        reads = [name for name in dict.fromkeys(launch.reads) if self.value_of(name) is not None]
        scope, stack, phase = self.whereabouts(index, launch)
        node = self.builder.node(
            kernel_op(launch),
            [cast("int", self.value_of(name)) for name in reads],
            name=launch.handle or launch.target,
            scope=scope,
            stack=stack,
            attrs=self.about(index, launch, found),
            phase=phase,
        )
        code = launch.kernel.code if launch.kernel is not None else ""
        self.builder.group(
            "kernel",
            [node],
            name=launch.target,
            code=code,
            attrs={
                "language": language(launch),
                "evidence": found.evidence,
                **({COPIES_FOR: found.serves} if found.serves else {}),
            },
        )
        for name in dict.fromkeys(launch.writes):
            value = self.builder.output(node, self.type_of(name), name=name)
            root = self.root(name)
            if root in self.storages:
                self.builder.set_storage(value, self.storages[root])
            self.storages.setdefault(root, value)
            self.values[name] = value

    def whereabouts(self, index: int, launch: wrapper.Launch) -> tuple[int, int, str]:
        """Module, line and phase: those of its operators; where none is known, what Inductor says of the launch."""
        found, post = self.placed[index], self.post
        stack = phase = 0
        owners: list[modules.Path] = []
        if post is not None:
            about = found.nodes or ([found.serves] if found.serves else [])
            members = [post.built.nodes[name] for name in about if name in post.built.nodes]
            owners = [post.owners[name] for name in about if name in post.owners]
            graph = post.built.graph
            stack = next((stack for i in reversed(members) if (stack := int(graph.node_stack[i]))), 0)
            phases = [int(graph.node_phase[i]) for i in members]
            phase = max(set(phases), key=phases.count) if phases else PHASES.index("other")
        if not stack:
            stack = self.said(launch)
        if not owners and stack:
            owners = self.owner.on_line(self.pools, stack)
        if not shared(owners):  # of two models: what is code of no module says least
            owners = [owner for owner in owners if len(owner) > 1] or owners
        if not shared(owners):
            self.lost.append(launch.handle or launch.target)
        if post is None or (not found.nodes and phase == PHASES.index("other")):
            word = "backward" if self.part.way == "backward" or launch_is_late(post) else "forward"
            phase = PHASES.index(word)
        return self.owner.stages.scope(shared(owners)), stack, PHASES[phase]

    def unknown(self) -> Iterator[str]:
        if self.lost:
            yield f"no module is known of {len(self.lost):,} kernels: {shortened(self.lost)}"
        idle = [
            launch.handle or launch.target
            for launch, found in zip(self.output.launches, self.placed, strict=True)
            if not found.nodes and not found.serves
        ]
        if idle:
            yield f"it is not known which operators {len(idle):,} kernels compute: {shortened(idle)}"

    def said(self, launch: wrapper.Launch) -> int:
        """The line that Inductor reports for a launch."""
        for text in self.part.places.get(launch.handle, ()):
            frames = _FRAME.findall(text)
            if frames:
                file, line, function = frames[-1]
                return self.pools.stack([Frame(file, int(line), function.strip())])
        return 0

    def about(self, index: int, launch: wrapper.Launch, found: Placed) -> dict[str, Any]:
        kernel, told = launch.kernel, self.told.get(index)
        attrs: dict[str, Any] = {"kernel": launch.target, "operators": found.nodes, "evidence": found.evidence}
        if found.serves:
            attrs[COPIES_FOR] = found.serves
        if self.post is not None and self.is_guess(found.nodes or [found.serves], self.post):
            attrs[MODULE_GUESSED] = GUESS
        attrs["language"] = language(launch)
        if launch.target.removeprefix("torch.ops.").startswith(_COLLECTIVES):
            attrs["collective"] = True
            quoted = [a.text[1:-1] for a in launch.arguments if len(a.text) > 1 and a.text[0] == a.text[-1] == "'"]
            if quoted:  # `all_reduce_(buf7, 'sum', '0')`
                attrs["group"] = quoted[-1]
            if len(quoted) > 1:
                attrs["reduction"] = quoted[0]
        if kernel is not None:
            attrs.update(configuration(kernel, launch))
            if (chosen := self.part.chosen.get(kernel.name)) is not None:
                attrs.update(chosen)
        if told is not None and told.template:
            attrs["template"] = told.template
        if told is not None and told.choices:
            attrs["candidates"] = [[name, seconds] for name, seconds in told.choices]
            fastest = min(told.choices, key=lambda choice: choice[1] if choice[1] is not None else float("inf"))[0]
            # What can be fused with its neighbours may be preferred to the fastest by itself.
            if fastest.startswith(_TEMPLATES) == bool(told.template):
                attrs["winner"] = fastest
        for word, names in (("bytes read", launch.reads), ("bytes written", launch.writes)):
            size = self.bytes(names)
            if size is not None:
                attrs[word] = size
        reused = [f"{name} in the memory of {self.root(name)}" for name in launch.writes if self.root(name) != name]
        if reused:
            attrs["reuses"] = reused
        return attrs

    def is_guess(self, names: Sequence[str], post: Made) -> bool:
        """Would its module be another if the guessed ones of its operators were?"""
        known = [post.owners[name] for name in names if name in post.owners and name not in post.guessed]
        return any(name in post.guessed for name in names) and (not known or bool(shared(known)[1:]))

    def bytes(self, names: Sequence[str]) -> int | None:
        """Of distinct buffers; None where one is of unknown size."""
        total = 0
        for name in dict.fromkeys(names):
            kind = self.types.get(name) or self.type_of(name)
            known = self.pools.types[kind] if kind else None
            dtype = dtypes.find(known.dtype) if known is not None else None
            if known is None or dtype is None or dtype.bits is None or known.elements is None:
                return None
            total += (known.elements * dtype.bits + 7) // 8
        return total

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

    # -- why two launches are not one ------------------------------------------------------------------

    def not_fused(self, stage: int) -> None:
        by_buffer = {name: i for i, launch in enumerate(self.output.launches) for name in launch.writes}
        by_node: dict[str, list[int]] = {}
        for i, found in enumerate(self.placed):
            for name in found.nodes:
                by_node.setdefault(name, []).append(i)
        schedule = scheduled(self.part.scheduled)
        rows_told = {id(row): i for i, row in enumerate(self.part.launches)}
        indices = {rows_told[id(told)]: i for i, told in self.told.items()}

        def launch_of(name: str) -> int | None:
            if name.isdigit() and len(name) < 9:  # a row of what live capture tells
                return indices.get(int(name))
            votes: dict[int, int] = {}
            for op in operations(name):
                for buffer in schedule.get(op, ()):
                    if buffer in by_buffer:
                        votes[by_buffer[buffer]] = votes.get(by_buffer[buffer], 0) + 100
                for origin in self.part.origins.get(op, ()):
                    for i in by_node.get(origin, ()):
                        votes[i] = votes.get(i, 0) + (10 if len(by_node[origin]) == 1 else 1)
                if not schedule and op not in self.part.origins and f"buf{op[2:]}" in by_buffer:
                    i = by_buffer[f"buf{op[2:]}"]  # library calls have no origins in the log of fusion
                    votes[i] = votes.get(i, 0) + 1
            return max(votes, key=lambda i: votes[i]) if votes else None

        rows: dict[tuple[int, int, str], None] = {}
        for first, second, reason in self.part.why[:_MOST_WHY]:
            a, b = launch_of(first), launch_of(second)
            if a is not None and b is not None and a != b:
                rows[min(a, b), max(a, b), reason] = None
        if rows:
            first, second, reasons = zip(*rows, strict=True)
            columns = {
                "kernel": column(frozen(first)),
                "other": column(frozen(second)),
                "reason": column(list(reasons)),
            }
            self.owner.capture.add(Table(stage, "row", frozen(range(len(rows))), columns, NOT_FUSED.name))


def fragment_of(launch: wrapper.Launch) -> Placed:
    """What a kernel's own comment says that it computes, where no graph is there to compare with."""
    names = [node.name for node in launch.kernel.fragment if node.kind != "PlaceHolder"] if launch.kernel else []
    return Placed(names or launch.source_nodes, "name" if names or launch.source_nodes else "")


def operations(name: str) -> list[str]:
    """`op1_op2` is two operations that were fused before."""
    return re.findall(r"op\d+", name)


def scheduled(text: str) -> dict[str, list[str]]:
    """The buffers that each operation of `ir_post_fusion.txt` writes."""
    found: dict[str, list[str]] = {}
    for match in re.finditer(r"^(op\d+)\.writes =\s*\[(.*?)\]\n\1\.unmet", text, re.MULTILINE | re.DOTALL):
        found[match[1]] = re.findall(r"Dep\((?:name=)?'(\w+)'", match[2])
    return found


def schedule_lines(text: str, output: wrapper.Output) -> list[tuple[int, int]]:
    """The line of the schedule where each launch's operation begins."""
    by_buffer = {name: i for i, launch in enumerate(output.launches) for name in launch.writes}
    buffers = scheduled(text)
    lines: list[tuple[int, int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        head = re.match(r"^(op\d[\w]*): \w", line)
        if head:
            found = {by_buffer[b] for op in operations(head[1]) for b in buffers.get(op, ()) if b in by_buffer}
            lines += [(number, i) for i in sorted(found)]
    return lines


def configuration(kernel: wrapper.Kernel, launch: wrapper.Launch) -> dict[str, Any]:
    """How a kernel is launched, as far as the code says."""
    found: dict[str, Any] = {}
    if kernel.language == "triton" or "@triton" in kernel.code:
        for word, pattern in (("heuristics", _HEURISTICS), ("size hints", _HINTS), ("reduction hint", _REDUCTION)):
            if match := pattern.search(kernel.code):
                found[word] = match[1]
        sizes = [a.text for a in launch.arguments if not a.name and re.fullmatch(r"[\d ()+*//-]+|s\d+", a.text)]
        if sizes:
            found["sizes"] = sizes[:8]
        if grid := next((a.text for a in launch.arguments if a.name == "grid"), ""):
            found["grid"] = grid[:200]
    elif threads := _THREADS.search(kernel.code):
        found["threads"] = int(threads[1])
    return found


def language(launch: wrapper.Launch) -> str:
    return launch.kernel.language if launch.kernel is not None else "library"


def kernel_op(launch: wrapper.Launch) -> str:
    """`triton_poi_fused_add_mul`: without the number, so that equal kernels have one name."""
    if launch.kernel is None:
        return launch.target.removeprefix("torch.ops.").removesuffix(".default")
    return launch.target.rstrip("0123456789").rstrip("_") or launch.target


def shared(paths: list[modules.Path]) -> modules.Path:
    """The module of a kernel: the innermost one that all its operators are in."""
    if not paths:
        return ()
    found = paths[0]
    for path in paths[1:]:
        while path[: len(found)] != found:
            found = found[:-1]
    return found


def shortened(names: Sequence[str]) -> str:
    return f"{', '.join(names[:20])} …" if len(names) > 20 else ", ".join(names)


def launch_is_late(post: Made | None) -> bool:
    return post is not None and any(phase == "backward" for phase in post.phases.values())
