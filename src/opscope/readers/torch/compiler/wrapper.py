"""Inductor's output code: the kernels that it wrote, and the function that allocates buffers and launches them.

The text is taken apart line by line and never executed. A kernel's comment holds its `Graph fragment`: the very
operators of the post-grad graph that it computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from opscope.ir.pools import Dim

from .annotations import annotation
from .printed import Argument, split

_DEFINED = re.compile(r"^(\w+) = async_compile\.(\w+)\((.*)$")
_AOT_ID = re.compile(r"^# AOT ID: \['([^']*)'\]")
_FRAGMENT = re.compile(
    r"^#\s{1,8}%(\w+) : (?:Tensor )?(?:\"([^\"]*)\")?.*? = (\w+)\[target=([^\]]*)\](?:\(args = (.*)\))?"
)
_RETURNED = re.compile(r"^#\s{1,8}return (.*)$")
_SOURCE = re.compile(r"^#\s{1,8}(\w+) => ([\w, ]+)$")
_NAMES = re.compile(r"^\s*# Topologically Sorted Source Nodes: \[(.*?)\](?:, Original ATen: \[(.*?)\])?")
_HANDLE = re.compile(r"^\s*# \[Provenance debug handles\] (.+):(\d+)\s*$")
_FUNCTION = re.compile(r"^ *def (call|partition_\d+)\((?:self, )?args\):")
_UNPACKED = re.compile(r"^([\w, ]+?),? = args$")
_ALLOCATED = re.compile(r"^(\w+) = empty_strided_(\w+)\((.*)\)$")
_VIEWED = re.compile(r"^(\w+) = reinterpret_tensor\((.*)\)$")
_RENAMED = re.compile(r"^(\w+) = (\w+)$")
_PICKED = re.compile(r"^(\w+) = (\w+)\[(\d+)\]$")
_PARTITION = re.compile(r"^(?:\((.*)\) = )?self\.partitions\[(\d+)\]\((\w+)\)$")
_CALLED = re.compile(r"^(?:(\w+) = )?([A-Za-z_][\w.]*)\((.*)\)$", re.DOTALL)
_SIZED = re.compile(r"^assert_size_stride\((\w+), (\(.*?\)), (\(.*?\))")
_TRITON = re.compile(r"^def (\w+)\((.*?)\):", re.MULTILINE | re.DOTALL)
_CPP = re.compile(r'extern "C"\s+void\s+\w+\((.*?)\)\s*\{', re.DOTALL)
_MUTATED = re.compile(r"'mutated_arg_names': \[([^\]]*)\]")
_WORD = re.compile(r"[A-Za-z_]\w*")
_META = re.compile(r"'(\w+)': (True|False|\d+|'[^']*')")
# What is no computation: it sets up, checks or frees.
_NO_LAUNCH = re.compile(
    r"^(?:assert_|args\.clear|del |torch\.cuda\.|torch\.xpu\.|get_raw_stream|start_graph|end_graph|print|return|with |"
    r"AsyncCompile|async_compile|global |import |from |pass\b|if |else|raise |[\w.]*_DeviceGuard)"
)
_LIBRARIES = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.", "triton_", "cpp_")
_MOST_KERNELS = 100_000


@dataclass
class FragmentNode:
    name: str
    annotation: str
    kind: str  # PlaceHolder, call_function
    target: str
    args: str


@dataclass
class Kernel:
    """One function that Inductor wrote."""

    name: str
    language: str  # triton, cpp, …
    code: str
    line: int
    fragment: list[FragmentNode] = field(default_factory=list[FragmentNode])
    returned: list[str] = field(default_factory=list[str])
    sources: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # what became of source nodes
    parameters: list[str] = field(default_factory=list[str])
    mutated: frozenset[str] = frozenset()

    @property
    def is_users(self) -> bool:
        """Not Inductor's own, but one that the compiled code launches itself."""
        return "@triton_heuristics.user_autotune" in self.code

    def writes(self, parameter: str) -> bool:
        return parameter.startswith(("out_ptr", "in_out_ptr")) or parameter in self.mutated

    def reads(self, parameter: str) -> bool:
        return parameter.startswith(("in_ptr", "in_out_ptr")) or not parameter.startswith("out_ptr")


@dataclass
class Launch:
    """One call of a kernel, in the order of the run."""

    target: str  # the kernel's name, or `extern_kernels.mm`, `torch.ops.aten.…`
    kernel: Kernel | None
    arguments: list[Argument]
    result: str  # the buffer that a call returns; "" where it writes into its arguments
    line: int
    source_nodes: list[str] = field(default_factory=list[str])
    aten: list[str] = field(default_factory=list[str])
    handle: str = ""  # `NAME:7`
    reads: list[str] = field(default_factory=list[str])  # buffers, without views of them
    writes: list[str] = field(default_factory=list[str])


@dataclass
class Buffer:
    name: str
    dtype: str = ""
    shape: tuple[Dim, ...] | None = None
    device: str = ""
    reuses: str = ""  # the buffer whose memory it takes over
    part_of: str = ""  # the larger buffer that it is a part of
    picked: tuple[str, int] | None = None  # one result of a call with several
    made: int = 0  # the line
    freed: int = 0


@dataclass
class Output:
    """One output code: one compiled graph."""

    aot_id: str
    kernels: dict[str, Kernel]
    inputs: list[str] = field(default_factory=list[str])
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    launches: list[Launch] = field(default_factory=list[Launch])
    returned: list[str] = field(default_factory=list[str])  # buffers, without views of them; "" for what is none

    def buffers_in(self, text: str) -> Iterator[str]:
        for name in _WORD.findall(text):
            if name in self.buffers:
                yield name

    def buffer_in(self, text: str) -> str:
        return next(self.buffers_in(text), "")

    def chain(self, name: str) -> Iterator[str]:
        """A buffer, and those whose memory it took over."""
        for _ in range(1000):
            known = self.buffers.get(name)
            if known is None:
                return
            yield name
            name = known.reuses


def parse(text: str) -> Output:
    lines = text.split("\n")
    aot_id = next((m[1] for line in lines[:5] if (m := _AOT_ID.match(line))), "")
    output = Output(aot_id, {})
    bodies: dict[str, list[tuple[int, str]]] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        defined = _DEFINED.match(line)
        if defined and len(output.kernels) < _MOST_KERNELS:
            at = _kernel(lines, at, defined, output)
            continue
        function = _FUNCTION.match(line)
        if function:
            at, bodies[function[1]] = _function(lines, at)
            continue
        at += 1
    _Reading(output, bodies).run()
    return output


def _kernel(lines: Sequence[str], at: int, defined: re.Match[str], output: Output) -> int:
    end = at
    if "'''" in defined[3]:
        end += 1
        while end < len(lines) and not lines[end].startswith("'''"):
            end += 1
    code = "\n".join(lines[at + 1 : end])
    kernel = Kernel(defined[1], defined[2], code, at + 1)
    for comment in _comments_above(lines, at):
        node = _FRAGMENT.match(comment)
        if node:
            kernel.fragment.append(FragmentNode(node[1], node[2] or "", node[3], node[4], node[5] or ""))
        elif returned := _RETURNED.match(comment):
            kernel.returned = re.findall(r"%(\w+)", returned[1])
        elif source := _SOURCE.match(comment):
            kernel.sources[source[1]] = [name.strip() for name in source[2].split(",")]
    signature = (
        next((m[2] for m in _TRITON.finditer(code) if m[1] == kernel.name or m[1] == "triton_"), "")
        if "@triton" in code
        else (m[1] if (m := _CPP.search(code)) else "")
    )
    for parameter in signature.split(","):
        words = re.findall(r"\w+", parameter.split(":")[0] if "@triton" in code else parameter)
        if words:
            kernel.parameters.append(words[-1])
    mutated = _MUTATED.search(code)
    kernel.mutated = frozenset(re.findall(r"'(\w+)'", mutated[1])) if mutated else frozenset()
    output.kernels[kernel.name] = kernel
    return end + 1


def _comments_above(lines: Sequence[str], at: int) -> Sequence[str]:
    start = at
    while start > 0 and lines[start - 1].startswith("#"):
        start -= 1
    return lines[start:at]


def _function(lines: Sequence[str], at: int) -> tuple[int, list[tuple[int, str]]]:
    """The numbered statements of a function, each as one text; comments too."""
    column = len(lines[at]) - len(lines[at].lstrip())
    at += 1
    body: list[tuple[int, str]] = []
    while at < len(lines):
        line = lines[at]
        if line.strip():
            if len(line) - len(line.lstrip()) <= column:
                break
            body.append((at + 1, line.strip()))
        at += 1
    return at, body


class _Reading:
    """Follows the statements of `call`, and of the partitions that it calls."""

    def __init__(self, output: Output, bodies: dict[str, list[tuple[int, str]]]) -> None:
        self.output, self.bodies = output, bodies
        self.lists: dict[str, list[str]] = {}
        self.base: dict[str, str] = {}  # a name for (a view of) another buffer -> that buffer
        self.names: list[str] = []
        self.aten: list[str] = []
        self.handle = ""

    def run(self) -> None:
        for name in ("call", *sorted(set(self.bodies) - {"call"})):
            if name == "call" or "call" not in self.bodies:
                self.body(self.bodies.get(name, []), inside=False)

    def body(self, statements: Sequence[tuple[int, str]], inside: bool) -> None:
        for number, text in statements:
            if text.startswith("#"):
                self.comment(text)
                continue
            whole, _, comment = text.partition("  # ")
            for part in re.split(r"; (?=del )", whole if comment in ("reuse", "alias") else text):
                self.statement(number, part.strip(), inside, is_part=comment == "alias")

    def comment(self, text: str) -> None:
        names = _NAMES.match(text)
        if names:
            self.names = [name.strip() for name in names[1].split(",") if name.strip()]
            self.aten = [name.strip() for name in (names[2] or "").split(",") if name.strip()]
        handle = _HANDLE.match(text)
        if handle:
            self.handle = f"{handle[1]}:{handle[2]}"

    def statement(self, number: int, text: str, inside: bool, is_part: bool = False) -> None:
        buffers = self.output.buffers
        if text.startswith("del "):
            for name in text[4:].split(","):
                if name.strip() in buffers:
                    buffers[name.strip()].freed = number
        elif text.startswith("return"):
            if not inside:
                items = split(text.removeprefix("return").strip().removeprefix("(").removesuffix(")"))
                self.output.returned = [self.output.buffer_in(item.text) for item in items]
        elif unpacked := _UNPACKED.match(text):
            if not inside:
                self.output.inputs = [name.strip() for name in unpacked[1].split(",") if name.strip()]
            for name in unpacked[1].split(","):
                if name.strip():
                    buffers.setdefault(name.strip(), Buffer(name.strip()))
        elif sized := _SIZED.match(text):
            if sized[1] in buffers:
                buffers[sized[1]].shape = _sizes(sized[2])
        elif allocated := _ALLOCATED.match(text):
            arguments = split(allocated[3])
            shape = _sizes(arguments[0].text) if arguments else None
            dtype = arguments[2].text.removeprefix("torch.") if len(arguments) > 2 else ""
            buffers[allocated[1]] = Buffer(allocated[1], dtype, shape, allocated[2], made=number)
        elif viewed := _VIEWED.match(text):
            arguments = split(viewed[2])
            shape = _sizes(arguments[1].text) if len(arguments) > 1 else None
            self.reused(viewed[1], arguments[0].text, number, shape)
            if is_part:
                self.output.buffers[viewed[1]].part_of = arguments[0].text
        elif picked := _PICKED.match(text):
            buffers[picked[1]] = Buffer(picked[1], picked=(picked[2], int(picked[3])), made=number)
        elif (renamed := _RENAMED.match(text)) and renamed[2] in buffers:
            self.reused(renamed[1], renamed[2], number, buffers[renamed[2]].shape)
        elif partition := _PARTITION.match(text):
            self.body(self.bodies.get(f"partition_{partition[2]}", []), inside=True)
        else:
            self.call(number, text)

    def reused(self, name: str, source: str, number: int, shape: tuple[Dim, ...] | None) -> None:
        before = self.output.buffers.get(source)
        self.output.buffers[name] = Buffer(
            name, before.dtype if before else "", shape, before.device if before else "", reuses=source, made=number
        )

    def call(self, number: int, text: str) -> None:
        called = _CALLED.match(text)
        if not called or _NO_LAUNCH.match(called[2]) or called[2] in ("AsyncCompile", "get_raw_stream"):
            return
        target = called[2].removesuffix(".run")
        kernel = self.output.kernels.get(target)
        if kernel is None and not target.startswith(_LIBRARIES) and "stream=stream" not in text:
            return
        launch = Launch(target, kernel, split(called[3]), called[1] or "", number)
        launch.source_nodes, launch.aten, launch.handle = self.names, self.aten, self.handle
        self.names, self.aten, self.handle = [], [], ""
        self.uses(launch)
        if launch.result:
            self.output.buffers[launch.result] = Buffer(launch.result, made=number)
        self.output.launches.append(launch)

    def uses(self, launch: Launch) -> None:
        kernel = launch.kernel
        for position, argument in enumerate(launch.arguments):
            found = list(self.output.buffers_in(argument.text))
            if not found:
                continue
            if argument.name == "out":
                launch.writes += found
            elif kernel is not None and position < len(kernel.parameters) and not argument.name:
                parameter = kernel.parameters[position]
                launch.reads += found if kernel.reads(parameter) else []
                launch.writes += found if kernel.writes(parameter) else []
            else:
                launch.reads += found
        if launch.result:
            launch.writes.append(launch.result)


def _sizes(text: str) -> tuple[Dim, ...] | None:
    found = annotation(f"f32[{text.strip().removeprefix('(').removesuffix(')').rstrip(', ')}]")
    return found.shape if found else None
