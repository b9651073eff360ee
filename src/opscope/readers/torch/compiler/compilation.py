"""What was said of one compiled frame: its printed graphs, the code made of them, and what else the log tells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from opscope.ir.enumerations import PHASES
from opscope.readers.torch.names import short_class

from .calls import Calls, calls
from .log import CompileId, Entry
from .modules import Held, Path
from .printed import Place

# The graphs that a compilation has one of, and what their stages are called.
GRAPHS = {
    "dynamo_output_graph": "dynamo",
    "before_pre_grad_graph": "pre-grad before",
    "after_pre_grad_graph": "pre-grad",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
    "compiled_autograd_graph": "compiled autograd",
}
_METRICS = ("compilation_metrics", "bwd_compilation_metrics")


@dataclass
class Told:
    """What live capture reports of the operators of one printed graph."""

    modules: dict[str, Path] = field(default_factory=dict[str, Path])
    phases: dict[str, str] = field(default_factory=dict[str, str])
    lines: dict[str, Place] = field(default_factory=dict[str, Place])
    sources: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # what each was made from
    replaced: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # the same, by a pass
    inputs: dict[str, Held] = field(default_factory=dict[str, Held])
    counts: tuple[int, int] | None = None  # operators and edges of the real graph


@dataclass
class Text:
    """A printed graph."""

    text: str
    told: Told | None = None
    name: str = ""  # of the pass that made it
    level: str = ""  # what the pass belongs to: pre_grad, joint, post_grad
    seconds: float | None = None


@dataclass
class LaunchTold:
    """What live capture reports of one kernel of the schedule."""

    kernel: str
    nodes: list[str]
    buffers: list[str]
    template: str = ""
    choices: list[tuple[str, float | None]] = field(default_factory=list["tuple[str, float | None]"])


@dataclass
class Part:
    """What Inductor made of one graph: forward, backward or inference."""

    before: Text | None = None
    after: Text | None = None
    passes: list[Text] = field(default_factory=list[Text])
    idle: list[str] = field(default_factory=list[str])  # passes that changed nothing
    code: str = ""
    file: str = ""
    way: str = ""  # "forward", "backward", "inference", where the file says so
    reported: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    from_source: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # pre-grad name -> post-grad
    places: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # launch -> stacks, as text
    launches: list[LaunchTold] = field(default_factory=list[LaunchTold])
    why: list[tuple[str, str, str]] = field(default_factory=list["tuple[str, str, str]"])  # not fused: a, b, reason
    origins: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])  # of scheduler nodes or buffers
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])  # Triton's settings
    scheduled: str = ""  # `ir_post_fusion.txt`
    unscheduled: str = ""  # `ir_pre_fusion.txt`

    def map(self, content: Any) -> None:
        """Inductor's own report of what became of what."""
        found = _dict(content)
        self.reported = _lists(found.get("cppCodeToPost"))
        self.from_source = _lists(found.get("preToPost"))


@dataclass
class Compilation:
    """Everything that is known of one compiled frame."""

    id: CompileId
    rank: str = ""
    texts: dict[str, Text] = field(default_factory=dict[str, Text])  # by kind
    passes: list[Text] = field(default_factory=list[Text])  # before Inductor's own level
    parts: list[Part] = field(default_factory=list[Part])
    sources: set[str] = field(default_factory=set[str])  # Dynamo's words for its inputs
    breaks: list[str] = field(default_factory=list[str])
    function: str = ""  # that was compiled
    called: Place | None = None  # the user's line on which it runs
    why: str = ""  # of a compilation that is not the first
    calls: Calls = field(default_factory=Calls)
    roots: dict[str, Path] = field(default_factory=dict[str, Path])  # Dynamo's words for models -> their names
    metrics: list[dict[str, Any]] = field(default_factory=list["dict[str, Any]"])  # forward's, then backward's
    classes: dict[Path, str] = field(default_factory=dict[Path, str])  # of modules
    failed: str = ""
    latest: Text | None = field(default=None, repr=False)  # the graph that was printed last

    def __str__(self) -> str:
        return f"{self.rank} {self.id}".strip()

    def name_models(self) -> None:
        """The first part of every path is the class of the model, as its guards say; else the function's name."""
        for source in sorted(self.sources | self.calls.classes.keys(), reverse=True):  # the longest first
            root = source[: source.find("]") + 1]
            if root not in self.roots:
                name = self.calls.classes.get(root, "")
                is_thing = name and name not in _PLAIN and not name.startswith("builtins.")
                inside = source.startswith(f"{root}._modules")
                self.roots[root] = (short_class(name),) if is_thing else ("model",) if inside else self.whole
        self.calls.name(self.roots)
        named = {path: short_class(name) for path, name in self.calls.modules.items()}
        self.classes = {**named, **self.classes}

    @property
    def whole(self) -> Path:
        """What all of it is the code of, if no module is known: the function."""
        own = self.calls.classes.get("L['self']", "")
        if own and own not in _PLAIN:
            return (short_class(own),)
        return (_RESUMED.sub(r"\1", self.function),) if self.function else ()

    @property
    def is_optimizer(self) -> bool:
        return self.calls.classes.get("L['self']", "").startswith("torch.optim.")

    @property
    def numbers(self) -> set[str]:
        """AOTAutograd's, of the graphs that Inductor's code was written for."""
        found = (_WRITTEN_FOR.search(part.code[:2000]) for part in self.parts)
        return {number[1] for number in found if number}

    @property
    def is_empty(self) -> bool:
        return not self.texts and not self.parts

    def add(self, entry: Entry) -> None:
        handler = _HANDLERS.get(entry.kind)
        if handler is not None:
            handler(self, entry)
        elif entry.kind in GRAPHS and entry.payload:
            self.texts[entry.kind] = self.latest = Text(entry.text)

    # -- one handler for each kind of record ---------------------------------------------------------

    def before_post_grad(self, entry: Entry) -> None:
        self.latest = Text(entry.text)
        self.parts.append(Part(before=self.latest))

    def post_grad(self, entry: Entry) -> None:
        part = self.part(lambda part: part.after is None)
        part.after = self.latest = Text(entry.text)

    def output_code(self, entry: Entry) -> None:
        part = self.part(lambda part: not part.code)
        part.code, part.file = entry.text, str(_dict(entry.data).get("filename", ""))

    def part(self, fits: Callable[[Part], bool]) -> Part:
        """The last part, or a new one where that has it already."""
        if not self.parts or not fits(self.parts[-1]):
            self.parts.append(Part())
        return self.parts[-1]

    def mappings(self, entry: Entry) -> None:
        if self.parts:
            self.parts[-1].map(_json(entry.text))

    def stack_traces(self, entry: Entry) -> None:
        if self.parts:
            self.parts[-1].places = _lists(_json(entry.text))

    def tuned(self, entry: Entry) -> None:
        """`triton_kernel_info`: the settings that Triton kernels were compiled with, and how long that took."""
        for part in self.parts[-1:]:
            for name, about in _json(entry.text).items():
                row = _dict(about)
                settings = row.get("only_config") or row.get("best_config")
                took = row.get("compile_time_us")
                chosen: dict[str, Any] = {}
                if settings:
                    chosen["configuration"] = settings
                if isinstance(took, (int, float)):
                    chosen["compiled in seconds"] = took / 1e6
                part.chosen[name] = chosen

    def started(self, entry: Entry) -> None:
        stack: Any = _dict(entry.data).get("stack")
        innermost = _dict(cast("list[Any]", stack)[-1]) if isinstance(stack, list) and stack else {}
        self.function = str(innermost.get("name", ""))[:400] or self.function
        for row in reversed(cast("list[Any]", stack) if isinstance(stack, list) else []):
            frame = _dict(row)
            file, line = frame.get("filename"), frame.get("line")
            if not isinstance(file, str) or not isinstance(line, int) or not 0 <= line < 1 << 31:
                continue
            if file and not _TORCHS.search(file.replace("\\", "/")):
                self.called = Place(file[:4000], line, str(frame.get("name", ""))[:400], str(frame.get("loc", "")))
                break

    def source(self, entry: Entry) -> None:
        self.sources.add(str(_dict(entry.data).get("source", "")))

    def graph_break(self, entry: Entry) -> None:
        self.breaks.append(entry.text)

    def recompiled(self, entry: Entry) -> None:
        reasons: Any = None
        with suppress(ValueError, RecursionError):
            reasons = json.loads(entry.text)
        texts = [str(reason) for reason in cast("list[Any]", reasons)] if isinstance(reasons, list) else [entry.text]
        self.why = "; ".join(" ".join(text.split()) for text in texts)[:400]

    def guarded(self, entry: Entry) -> None:
        self.calls = calls(entry.text)

    def measured(self, entry: Entry) -> None:
        metrics = dict(_dict(entry.data))
        metrics["backward"] = entry.kind == "bwd_compilation_metrics"
        self.metrics.append(metrics)
        if isinstance(reason := metrics.get("recompile_reason"), str) and not self.why:
            self.why = " ".join(reason.split())[:400]
        if metrics.get("fail_type"):
            self.failed = f"{metrics.get('fail_type')}: {metrics.get('fail_reason') or 'no reason given'}"

    # -- what live capture adds (`opscope_…`) ----------------------------------------------------------

    def told_nodes(self, entry: Entry) -> None:
        if self.latest is None:
            return
        found = _json(entry.text)
        told = Told()
        told.modules = {name: _path(path) for name, path in _texts(found.get("modules")).items()}
        told.phases = {name: phase for name, phase in _texts(found.get("phases")).items() if phase in PHASES}
        told.sources, told.replaced = _lists(found.get("from")), _lists(found.get("replaced"))
        told.lines = {name: place for name, row in _dict(found.get("lines")).items() if (place := _place(row))}
        for name, row in _dict(found.get("inputs")).items():
            words = cast("list[Any]", row) if isinstance(row, list) else []
            if len(words) > 1 and isinstance(words[0], str) and words[1] in _ROLES:
                owner = _path(words[2]) if len(words) > 2 and isinstance(words[2], str) else ()
                told.inputs[str(name)] = Held(words[0], words[1], owner)
        counts = [found.get("nodes"), found.get("edges")]
        if all(isinstance(count, int) for count in counts):
            told.counts = cast("tuple[int, int]", tuple(counts))
        self.latest.told = told
        self.classes.update({_path(path): name for path, name in _texts(found.get("types")).items()})

    def told_pass(self, entry: Entry) -> None:
        about = _dict(entry.data)
        seconds = about.get("seconds")
        text = Text(
            entry.text,
            name=str(about.get("pass", "pass"))[:200],
            level=str(about.get("of", "")),
            seconds=float(seconds) if isinstance(seconds, (int, float)) else None,
        )
        self.latest = text
        if text.level == "post_grad" and self.parts and self.parts[-1].after is None:
            self.parts[-1].passes.append(text)
        else:
            self.passes.append(text)

    def told_passes(self, entry: Entry) -> None:
        rows: Any = _json(entry.text).get("passes")
        names = [
            str(cast("list[Any]", row)[0])
            for row in (cast("list[Any]", rows) if isinstance(rows, list) else [])
            if isinstance(row, list) and len(cast("list[Any]", row)) > 3 and not cast("list[Any]", row)[3]
        ]
        self.part(lambda part: not part.code).idle += names

    def told_launches(self, entry: Entry) -> None:
        part, found = self.part(lambda part: not part.code), _json(entry.text)
        rows: Any = found.get("launches")
        for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
            about = _dict(row)
            choices: Any = about.get("choices")
            part.launches.append(
                LaunchTold(
                    str(about.get("kernel", "")),
                    _strings(about.get("nodes")),
                    _strings(about.get("buffers")),
                    str(about.get("template") or ""),
                    [choice for item in _items(choices) if (choice := _choice(item))],
                )
            )
        why: Any = found.get("why")
        for row in cast("list[Any]", why) if isinstance(why, list) else []:
            words = [str(word) for word in cast("list[Any]", row)[:3]] if isinstance(row, list) else []
            if len(words) == 3:
                part.why.append((words[0], words[1], words[2]))
        part.origins = _lists(found.get("buffers"))


_TORCHS = re.compile(r"/(?:torch/(?:_dynamo|_functorch|nn|optim|utils|autograd)|opscope/tracers)/")
_WRITTEN_FOR = re.compile(r"^# AOT ID: \['(\d{1,9})_", re.MULTILINE)
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d{1,9}$")
_PLAIN = frozenset(("function", "module", "type", "dict", "tuple", "list", "method", "int", "str", "NoneType"))
_ROLES = ("input", "parameter", "buffer", "constant", "activation", "gradient", "state")
_HANDLERS = {
    "before_post_grad_graph": Compilation.before_post_grad,
    "inductor_post_grad_graph": Compilation.post_grad,
    "inductor_output_code": Compilation.output_code,
    "inductor_provenance_tracking_node_mappings": Compilation.mappings,
    "inductor_provenance_tracking_kernel_stack_traces": Compilation.stack_traces,
    "triton_kernel_info": Compilation.tuned,
    "dynamo_start": Compilation.started,
    "describe_source": Compilation.source,
    "dynamo_graph_break_reason": Compilation.graph_break,
    "recompile_reasons": Compilation.recompiled,
    "dynamo_cpp_guards_str": Compilation.guarded,
    **dict.fromkeys(_METRICS, Compilation.measured),
    "opscope_nodes": Compilation.told_nodes,
    "opscope_pass": Compilation.told_pass,
    "opscope_passes": Compilation.told_passes,
    "opscope_launches": Compilation.told_launches,
}


def _path(text: str) -> Path:
    return tuple(part for part in text.split(".") if part)[:100]


def _place(row: object) -> Place | None:
    """`["file.py", 12, "forward", "code"]`."""
    words = cast("list[Any]", row) if isinstance(row, list) else []
    if len(words) < 3 or not isinstance(words[0], str) or not isinstance(words[1], int) or not 0 <= words[1] < 1 << 31:
        return None
    return Place(words[0], words[1], str(words[2]), str(words[3]) if len(words) > 3 else "")


def _choice(item: object) -> tuple[str, float | None] | None:
    words = cast("list[Any]", item) if isinstance(item, list) else []
    if not words:
        return None
    seconds = words[1] if len(words) > 1 else None
    return str(words[0]), float(seconds) if isinstance(seconds, (int, float)) else None


def _json(text: str) -> dict[str, Any]:
    try:
        return _dict(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _dict(content: object) -> dict[str, Any]:
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _items(content: object) -> list[object]:
    return cast("list[object]", content) if isinstance(content, list) else []


def _strings(content: object) -> list[str]:
    return [item for item in _items(content) if isinstance(item, str)]


def _texts(content: object) -> dict[str, str]:
    return {str(key): value for key, value in _dict(content).items() if isinstance(value, str)}


def _lists(content: object) -> dict[str, list[str]]:
    return {str(key): _strings(names) for key, names in _dict(content).items()}
