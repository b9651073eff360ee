"""What torch's graphs know of their operators and their printed text does not say: modules, phases, origins."""

from __future__ import annotations

import gc
import json
import re
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from opscope.tracers.arguments import is_a
from opscope.tracers.torch import private
from opscope.tracers.torch.parts import named_parts, stored
from opscope.tracers.torch.private import the_torch

_PART = re.compile(r"\.(\w+)|\[['\"]?(\w+)['\"]?\]")
_FRAME = re.compile(r'File "([^"\n]+)", line (\d{1,9}), in ([^\n]+)\n([^\n]*)')
_ROOT = re.compile(r"^[LG]\['\w+'\]")


class Place(NamedTuple):
    """A module: the model that it is in, and the path from there."""

    root: int  # of Modules.roots
    path: str


class Held(NamedTuple):
    place: Place  # of the tensor, its own name last
    role: str


class Modules:
    """The models of the process, by the modules inside them."""

    def __init__(self, given: Iterable[tuple[str, Any]]) -> None:
        self.roots: list[str] = []
        self._places: dict[int, tuple[Any, Place]] = {}  # id -> reference, place
        self._tensors: dict[int, tuple[Any, Held]] = {}
        self._code: dict[str, int] = {}
        self._searched = False
        for name, module in given:
            self.add(name, module)

    def add(self, name: str, module: Any) -> None:
        module = private.uncompiled(module)
        if self.place(module) is not None:
            return
        number = len(self.roots)
        self.roots.append(name)
        for part in named_parts(module):
            self._places.setdefault(id(part.module), (weakref.ref(part.module), Place(number, part.path)))
            for role, where in (("parameter", "_parameters"), ("buffer", "_buffers")):
                for key, tensor in stored(part.module, where):
                    if tensor is not None:
                        path = f"{part.path}.{key}" if part.path else key
                        self._tensors.setdefault(id(tensor), (weakref.ref(tensor), Held(Place(number, path), role)))

    def name_state(self, name: str, tensor: Any) -> None:
        """A tensor of an optimizer."""
        self._tensors.setdefault(id(tensor), (weakref.ref(tensor), Held(Place(-1, name), "state")))

    def place(self, module: Any) -> Place | None:
        found = self._places.get(id(module))
        return found[1] if found is not None and found[0]() is module else None

    def by_id(self, number: int) -> Place | None:
        """The place of a module that lives at this address."""
        if number not in self._places and not self._searched:
            self._searched = True
            self._search()
        found = self._places.get(number)
        return found[1] if found is not None and found[0]() is not None else None

    def held(self, tensor: Any) -> Held | None:
        found = self._tensors.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def add_code(self, name: str) -> Place:
        """Code that is in no module: a function, an optimizer."""
        if name not in self._code:
            self._code[name] = len(self.roots)
            self.roots.append(name)
        return Place(self._code[name], "")

    def _search(self) -> None:
        """All models of the process: those that no other module holds."""
        kind = the_torch().nn.Module
        modules = [held for held in gc.get_objects() if is_a(held, kind)]
        inside = {id(inner) for module in modules for _, inner in stored(module, "_modules")}
        for module in modules:
            if id(private.uncompiled(module)) == id(module) and id(module) not in inside:
                self.add(type(module).__name__, module)
        for module in modules:  # those inside what only torch.compile holds
            original = private.uncompiled(module)
            if original is not module:
                self.add(type(original).__name__, original)


class Base(NamedTuple):
    """What code outside of the modules that it calls belongs to: the compiled model itself, or a function."""

    place: Place
    phase: str = ""  # "optimizer" in the step of one


Line = tuple[str, int, str, str]  # file, number, function, code


class Table(NamedTuple):
    """One graph as it was printed."""

    operators: int
    edges: int
    modules: dict[str, Place]
    classes: dict[Place, str]
    tags: dict[str, str]  # forward, backward
    sources: dict[str, list[str]]  # operators of other graphs, Dynamo's above all
    replaced: dict[str, list[str]]  # operators of this graph that a pass has made others of
    inputs: dict[str, Held]
    base: Base | None
    lines: dict[str, Line]  # of operators that the compiler made, which have none of their own
    takes_gradients: bool = False  # gradients are among its inputs


def describe(graph: Any, modules: Modules, base: Base | None) -> Table:
    table = Table(0, 0, {}, {}, {}, {}, {}, {}, base, {})
    count = edges = 0
    takes_gradients = False
    for node in graph.nodes:
        meta = node.meta
        if node.op == "placeholder":
            takes_gradients = takes_gradients or node.name.startswith("tangents")
            held = _held(node, modules)
            if held is not None:
                table.inputs[node.name] = held
            continue
        if not node.op.startswith("call"):
            continue
        count += 1
        edges += len(node.all_input_nodes)
        tag = meta.get("partitioner_tag", "")
        if tag in ("is_forward", "is_backward"):
            table.tags[node.name] = tag[3:]
        place = _place(meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack"), modules, table.classes)
        if place is None and (meta.get("is_gradient_acc") or not meta.get("stack_trace")):
            place = _shared([table.modules.get(read.name) for read in node.all_input_nodes])  # made by the compiler
        if place is None and base is not None:
            place = base.place
        if place is not None:
            table.modules[node.name] = place
        for own, names in zip((table.sources, table.replaced), _sources(node, id(graph)), strict=True):
            if names:
                own[node.name] = names
    _inherit(graph, table)
    return table._replace(operators=count, edges=edges, takes_gradients=takes_gradients)


def _sources(node: Any, graph: int) -> tuple[list[str], list[str]]:
    """What torch says that an operator was made from: in other graphs, and in its own."""
    other: dict[str, None] = {}
    own: dict[str, None] = {}
    for source in node.meta.get("from_node") or ():
        name = getattr(source, "name", "")
        if name:
            info = getattr(source, "node_info", None)
            (own if getattr(info, "graph_id", None) == graph else other)[name] = None
    return list(other), [name for name in own if name != node.name]


def _inherit(graph: Any, table: Table) -> None:
    """Operators that the compiler made itself have the line of what they read, or else of what reads them."""
    lines: dict[str, Line | None] = {}
    bare = [node for node in graph.nodes if node.op.startswith("call") and not node.meta.get("stack_trace")]

    def line_of(node: Any) -> Line | None:
        if node.name not in lines:
            lines[node.name] = table.lines.get(node.name) or _line(node.meta.get("stack_trace"))
        return lines[node.name]

    for ordered, near in ((bare, "all_input_nodes"), (bare[::-1], "users")):
        for node in ordered:
            around = list(getattr(node, near))
            found = next((line for other in around if (line := line_of(other)) is not None), None)
            if found is not None and node.name not in table.lines:
                table.lines[node.name] = lines[node.name] = found
            place = _shared([table.modules.get(other.name) for other in around])
            if place is not None and node.name not in table.modules:
                table.modules[node.name] = place


def _line(trace: Any) -> Line | None:
    """The innermost line of a stack, as Python writes it."""
    found = _FRAME.findall(trace) if isinstance(trace, str) else ()
    return (found[-1][0], int(found[-1][1]), found[-1][2], found[-1][3].strip()) if found else None


def _place(stack: Any, modules: Modules, classes: dict[Place, str]) -> Place | None:
    """The innermost module around an operator."""
    if not is_a(stack, dict) or not stack:
        return None
    found: Place | None = None
    for key, held in cast("dict[str, Any]", stack).items():
        entry = cast("tuple[Any, ...]", held) if type(held) is tuple else ()
        number = str(key).partition("@")[0]
        known = modules.by_id(int(number)) if number.isdigit() else None
        if known is not None:
            found = known
        elif entry:
            # Made on the way, and gone again: by the words that Dynamo has for it.
            words = [a or b for a, b in _PART.findall(_ROOT.sub("", str(entry[0])))]
            found = Place(found.root if found else 0, ".".join(words))
        if found is not None and len(entry) > 1:
            classes.setdefault(found, getattr(entry[1], "__name__", str(entry[1]).rpartition(".")[2]))
    return found


def _shared(places: list[Place | None]) -> Place | None:
    known = [place for place in places if place is not None]
    if not known or len({place.root for place in known}) > 1:
        return None
    paths = [place.path.split(".") for place in known]
    shared = paths[0]
    for path in paths[1:]:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    return Place(known[0].root, ".".join(shared))


def _held(node: Any, modules: Modules) -> Held | None:
    """The parameter or buffer that an input of Dynamo's graph is."""
    argument = node.meta.get("grapharg")
    try:
        example = getattr(argument, "example", None)
    except Exception:  # it is gone
        example = None
    return modules.held(example) if example is not None else None


def text(table: Table, modules: Modules, kind: str) -> Callable[[], str]:
    """The record of a graph, written when all models are known."""

    def written() -> str:
        def path(place: Place) -> str:
            name = modules.roots[place.root] if len(modules.roots) > place.root >= 0 else ""
            return ".".join(filter(None, (name, place.path)))

        if kind == "aot_joint_graph":
            phases = table.tags
        elif table.takes_gradients:
            phases = {name: "recompute" if tag == "forward" else tag for name, tag in table.tags.items()}
        else:  # what the partitioner has moved from backward to forward runs in forward
            phases = dict.fromkeys(table.tags, "forward")
        if table.base is not None and table.base.phase:
            phases = dict.fromkeys(table.modules, table.base.phase)
        return json.dumps(
            {
                "nodes": table.operators,
                "edges": table.edges,
                "modules": {name: path(place) for name, place in table.modules.items()},
                "types": {path(place): name for place, name in table.classes.items()},
                "phases": phases,
                "from": table.sources,
                "replaced": table.replaced,
                "lines": table.lines,
                "inputs": {
                    name: [_input_name(held, modules, path), held.role, path(held.place).rpartition(".")[0]]
                    for name, held in table.inputs.items()
                },
            }
        )

    return written


def _input_name(held: Held, modules: Modules, path: Callable[[Place], str]) -> str:
    """Parameters go by the names that their model gives them, where there is only one."""
    return held.place.path if len(modules.roots) < 2 or held.place.root < 0 else path(held.place)
