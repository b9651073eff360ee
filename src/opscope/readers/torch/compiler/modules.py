"""Which module an operator is from, in logs that do not say so.

What is known: the inputs of Dynamo's graph are parameters with their full path, and every operator has the innermost
line of the user's code. An operator that reads a parameter is in the module that holds it, or in the one whose line
calls that module. The others are where the operators on the same lines are, in the same pass through them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from opscope.readers.torch.names import short_class

from .calls import Calls
from .flow import Flow, flow_of
from .printed import Node, Place, Printed, names_in

Path = tuple[str, ...]
_PART = re.compile(r"\._(modules|parameters|buffers)\['([^']*)'\]|\.(\w+)|\[(\d+)\]")
_ROOT = re.compile(r"^[LG]\['\w+'\]")
_OPTIMIZER = re.compile(r"^L\['self'\]\.(param_groups\[|state\[)")
_AHEAD = 12  # operators, and lines
_NUMBER = re.compile(r"^\d+$")


class Held(NamedTuple):
    """A tensor that a module or an optimizer holds."""

    name: str  # `layers.0.fc.weight`
    role: str
    module: Path  # with the model's own name first


def held(source: str, roots: Mapping[str, Path]) -> Held | None:
    """`L['self']._modules['fc']._parameters['weight']` as `fc.weight`, a parameter of the module `fc`."""
    root = _ROOT.match(source)
    if root is None:
        return None
    owner = roots.get(root[0], ())
    if optimizer := _OPTIMIZER.match(source):
        role = "state" if optimizer[1] == "state[" else "parameter"
        return Held(source[root.end() + 1 :][:200], role, owner)
    if "._parameters[" not in source and "._buffers[" not in source:
        return None
    path = [name or attribute or index for _, name, attribute, index in _PART.findall(source[root.end() :])]
    role = "parameter" if "._parameters[" in source else "buffer"
    return Held(".".join(path), role, (*owner, *path[:-1])) if path else None


def spelled(source: str) -> str:
    """A source as Dynamo spells it in the name of an input."""
    return re.sub(r"_+", "_", re.sub(r"\W", "_", source)).lower().strip("_")


def of_dynamo(printed: Printed, inputs: Mapping[str, Held], calls: Calls) -> dict[str, Path]:
    """The module of every operator of Dynamo's graph, by name."""
    flow = flow_of(printed)
    owners: dict[str, Path] = {}
    aliases = printed.aliases
    root = next((held.module[:1] for held in inputs.values()), ())
    for node in printed.nodes:
        read = [inputs[name] for name in _reads(node, aliases) if name in inputs]
        if node.module:
            owners[node.name] = (*root, *node.module.split("."))
        elif read and not _is_shared(flow.op[node.name], read, calls):
            owners[node.name] = _owner(read)
    return _leaves(flow, owners, _spread(flow, owners, calls), calls)


def _is_shared(op: str, read: Sequence[Held], calls: Calls) -> bool:
    """A matrix product with the weight of an embedding is work of another module, which has the same weight."""
    classes = {short_class(calls.modules.get(held.module, "")) for held in read}
    return classes == {"Embedding"} and op.rpartition(".")[2] in ("linear", "matmul", "mm")


def _leaves(flow: Flow, sure: Mapping[str, Path], found: dict[str, Path], calls: Calls) -> dict[str, Path]:
    """`nn.ReLU` and its like have nothing that an operator reads: they are known by their class, on the line that calls
    them."""
    for name, owner in found.items():
        place = flow.nodes[name].place
        if name in sure or place is None:
            continue
        short = flow.op[name].rpartition(".")[2].replace("_", "")
        fitting = [
            path
            for path in calls.leaves(place, owner)
            if len(short) > 2 and _fits(short, short_class(calls.modules[path]).lower())
        ]
        if fitting:
            before = max((found[read] for read in flow.reads[name] if read in found), default=())
            found[name] = next((path for path in fitting if path > before), fitting[0])
    return found


def _fits(op: str, cls: str) -> bool:
    """`relu` and `ReLU`, `max_pool2d` and `MaxPool2d`, `dropout` and `Dropout1d`."""
    return op == cls or cls.startswith(op) or op.startswith(cls)


class Course(NamedTuple):
    """The lines that Dynamo's graph runs, in order, and the module of each."""

    owners: list[Path]
    visits: dict[Place, list[int]]  # positions in `owners`


_NEAR = 400  # operators: a line that is further away does not say how far the run has come


def of_lowered(
    printed: Printed,
    inputs: Mapping[str, Held],
    course: Course,
    known: Mapping[str, Path],
    reported: Mapping[str, Path],
    backward: Iterable[str],
) -> dict[str, Path]:
    """The module of every operator of a graph that was made from Dynamo's.

    It runs through the same lines in the same order, and its backward operators in the opposite one. `known` are the
    modules of values that come from outside, `reported` those of operators of which Inductor says what they come from.
    """
    flow = flow_of(printed)
    late = set(backward)
    found: dict[str, Path] = {}
    position: int = 0
    turned = False
    for name, node in flow.nodes.items():
        visits: list[int] = course.visits.get(node.place, []) if node.place is not None else []
        if name in reported:
            found[name] = reported[name]
            here = [i for i in visits if course.owners[i] == reported[name]]
            position = _nearest(here, position)
            continue
        if not visits:
            holders = [inputs[read].module for read in flow.reads[name] if read in inputs]
            if holders:  # the new content of a buffer has no line
                found[name] = holders[0]
            continue
        if name in late and not turned:
            position, turned = len(course.owners), True
        hints = [inputs[read].module for read in _through(flow, name) if read in inputs]
        hints += [known[read] for read in _through(flow, name) if read in known]
        sign = -1 if name in late else 1
        if not hints:  # what was made on the same line just now
            reads = [read for read in flow.reads[name] if read in found and flow.nodes[read].place == node.place]
            hints = [found[read] for read in reads]
        fitting = [i for i in visits if any(hint[: len(course.owners[i])] == course.owners[i] for hint in hints)]
        best = min(fitting or visits, key=lambda i, at=position, way=sign: _ahead(way * (i - at)))
        found[name] = course.owners[best]
        if fitting or abs(best - position) < _NEAR:
            position = best
    return _spread(flow, found)


def _nearest(places: Sequence[int], position: int) -> int:
    return min(places, key=lambda place: abs(place - position), default=position)


def _ahead(steps: int) -> int:
    """How far it is to a line: what lies behind is far away, because the run does not go back."""
    return steps if steps >= 0 else _NEAR - steps


def course_of(printed: Printed, owners: Mapping[str, Path]) -> Course:
    course = Course([], defaultdict(list))
    for node in printed.nodes:
        if node.place is not None and node.name in owners:
            course.visits[node.place].append(len(course.owners))
            course.owners.append(owners[node.name])
    return course


def _reads(node: Node, aliases: Mapping[str, str]) -> Iterable[str]:
    for argument in node.arguments:
        for name in names_in(argument.text):
            yield aliases.get(name, name)


def _through(flow: Flow, name: str) -> Iterable[str]:
    """What an operator reads, and what that is a view or a copy in another precision of."""
    for read in flow.reads[name]:
        yield read
        base = flow.base(read)
        yield base
        if flow.op.get(base, "").startswith(("prims.convert_element_type", "aten._to_copy")):
            yield flow.base(flow.reads[base][0])


def _owner(read: Sequence[Held]) -> Path:
    """The module that holds the parameters, or what the holders have in common."""
    holders = {held.module for held in read}
    if len(holders) > 1:
        return _prefix(list(holders))
    (holder,) = holders
    return holder


def _spread(flow: Flow, found: dict[str, Path], calls: Calls | None = None) -> dict[str, Path]:
    """Operators between: on a line of a known module, in the pass through it that is nearest."""
    lines: dict[tuple[str, str, int], set[Path]] = defaultdict(set)
    names = list(flow.nodes)
    for name in names:
        place = flow.nodes[name].place
        if name in found and place is not None:
            lines[place.file, place.function, place.line].add(_line_owner(found[name], place))
    sure = [name for name in names if name in found]
    result = dict(found)
    settled = set[str]()
    order = {name: i for i, name in enumerate(names)}
    nearest = _Nearest(found, order)
    guards = _Guards(flow, calls or Calls(), names, order)
    passes = _Passes(flow, names, found, lowered=calls is None)
    position = 0
    for name in names:
        if name in found:
            position += 1
            continue
        place = flow.nodes[name].place
        before = sure[position - 1] if position else None
        after = sure[position] if position < len(sure) else None
        producers = [result[read] for read in flow.reads[name] if read in result]
        around = [found[other] for other in (before, after) if other is not None]
        if not producers and not around:
            continue
        line = (place.file, place.function, place.line) if place is not None else None
        same = lines[line] if line in lines else set[Path]()
        if calls is not None and (said := guards.candidates(name)):
            settled.add(name)
            result[name] = guards.inside(nearest.of(passes.votes(name, said) or said, order[name]), around)
        elif calls is not None and (own := passes.own(name)):
            settled.add(name)
            result[name] = own
        elif same:
            # In the pass through the line that made what it reads; else in the one that is nearest in the text.
            near = [producers, *([path] for path in around)]
            result[name] = max(
                sorted(passes.votes(name, list(same)) or same),
                key=lambda path: [max((_common(path, p) for p in paths), default=0) for paths in near],
            )
        elif before is not None and after is not None:
            shared = _prefix([found[before], found[after]])
            # Between two blocks of a list, `h`: it still belongs to the block that made what it reads.
            inside = max(producers, key=lambda path: _common(path, shared), default=shared)
            result[name] = (
                inside[: len(shared) + 1] if len(inside) > len(shared) and _is_item(inside, shared) else shared
            )
        else:
            only = found[before or after or ""]
            result[name] = only[:-1] or only
    return _alike(flow, {name: result[name] for name in result if name in found or name in settled}, result)


class _Passes:
    """The operators of one run through a function: its lines go down. Where they go up again, it is another run."""

    def __init__(self, flow: Flow, names: Sequence[str], sure: Mapping[str, Path], lowered: bool) -> None:
        self.flow, self.names, self.sure = flow, names, sure
        self.of: dict[str, int] = {}  # operator -> its run
        self.spans: list[tuple[int, int]] = []  # of each: its first and its last operator
        last: dict[tuple[str, str], tuple[int, Place, set[str]]] = {}  # function -> run, line, what is called on it
        before: Place | None = None
        for i, name in enumerate(names):
            place = flow.nodes[name].place
            if place is not None:
                run, at, on_line = last.get((place.file, place.function), (-1, place, set[str]()))
                # Below Dynamo's graph, what is called once on a line is several operators.
                stays = place == before and (lowered or flow.op[name] not in on_line)
                if run < 0 or not (place.line > at.line or stays):
                    run = len(self.spans)
                    self.spans.append((i, i))
                on_line = on_line if stays else set[str]()
                on_line.add(flow.op[name])
                last[place.file, place.function] = run, place, on_line
                self.of[name], self.spans[run] = run, (self.spans[run][0], i)
            before = place

    @cached_property
    def owners(self) -> dict[int, list[tuple[int, Path]]]:
        """Whose code each run is on the lines whose operators are surely known."""
        found: dict[int, list[tuple[int, Path]]] = defaultdict(list)
        for name, path in self.sure.items():
            place = self.flow.nodes[name].place
            if place is not None:
                found[self.of[name]].append((place.line, _line_owner(path, place)))
        return found

    def own(self, name: str) -> Path | None:
        """Whose code it is, by the next line of the run of which that is known. Further away may be another function:
        in a file of modules all are called `forward`."""
        place = self.flow.nodes[name].place
        owners = self.owners.get(self.of.get(name, -1), ())
        near = [(abs(line - place.line), line < place.line, path) for line, path in owners] if place else []
        distance, _, path = min(near, default=(_AHEAD + 1, False, ()))
        return path if distance <= _AHEAD else None

    def votes(self, name: str, candidates: Sequence[Path]) -> list[Path]:
        """Those of the candidates in which most surely known operators of the same run are: on lines of the function
        itself, and in what it calls."""
        run = self.of.get(name)
        if run is None:
            return []
        first, last = self.spans[run]
        counts: Counter[Path] = Counter()
        wanted = set(candidates)
        for other in self.names[first : last + 1]:
            path = self.sure.get(other)
            if path is not None:
                weight = 1000 if self.of.get(other) == run and path in wanted else 1
                for length in range(len(path) + 1):
                    if path[:length] in wanted:
                        counts[path[:length]] += weight
        most = max(counts.values(), default=0)
        return [path for path, count in counts.items() if count == most]


class _Nearest:
    """Where the operators of a module are whose module is sure."""

    def __init__(self, found: Mapping[str, Path], order: Mapping[str, int]) -> None:
        self.places: dict[Path, list[int]] = {}
        for name in sorted(found, key=order.__getitem__):
            for length in range(len(found[name]) + 1):
                self.places.setdefault(found[name][:length], []).append(order[name])

    def of(self, paths: Sequence[Path], at: int) -> Path:
        """The one of several copies of a module that runs nearest; of those without such operators, the one in the
        nearest module."""

        def distance(path: Path) -> tuple[int, int]:
            for length in range(len(path), -1, -1):
                places = self.places.get(path[:length])
                if places:
                    i = bisect_left(places, at)
                    return len(path) - length, min(abs(places[j] - at) for j in (i - 1, i) if 0 <= j < len(places))
            return len(path), 0

        return min(paths, key=distance)


class _Guards:
    """Whose code the lines of a graph are, by its guards."""

    def __init__(self, flow: Flow, calls: Calls, names: Sequence[str], order: Mapping[str, int]) -> None:
        self.flow, self.calls, self.names, self.order = flow, calls, names, order
        self.known: dict[Place, list[Path]] = {}

    def candidates(self, name: str) -> list[Path]:
        """The modules that a line may be code of; where no guard names it, those of the next lines of the function."""
        place = self.flow.nodes[name].place
        if place is None or not self.calls.modules:
            return []
        found = self.at(place)
        start = self.order[name]
        for other in self.names[start + 1 : start + _AHEAD] if not found else ():
            there = self.flow.nodes[other].place
            if there is None or (there.file, there.function) != (place.file, place.function):
                break
            if not 0 <= there.line - place.line <= _AHEAD:
                break
            if found := self.at(there):
                break
        return found

    def at(self, place: Place) -> list[Path]:
        if place not in self.known:
            self.known[place] = self.calls.candidates(place)
        return self.known[place]

    def inside(self, path: Path, around: Sequence[Path]) -> Path:
        """What lies between two operators of one module of torch itself is in it: its lines are not the user's."""
        shared = _prefix(around) if around else ()
        below = shared[: len(path) + 1]
        if shared[: len(path)] == path and len(shared) > len(path) and len(around) == 2:
            name = self.calls.modules.get(below, "")
            if name.startswith("torch.nn.") and "container" not in name:
                return shared
        return path


def _alike(flow: Flow, sure: Mapping[str, Path], found: dict[str, Path]) -> dict[str, Path]:
    """A line is code of one module, whichever of its copies runs it: what most passes through a line say, all say."""
    said: dict[tuple[str, str, int], Counter[Path]] = defaultdict(Counter)
    places = {name: node.place for name, node in flow.nodes.items() if node.place is not None}
    lines = {name: (place.file, place.function, place.line) for name, place in places.items()}
    for name, line in lines.items():
        if name in found and name not in sure:
            said[line][_pattern(found[name])] += 1
    for name, line in lines.items():
        if name in sure or name not in found:
            continue
        (pattern, _), *_others = said[line].most_common(1)
        if _pattern(found[name]) == pattern:
            continue
        producers = [found[read] for read in flow.reads[name] if read in found]
        fitting = [path[: len(pattern)] for path in producers if _pattern(path[: len(pattern)]) == pattern]
        if fitting:
            found[name] = fitting[-1]
    return found


def _pattern(path: Path) -> Path:
    """A path without the numbers in it: that of all copies of a module."""
    return tuple("*" if _NUMBER.match(part) else part for part in path)


def _is_item(path: Path, shared: Path) -> bool:
    return len(path) > len(shared) and bool(_NUMBER.match(path[len(shared)]))


def _line_owner(path: Path, place: Place) -> Path:
    """The module whose code a line is: one that is called on it, `self.fc(x)`, is inside that one."""
    return path[:-1] if path and re.search(rf"\b{re.escape(path[-1])}\(", place.code) else path


def _prefix(paths: Sequence[Path]) -> Path:
    shared = paths[0]
    for path in paths[1:]:
        shared = shared[: _common(shared, path)]
    return shared


def _common(a: Path, b: Path) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
