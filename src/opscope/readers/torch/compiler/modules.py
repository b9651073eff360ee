"""Which module an operator is from, in logs that do not say so.

What is known: the inputs of Dynamo's graph are parameters with their full path, and every operator has the innermost
line of the user's code. An operator that reads a parameter is in the module that holds it, or in the one whose line
calls that module. The others are where the operators on the same lines are, in the same pass through them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from opscope.readers.torch.names import base_name, short_class

from .calls import Calls
from .decompositions import Parts, parts_of
from .flow import Flow, flow_of
from .printed import Node, Place, Printed, names_in
from .runs import Owned, Path, Runs, into_leaves, prefix

_PART = re.compile(r"\._(modules|parameters|buffers)\['([^']*)'\]|\.(\w+)|\[(\d+)\]")
_ROOT = re.compile(r"^[LG]\['\w+'\]")
_OPTIMIZER = re.compile(r"^L\['self'\]\.(param_groups\[|state\[)")


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


def of_dynamo(printed: Printed, inputs: Mapping[str, Held], calls: Calls) -> Owned:
    """The module of every operator of Dynamo's graph, by name."""
    flow = flow_of(printed)
    owners: dict[str, Path] = {}
    aliases = printed.aliases
    root = next((held.module[:1] for held in inputs.values()), ())
    guessed = set[str]()
    for node in printed.nodes:
        read = [inputs[name] for name in _reads(node, aliases) if name in inputs]
        if node.module:
            owners[node.name] = (*root, *node.module.split("."))
        elif read and not _is_shared(flow.op[node.name], read, calls):
            owners[node.name] = _owner(read)
            if "higher_order." in node.target:  # what it runs is in the module, it may be called by another
                guessed.add(node.name)
    runs = Runs(flow, owners, calls, root)
    found = into_leaves(runs, runs.decide())
    return Owned({**found.owners, **owners}, found.guessed | guessed)


def _is_shared(op: str, read: Sequence[Held], calls: Calls) -> bool:
    """A matrix product with the weight of an embedding is work of another module, which has the same weight."""
    classes = {short_class(calls.modules.get(held.module, "")) for held in read}
    return classes == {"Embedding"} and op.rpartition(".")[2] in ("linear", "matmul", "mm")


class Course(NamedTuple):
    """The lines that Dynamo's graph runs, in order, and the module of each."""

    owners: list[Path]
    visits: dict[Place, list[int]]  # positions in `owners`
    parts: list[Parts | None]  # what each may become


_NEAR = 400  # operators: a line that is further away does not say how far the run has come


def of_lowered(
    printed: Printed,
    inputs: Mapping[str, Held],
    course: Course,
    known: Mapping[str, Path],
    reported: Mapping[str, Path],
    backward: Iterable[str],
) -> Owned:
    """The module of every operator of a graph that was made from Dynamo's.

    It runs through the same lines in the same order, and its backward operators in the opposite one. `known` are the
    modules of values that come from outside, `reported` those of operators of which is known what they come from.
    """
    flow = flow_of(printed)
    late = set(backward)
    found: dict[str, Path] = {}
    guessed = set[str]()
    has_choice = len(set(course.owners)) > 1
    position: int = 0
    turned = False
    for name, node in flow.nodes.items():
        visits: list[int] = course.visits.get(node.place, []) if node.place is not None else []
        if name in reported:
            found[name] = reported[name]
            here = [i for i in visits if course.owners[i] == reported[name]]
            position = _nearest(here, position)
            continue
        if node.borrowed:
            continue
        visits = _able(course, visits, flow.op[name], name in late) or visits
        if not visits:
            holders = [inputs[read].module for read in flow.reads[name] if read in inputs]
            if holders:  # the new content of a buffer has no line
                found[name] = holders[0]
            if node.place is not None and has_choice:  # a line that only a graph inside of Dynamo's has
                guessed.add(name)
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
        if len({course.owners[i] for i in visits}) > 1:
            guessed.add(name)
        if fitting or abs(best - position) < _NEAR:
            position = best
    for name in flow.nodes:  # made by the compiler itself, or without a line that Dynamo's graph has
        if name not in found and (around := [found[read] for read in flow.reads[name] if read in found]):
            found[name] = prefix(around)
    for name in reversed(flow.nodes):
        if name not in found and (around := [found[read] for read in flow.readers.get(name, ()) if read in found]):
            found[name] = prefix(around)
    return Owned(found, guessed)


def _able(course: Course, visits: Sequence[int], op: str, is_late: bool) -> list[int]:
    """Those of Dynamo's operators that may become this one."""
    short = base_name(op).rpartition(".")[2]
    return [i for i in visits if (parts := course.parts[i]) and short in (parts.backward if is_late else parts.forward)]


def _nearest(places: Sequence[int], position: int) -> int:
    return min(places, key=lambda place: abs(place - position), default=position)


def _ahead(steps: int) -> int:
    """How far it is to a line: what lies behind is far away, because the run does not go back."""
    return steps if steps >= 0 else _NEAR - steps


def course_of(printed: Printed, owners: Mapping[str, Path]) -> Course:
    course = Course([], defaultdict(list), [])
    for node in printed.nodes:
        if node.place is not None and node.name in owners:
            course.visits[node.place].append(len(course.owners))
            course.owners.append(owners[node.name])
            course.parts.append(parts_of(node.target.rpartition(".")[2]))
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
    return prefix(list({held.module for held in read}))
