"""What may be known about a graph beside the graph: one declaration for each kind of fact.

A fact is a `Table` whose `fact` names one of these kinds. It is found by that name and its stage, never by its title.
`verify_capture` checks a table against its declaration, `map_table` carries it along when a graph is cut or gets other
pools, and `viewer/src/wire/facts.ts` is generated from here (`make viewer`).

A table without a kind is the user's own, or a framework's: it has columns and rows, and no promise beyond that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .enumerations import (
    CHANGE_CLASSES,
    EVENT_KINDS,
    EVIDENCE,
    FAMILIES,
    GAP_TOUCHES,
    HOW,
    MEMORY_CLASSES,
    PHASES,
    SAVING_KINDS,
    TRACK_KINDS,
)

# What the rows of a table are: `op` is the name of an operator (a string of the pools), `row` nothing but a row.
BY = ("node", "value", "scope", "group", "op", "row")

# Units of time, in seconds.
TIME_UNITS: Mapping[str, float] = MappingProxyType({"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9})


@dataclass(frozen=True)
class Field:
    """A column of a fact."""

    name: str
    doc: str
    unit: str = ""  # "time": any of TIME_UNITS
    holds: str = "numbers"  # or "text", or "lists" of numbers
    refers: str = ""  # numbers of `node`, or of `node before`: those of the stage that this one was made from
    members: tuple[str, ...] = ()  # an enumeration: the column holds positions in it
    optional: bool = False
    least: int | None = None  # what every known number must reach


@dataclass(frozen=True)
class Fact:
    """A kind of fact: what its rows are (one of `by`) and which columns it has."""

    name: str
    doc: str
    by: tuple[str, ...]
    fields: tuple[Field, ...]
    of: str = "graph"  # or "stage": not shared by the stages that have the same graph

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


TIMES = Fact(
    "times",
    "What was measured while it ran.",
    ("node", "scope", "group:kernel", "group:copy"),
    (
        Field("time", "the time of one run: of several, their mean; of an operator, on its device", "time"),
        Field("cpu", "the time of the operator's call on the CPU", "time", optional=True),
        Field("start", "when it began", "time", optional=True),
        Field("least", "the fastest run", "time", optional=True),
        Field("most", "the slowest run", "time", optional=True),
        Field("median", "the median of its runs in all recorded steps", "time", optional=True),
        Field("runs", "how often it ran", optional=True),
    ),
)
PROFILE = Fact(
    "profile",
    "How much of a measured profile found its place in the graph: kernels by evidence, and by name those without.",
    ("row",),
    (
        Field("evidence", "how their place is known; empty: they have none", holds="text"),
        Field("name", "the kernels' name, of those without a place", holds="text"),
        Field("reason", "why they have none", holds="text"),
        Field("kernels", "how many ran"),
        Field("time", "what they took together", "time"),
        Field("with module", "how many of them belong to a module"),
        Field("with line", "how many of them belong to a line of source"),
    ),
)
SPLIT = Fact(
    "split",
    "Where the time of a profiled run went: work, overlap, and why devices were idle.",
    ("row",),
    (
        Field("name", "what it is", holds="text"),
        Field("time", "how long", "time"),
        Field("count", "of how many pieces of work, or gaps between them"),
        Field("explanation", "how it is counted", holds="text"),
    ),
)
EVENTS = Fact(
    "events",
    "What ran when in a measured profile, by what of the graph it belongs to; a row: nothing of the graph.",
    ("node", "scope", "group:kernel", "group:copy", "row"),
    (
        Field("start", "when it began, from the beginning of the profile", "time"),
        Field("time", "how long it took", "time"),
        Field("track", "where it ran: a row of `tracks`", least=0),
        Field("name", "what it is called: a row of `event_names`", least=0),
        Field("kind", "what it is", members=EVENT_KINDS),
        Field("delay", "of work on a device: from the beginning of the call that started it", "time", optional=True),
        Field("launched on", "the track of that call", optional=True),
    ),
    of="stage",
)
TRACKS = Fact(
    "tracks",
    "The threads and streams of a measured profile.",
    ("row",),
    (
        Field("name", "its name", holds="text"),
        Field("kind", "what it is", members=TRACK_KINDS),
        Field("device", "the number of its device, of a stream"),
        Field("left out", "how many events of it the capture does not hold"),
    ),
    of="stage",
)
EVENT_NAMES = Fact(
    "event_names",
    "What the events of a measured profile are called, each name once.",
    ("row",),
    (Field("name", "the name", holds="text"),),
    of="stage",
)
DEVICES = Fact(
    "devices",
    "The devices that a profile was taken on, as the profiler describes them.",
    ("row",),
    (
        Field("number", "by which streams name it"),
        Field("name", "what it is", holds="text"),
    ),
    of="stage",
)
SAVINGS = Fact(
    "savings",
    "Where time could be won in a measured run: what was found, by which rule, and how much it is at most.",
    ("row",),
    (
        Field("kind", "what is found", members=SAVING_KINDS),
        Field("name", "what it is about", holds="text"),
        Field("time", "how long it took", "time"),
        Field("most", "what it would save at most; not known: nobody can say", "time"),
        Field("count", "how many kernels, gaps or copies it is about"),
        Field("nodes", "the operators that it is about, the most expensive first", refers="node", holds="lists"),
        Field("why", "the rule that found it, with its figures", holds="text"),
    ),
)
WORK = Fact(
    "work",
    "Pieces of work that were measured, by the first operator of each: what ran together, and what that costs.",
    ("node",),
    (
        Field("time", "how long it took: all kernels that are of just these operators", "time"),
        Field("macs", "multiply-accumulates; not known where an operator's cost is not", "MACs"),
        Field("causal", "the same without what causal masks hide", "MACs"),
        Field("other", "all other floating-point operations", "FLOPs"),
        Field("bytes", "what it reads from memory and writes to it", "B"),
        Field("kernels", "how many kernels it is; 0: only the operator was measured"),
        Field("nodes", "its operators", refers="node", holds="lists"),
    ),
)
UTILIZATION = Fact(
    "utilization",
    "What a measured step made of its device.",
    ("row",),
    (
        Field("name", "the figure, as `Capture.utilization` calls it", holds="text"),
        Field("share", "of the device's peak", optional=True),
        Field("time", "seconds", "time", optional=True),
        Field("device", "the device; empty: its peaks are not known", holds="text"),
        Field("at least", "the cost of some operators is not known"),
    ),
)
BLOCKS = Fact(
    "blocks",
    "Memory that an allocator had handed out when most was alive, or when it refused to hand out more.",
    ("row",),
    (
        Field("value", "what is in it, where that is known"),
        Field("bytes", "its size", "B"),
        Field("class", "what it is held for; `refused`: what there was no memory for", holds="text"),
        Field("evidence", "how the value is known; empty: it is not", holds="text"),
        Field("stack", "where it was asked for", holds="text"),
    ),
)
COSTS = Fact(
    "costs",
    "What every operator costs; docs/stats.md defines the figures.",
    ("node",),
    (
        Field("macs", "multiply-accumulates", "MACs"),
        Field("causal", "MACs without what causal masks hide; absent where nothing is causal", "MACs", optional=True),
        Field("other", "all other floating-point operations", "FLOPs"),
        Field("read", "bytes read", "B"),
        Field("written", "bytes written", "B"),
        Field("wire", "bytes sent to other ranks; absent where nothing communicates", "B", optional=True),
        Field("activations", "bytes of the activations it makes", "B"),
        Field("how", "how exactly the cost is known", members=HOW),
        Field("at least", "something inside is unknown: the cost is at least this"),
    ),
)
LIFETIMES = Fact(
    "lifetimes",
    "Every storage, by the value that owns it: how large it is and when it is alive.",
    ("value",),
    (
        Field("bytes", "its size", "B"),
        Field("class", "what it holds", members=MEMORY_CLASSES),
        Field("born", "the first operator at which it is alive", refers="node"),
        Field("dies", "the last operator at which it is alive", refers="node"),
    ),
)
PARAMETERS = Fact(
    "parameters",
    "Every parameter, by the value that owns its storage.",
    ("value",),
    (
        Field("elements", "how many numbers it has"),
        Field("bytes", "its size", "B"),
        Field("node", "the operator that uses it first; -1: none", refers="node"),
    ),
)
KINDS = Fact(
    "kinds",
    "The operation behind an operator's name, and of nodes that are another one than their name says.",
    ("op", "node"),
    (
        Field("kind", "one name in every framework", holds="text"),
        Field("family", "what it is about", members=FAMILIES, optional=True),
    ),
)
VALUES = Fact(
    "values",
    "Numbers of tensors, and statistics of them.",
    ("value",),
    (
        Field("values", "the numbers themselves, or the first of them", holds="lists", optional=True),
        Field("norm", "the square root of the sum of their squares", optional=True),
        Field("min", "the smallest number", optional=True),
        Field("max", "the largest number", optional=True),
        Field("mean", "their mean", optional=True),
        Field("std", "their standard deviation", optional=True),
        Field("nan", "how many are not a number", optional=True),
        Field("inf", "how many are infinite", optional=True),
        Field("neginf", "how many of these are negative", optional=True),
        Field("zeros", "how many are zero", optional=True),
        Field("subnormal", "how many are so small that they lose digits", optional=True),
        Field("rms", "the root of the mean of the squares of those that are finite", optional=True),
        Field(
            "exponents",
            "how many lie in each range of powers of two, see measurements.EXPONENTS",
            holds="lists",
            optional=True,
        ),
        Field("sampled", "the exponents and the subnormal numbers are counted in a sample", optional=True),
        Field("hash", "equal numbers have equal ones", holds="text", optional=True),
    ),
)
ORIGINS = Fact(
    "origins",
    "Where numbers that are not finite were born, the first first.",
    ("row",),
    (
        Field("node", "the operator that made them; of what came with them, the first that read it", refers="node"),
        Field("value", "the tensor in which they appear first"),
        Field("kind", "nan or inf", holds="text"),
        Field("what", "input, parameter, buffer or state of what came with them; else the operator", holds="text"),
        Field("forward", "of a gradient: the operator whose gradient it is; -1: none", refers="node"),
        Field("spread", "how many operators got what it made"),
        Field("story", "the operators on the way to where it ended", holds="lists"),
    ),
    of="stage",
)
GRADIENTS = Fact(
    "gradients",
    "What was seen of the gradients that an autograd engine handed on, by the value of each.",
    ("value",),
    (
        Field("place", "the device that it lay on, as the framework writes it", holds="text", optional=True),
        Field("evidence", "how its type is known", holds="text", optional=True),
        Field("out_slot", "which result of the node it is", optional=True),
        Field("out_rank", "its place in that result, where it is a list", optional=True),
        Field("in_slot", "which argument of the next node it is added to", optional=True),
        Field("in_rank", "its place in that argument", optional=True),
        Field("norm", "the root of the sum of its squares", optional=True),
        Field("min", "the smallest number", optional=True),
        Field("max", "the largest number", optional=True),
        Field("mean", "the mean", optional=True),
        Field("nan", "how many are not a number", "elements", optional=True),
        Field("inf", "how many are infinite", "elements", optional=True),
    ),
)
IDS = Fact(
    "ids",
    "The numbers that a framework itself gives to operators and tensors; its messages speak of them.",
    ("node", "value"),
    (Field("id", "the number"),),
)
CHANGES = Fact(
    "changes",
    "What a stage changed in the stage it was made from.",
    ("row",),
    (
        Field("class", "what happened", members=CHANGE_CLASSES),
        Field("before", "the operators it happened to", refers="node before", holds="lists"),
        Field("after", "the operators they became", refers="node", holds="lists"),
        Field("evidence", "how we know", members=EVIDENCE),
        Field("detail", "what is different, in words", holds="text"),
    ),
    of="stage",
)
BREAKS = Fact(
    "breaks",
    "Where and why a compiler stopped a graph before the program ended.",
    ("row",),
    (
        Field("file", "the source file", holds="text"),
        Field("line", "the line in it"),
        Field("reason", "the compiler's reason", holds="text"),
        Field("frame", "the frame that ended there, as the compiler writes it", holds="text", optional=True),
        Field("before", "the stage of the graph that ends there", holds="text", optional=True),
        Field("after", "the stage of the graph that goes on there", holds="text", optional=True),
        Field(
            "crossing",
            "the values that go from one to the other: a name and a type a line",
            holds="text",
            optional=True,
        ),
    ),
    of="stage",
)
RECOMPILES = Fact(
    "recompiles",
    "What a compiler compiled once more, and why.",
    ("row",),
    (
        Field("frame", "the frame and the count of its compilations, as the compiler writes them", holds="text"),
        Field("reason", "what did not hold any more", holds="text"),
    ),
    of="stage",
)
LINES = Fact(
    "lines",
    "Which lines of the stage's listings belong to which operators: any number of lines to any number of operators.",
    ("node",),
    (
        Field("listing", "the kind of the listing", holds="text"),
        Field("line", "the line, from 1, as `str.splitlines` counts", least=1),
    ),
    of="stage",
)
FILES = Fact(
    "files",
    "The files that hold the generated code of kernels. Python files are named by the frames of stacks.",
    ("group:kernel",),
    (Field("file", "its path", holds="text"),),
)
COMPILE_TIMES = Fact(
    "compile_times",
    "How long a compiler took, by what it compiled and by phase. Phases of one frame and direction do not overlap.",
    ("row",),
    (
        Field("frame", "the frame and the count of its compilations, as the compiler writes them", holds="text"),
        Field("function", "the function that was compiled", holds="text"),
        Field("direction", "what was compiled: forward or backward", members=PHASES),
        Field("phase", "what the compiler did", holds="text"),
        Field("time", "how long it took", "time"),
    ),
    of="stage",
)
NOT_FUSED = Fact(
    "not_fused",
    "Why two kernels of a stage are not one, in the compiler's own words.",
    ("row",),
    (
        Field("kernel", "the kernel that is launched first", refers="node"),
        Field("other", "the other one", refers="node"),
        Field("reason", "what the compiler said", holds="text"),
    ),
    of="stage",
)
GAPS = Fact(
    "gaps",
    "What ran and is not in the graph: every figure that it touches is only a lower bound. By the module it ran in.",
    ("scope",),
    (
        Field("reason", "why it is not there, as a sentence", holds="text"),
        Field("count", "how many operators; not known: at least one"),
        Field("inside", "it may have run in any module inside of this one, too"),
        Field("phase", "the phase it ran in; not known: any", members=PHASES),
        Field("op", "the operator's name; empty: not known", holds="text"),
        Field("touches", "the figures that are too low because of it", holds="lists", members=GAP_TOUCHES),
    ),
)

RANK = Fact(
    "rank",
    "Which rank of a distributed program a stage was recorded as.",
    ("row",),
    (Field("rank", "its number"), Field("world", "how many ranks there are")),
    of="stage",
)
RANK_GROUPS = Fact(
    "rank_groups",
    "The groups of ranks that the recorded rank was in.",
    ("row",),
    (
        Field("dimension", "what the program calls the group", holds="text"),
        Field("ranks", "who is in it: 0-7, 0-56:8 for every eighth, separated by commas", holds="text"),
    ),
    of="stage",
)
RANK_CLASS = Fact(
    "rank_class",
    "The ranks that compute what a stage computes, and what one of them takes.",
    ("row",),
    (
        Field("ranks", "all of them", holds="text"),
        Field("seen", "those whose graphs were recorded and compared; the others are inferred", holds="text"),
        Field("parameters", "numbers in its parameters"),
        Field("parameter bytes", "", "B"),
        Field("state bytes", "what its optimizer keeps", "B"),
        Field("gradient bytes", "gradients of parameters that it keeps", "B"),
        Field("activation bytes", "what its forward pass makes", "B"),
        Field("peak bytes", "most that is alive at once, at least", "B"),
        Field("macs", "multiply-accumulates", "MACs"),
        Field("other", "all other floating-point operations", "FLOPs"),
        Field("moved bytes", "bytes read and written", "B"),
        Field("wire bytes", "bytes sent to other ranks", "B"),
        Field("at least", "some operator's cost is not known: the figures are lower bounds"),
        Field("odd", "in which way it differs from ranks in its place; empty: it does not", holds="text"),
    ),
    of="stage",
)
RANK_WIRES = Fact(
    "rank_wires",
    "What a rank sends to others, by dimension of the mesh.",
    ("row",),
    (
        Field("dimension", "what the program calls the group", holds="text"),
        Field("size", "ranks in a group"),
        Field("bytes", "what it sends", "B"),
        Field("operators", "how many operators communicate"),
    ),
    of="stage",
)
MESH = Fact(
    "mesh",
    "How the ranks of a distributed program are laid out: a dimension a row, the outermost first.",
    ("row",),
    (
        Field("dimension", "its name", holds="text"),
        Field("size", "how many ranks it has"),
        Field("stride", "how far neighbours are apart"),
    ),
)
OWN = Fact(
    "own",
    "Figures of the user's own, of operators or whole modules: any columns, of numbers or of text.",
    ("node", "scope"),
    (),
)
# The headers of a user's table that say which operator or module a row is about: by the number of a node, the path of a
# module, or a name.
OWN_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "node": ("node", "node_id", "id", "index", "#"),
        "path": ("path", "scope", "module", "layer"),
        "name": ("name", "node_name"),
    }
)
# Headers that are the capture's own words for an operator: no figures.
OWN_LABELS = ("op", "phase", "type", "class", "kind", "how")

# What a statistic of a tensor may be, and what the search language calls it.
VALUE_FIGURES = tuple(field.name for field in VALUES.fields if field.holds == "numbers" and field.name != "sampled")

FACTS: Mapping[str, Fact] = MappingProxyType(
    {
        fact.name: fact
        for fact in (
            *(
                TIMES,
                PROFILE,
                SPLIT,
                EVENTS,
                TRACKS,
                EVENT_NAMES,
                DEVICES,
                SAVINGS,
                WORK,
                UTILIZATION,
                BLOCKS,
                COSTS,
                LIFETIMES,
                PARAMETERS,
                KINDS,
                VALUES,
                ORIGINS,
                GRADIENTS,
                IDS,
            ),
            *(CHANGES, BREAKS, RECOMPILES, COMPILE_TIMES, NOT_FUSED, GAPS, LINES, FILES, OWN),
            *(RANK, RANK_GROUPS, RANK_CLASS, RANK_WIRES, MESH),
        )
    }
)
