"""Whose code an operator of Dynamo's graph is, where several copies of a module run the same line.

A log says the line of every operator, the guards say which modules have code on it, and operators that read a
parameter show which copy of a module runs just then. The others are between two such operators: in the run of the copy
before, or already in that of the copy after. Where the run passes through the code around the copies, or its lines go
up again, one ends and the next begins; and what ends one run ends all runs of the same code. What this does not decide
is a guess, and said to be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from opscope.readers.torch.names import short_class

from .calls import Calls
from .flow import Flow
from .printed import Place

Path = tuple[str, ...]
_FAR = 400  # operators
_NEAR = 12  # lines
_NUMBER = re.compile(r"^\d+$")


class Owned(NamedTuple):
    """The modules whose code the operators are, by name, and those of them that are a guess."""

    owners: dict[str, Path]
    guessed: set[str]


class _Side(NamedTuple):
    """What lies on one side of an operator: the copy that runs there, or the code around all copies."""

    path: Path | None = None
    at: int = -1
    is_outside: bool = False


class Runs:
    def __init__(self, flow: Flow, sure: Mapping[str, Path], calls: Calls, root: Path) -> None:
        self.flow, self.sure, self.calls, self.root = flow, sure, calls, root
        self.names = list(flow.nodes)
        self.places = [flow.nodes[name].place for name in self.names]
        self.known: dict[tuple[str, str, int], tuple[frozenset[Path], bool]] = {}
        self.on_line: dict[tuple[str, str, int], set[Path]] = {}
        for name, path in sure.items():
            place = flow.nodes[name].place
            if place is not None:
                self.on_line.setdefault(_line(place), set()).add(self.line_owner(path, place))
        self.result = Owned({}, set())
        self.roles: dict[tuple[object, str], set[str]] = {}

    def decide(self) -> Owned:
        """Two rounds: the second knows on which side the operators of a line are elsewhere."""
        owners, guessed = self.result
        for is_last in (False, True):
            for i, name in enumerate(self.names):
                if name in self.sure or name in owners:
                    continue
                place = self.places[i]
                candidates, is_certain = self.candidates(place) if place is not None else (frozenset[Path](), False)
                if not candidates:
                    if is_last:
                        self.function(i)
                    continue
                if len(candidates) == 1:
                    (owners[name],) = candidates
                    if not is_certain:
                        guessed.add(name)
                    continue
                found = self.of(i, candidates, is_last)
                if found is not None:
                    owners[name] = found
                    if not is_certain:
                        guessed.add(name)
                elif is_last:
                    owners[name] = self.between(i, candidates) or self.root
                    guessed.add(name)
        return self.result

    # -- whose code a line is ------------------------------------------------------------------------

    def line_owner(self, path: Path, place: Place) -> Path:
        """The module in whose code a module is called that an operator is in: the lines are those of the user."""
        said = self.calls.candidates(place)
        found = max((c for c in said if path[: len(c)] == c), key=len, default=None)
        if found is not None:
            return found
        own = self.calls.modules.get(path, "")
        if own and not own.startswith("torch."):
            return path
        for length in range(len(path) - 1, 0, -1):
            name = self.calls.modules.get(path[:length], "")
            if name and not name.startswith("torch."):
                return path[:length]
        for length in range(len(path) - 1, 0, -1):  # without guards, by the code
            if not _NUMBER.match(path[length]) and re.search(rf"\b{re.escape(path[length])}\b", place.code):
                return path[:length]
        return path

    def candidates(self, place: Place) -> tuple[frozenset[Path], bool]:
        """The copies whose code a line is, and whether that is certain."""
        line = _line(place)
        if line not in self.known:
            said = {*self.calls.candidates(place), *self.on_line.get(line, ())}
            is_certain = bool(said)
            if not said:
                said, is_certain = self.around_line(place)
            self.known[line] = frozenset(said), is_certain
        return self.known[line]

    def around_line(self, place: Place) -> tuple[set[Path], bool]:
        """Of a line that nothing names: the copies whose code the lines above or below are. Which of the two is known
        where only one of these lines runs as often, or has as many copies as the line has runs."""
        known = {
            at: frozenset(copy for path in paths for copy in self.calls.copies(path))
            for (file, function, at), paths in self.on_line.items()
            if (file, function) == (place.file, place.function)
        }
        for at, paths in self.calls.on_lines(place):
            known[at] = known.get(at, frozenset()) | paths
        above = max((at for at in known if at < place.line), default=None)
        below = min((at for at in known if at > place.line), default=None)
        sides = [known[at] for at in (above, below) if at is not None]
        if len(set(sides)) == 1 and len(sides) == 2:
            return set(sides[0]), True
        runs = self.passes.get(_line(place), 0)
        lines = [at for at in (above, below) if at is not None]
        fitting = [known[at] for at in lines if self.passes.get((*_line(place)[:2], at)) == runs]
        fitting = fitting or [side for side in sides if len(side) == runs]
        if len(fitting) == 1:
            return set(fitting[0]), True
        near = [(abs(at - place.line), at) for at in (above, below) if at is not None and abs(at - place.line) <= _NEAR]
        return (set(known[min(near)[1]]) if near else set()), False

    @cached_property
    def passes(self) -> dict[tuple[str, str, int], int]:
        """How often the run comes to each line."""
        count: dict[tuple[str, str, int], int] = {}
        before: Place | None = None
        for place in self.places:
            if place is not None and place != before:
                count[_line(place)] = count.get(_line(place), 0) + 1
            before = place
        return count

    # -- which of the copies -------------------------------------------------------------------------

    def of(self, i: int, candidates: frozenset[Path], is_last: bool) -> Path | None:
        before, after = self.side(i, candidates, -1), self.side(i, candidates, 1)
        key = (self.places[i], self.flow.op[self.names[i]])
        if before.path is not None and before.path == after.path:
            return before.path
        if before.path is None and after.path is not None:
            if before.is_outside:
                self.roles.setdefault(key, set()).add("head")
            return after.path if before.is_outside or is_last else None
        if before.path is not None and after.path is None:
            if after.is_outside:
                self.roles.setdefault(key, set()).add("tail")
            return before.path if after.is_outside or is_last else None
        if before.path is None or after.path is None:
            return self.called(i, candidates)
        turn = self.turn(i, before.at, after.at)
        if turn is not None:
            self.roles.setdefault(key, set()).add("tail" if i < turn else "head")
            return before.path if i < turn else after.path
        roles = self.roles.get(key, set[str]())
        if is_last and len(roles) == 1:
            return before.path if "tail" in roles else after.path
        return None

    def called(self, i: int, candidates: frozenset[Path]) -> Path | None:
        """A module of which nothing else runs than what is looked at: the copy in the module around."""
        around: list[Path] = []
        for way in (-1, 1):
            at = i + way
            while 0 <= at < len(self.names) and self.path(at) is None:
                at += way
            if 0 <= at < len(self.names) and (path := self.path(at)) is not None:
                around.append(path)
        inside = prefix(around) if len(around) == 2 else None
        fitting = [path for path in candidates if path[:-1] == inside or path == inside]
        return fitting[0] if len(fitting) == 1 else None

    def path(self, at: int) -> Path | None:
        name = self.names[at]
        return self.sure.get(name) or (None if name in self.result.guessed else self.result.owners.get(name))

    def function(self, i: int) -> None:
        """Code of no module: it is called by the one whose code is before and after, or by one inside of which nothing
        else is known."""
        name = self.names[i]
        around = [self.neighbour(i, way) for way in (-1, 1)]
        known = [path for path in around if path is not None]
        if not known:
            return
        shared = self.result.owners[name] = prefix(known)
        if len(known) < 2 or known[0] != known[1] or self.has_idle(shared):
            self.result.guessed.add(name)

    def neighbour(self, i: int, way: int) -> Path | None:
        """The module whose code the next line of a module is."""
        at = i + way
        while 0 <= at < len(self.names):
            name, place = self.names[at], self.places[at]
            if name in self.sure:
                return self.line_owner(self.sure[name], place) if place is not None else self.sure[name]
            if name in self.result.owners and place is not None and self.candidates(place)[0]:
                return self.result.owners[name]
            at += way
        return None

    def has_idle(self, path: Path) -> bool:
        """Does a module call one inside of it of which no operator is known?"""
        return any(inside not in self.busy for inside in self.children.get(path, ()))

    @cached_property
    def children(self) -> dict[Path, list[Path]]:
        found: dict[Path, list[Path]] = {}
        for path, name in self.calls.modules.items():
            if not name.startswith("torch."):
                found.setdefault(path[:-1], []).append(path)
        return found

    @cached_property
    def busy(self) -> set[Path]:
        return {path[:n] for path in (*self.sure.values(), *self.result.owners.values()) for n in range(len(path) + 1)}

    def side(self, i: int, candidates: frozenset[Path], way: int) -> _Side:
        at = i + way
        while 0 <= at < len(self.names) and abs(at - i) < _FAR:
            name = self.names[at]
            path = self.sure.get(name)
            if path is None and way < 0 and name not in self.result.guessed:
                path = self.result.owners.get(name)
            if path is not None:
                inside = _longest(path, candidates)
                return _Side(inside, at) if inside is not None else _Side(None, at, True)
            place = self.places[at]
            others, is_certain = self.candidates(place) if place is not None else (frozenset[Path](), False)
            if is_certain and others and all(_longest(other, candidates) is None for other in others):
                return _Side(None, at, True)
            at += way
        return _Side(None, at, not 0 <= at < len(self.names))

    def turn(self, i: int, first: int, last: int) -> int | None:
        """Where the lines of the function go up again, between two copies: there the second begins."""
        place = self.places[i]
        if place is None:
            return None
        own, _ = self.candidates(place)
        lines = [
            (at, there.line)
            for at in range(first, last + 1)
            if (there := self.places[at]) is not None
            and (there.file, there.function) == (place.file, place.function)
            and self.candidates(there)[0] == own
        ]
        ups = [at for (_, line), (at, following) in pairwise(lines) if following < line]
        return ups[0] if len(ups) == 1 else None

    def between(self, i: int, candidates: Iterable[Path] = ()) -> Path | None:
        """What the modules before and after have in common: an operator is at least in that."""
        around: list[Path] = []
        for way in (-1, 1):
            at = i + way
            while 0 <= at < len(self.names):
                path = self.sure.get(self.names[at]) or self.result.owners.get(self.names[at])
                if path is not None:
                    around.append(path)
                    break
                at += way
        shared = prefix(around) if around else None
        choice = list(candidates)
        return prefix([*choice, *([shared] if shared and len(choice) != 1 else [])]) if choice else shared


# -- modules of torch itself ------------------------------------------------------------------------------


def into_leaves(runs: Runs, owned: Owned) -> Owned:
    """`nn.ReLU` and its like have nothing that an operator reads: they are known by their class, on the line that calls
    them, and by what ran before and after."""
    flow, calls = runs.flow, runs.calls
    owners, guessed = dict(owned.owners), set(owned.guessed)
    names = runs.names
    for i, name in enumerate(names):
        if name in owners:
            owners[name], is_open = _into_whole(runs, i, owners[name])
            guessed.update([name] if is_open else ())
    used: dict[tuple[Path, object], tuple[int, int]] = {}  # of a line of a module: the leaf that ran last, and where
    for i, name in enumerate(names):
        place = runs.places[i]
        if place is None:
            continue
        owner = owners.get(name)
        if owner is None:
            path = runs.sure.get(name)
            own = runs.line_owner(path, place) if path is not None else None
            leaves = calls.leaves(place, own) if own is not None else []
            if path in leaves and own is not None:
                used[own, place] = leaves.index(path), i
            continue
        leaves = calls.inside.get(owner, []) if calls.is_whole(owner) else calls.leaves(place, owner)
        fitting = [k for k, path in enumerate(leaves) if _fits(flow.op[name], calls.modules[path])]
        if not fitting:
            continue
        last = used.get((owner, place), (-1, -1))[0]
        after = _next_leaf(runs, i, owner, place, leaves)
        free = [k for k in fitting if last < k < after] or [k for k in fitting if k > last] or fitting
        if len(fitting) > 1 or leaves[fitting[0]][-1].isdecimal():  # in a list: the one that runs just then
            beside = _beside(runs, owners, i)
            near = [k for k in free if any(_are_neighbours(path, leaves[k]) for path in beside)]
            if not near:
                guessed.add(name)
                continue
            free = near[:1]
        chosen = [leaves[k] for k in free]
        in_order = len({path[:-1] for path in chosen}) == 1 and all(_NUMBER.match(path[-1]) for path in chosen)
        if len(free) > 1:
            if not in_order:  # which of them runs first is not in the log
                guessed.add(name)
                continue
            if not _one_for_each(runs, owners, i, owner, place, chosen):
                guessed.add(name)
        owners[name] = chosen[0]
        used[owner, place] = free[0], i
    return Owned(owners, guessed)


def _beside(runs: Runs, owners: Mapping[str, Path], i: int) -> list[Path]:
    """The modules of the operators before and after."""
    found: list[Path] = []
    for at in (i - 1, i + 1):
        if 0 <= at < len(runs.names):
            name = runs.names[at]
            path = runs.sure.get(name) or (owners.get(name) if at < i else None)
            found += [path] if path is not None else []
    return found


def _are_neighbours(path: Path, leaf: Path) -> bool:
    other = path[: len(leaf)]
    return _follows(other, leaf) or _follows(leaf, other)


def _follows(first: Path, second: Path) -> bool:
    """Are they neighbours in one list of modules?"""
    if first[:-1] != second[:-1] or not first or not (first[-1].isdecimal() and second[-1].isdecimal()):
        return False
    return len(first[-1]) < 9 and len(second[-1]) < 9 and int(second[-1]) == int(first[-1]) + 1


def _into_whole(runs: Runs, i: int, owner: Path) -> tuple[Path, bool]:
    """What runs on one line of the user between two operators of one of torch's larger modules is in that one: its own
    lines are not in the log. The other value says that it may be in one, too."""
    place, calls = runs.places[i], runs.calls
    around: list[Path | None] = []
    for way in (-1, 1):
        at = i + way
        while 0 <= at < len(runs.names) and runs.places[at] == place and runs.names[at] not in runs.sure:
            at += way
        is_there = 0 <= at < len(runs.names) and runs.places[at] == place
        path = runs.sure[runs.names[at]] if is_there else None
        around.append(path if path is not None and path[: len(owner)] == owner else None)
    wholes = [
        path[:n]
        for path in around
        if path is not None
        for n in range(len(owner) + 1, len(path))
        if calls.is_whole(path[:n])
    ]
    if not wholes:
        return owner, False
    first, last = around
    if first is None or last is None:
        return owner, True
    shared = prefix([first, last])
    while len(shared) > len(owner) and not calls.is_whole(shared):
        shared = shared[:-1]
    inner = max((whole for whole in wholes if whole[: len(shared)] == shared), key=len, default=shared)
    return shared, inner != shared or any(map(calls.is_whole, calls.inside.get(shared, ())))


def _next_leaf(runs: Runs, i: int, owner: Path, place: Place, leaves: Sequence[Path]) -> int:
    """The place among the leaves of the next operator on the line that surely is in one."""
    for at in range(i + 1, min(i + _FAR, len(runs.names))):
        if runs.places[at] != place:
            break
        path = runs.sure.get(runs.names[at])
        if path is not None:
            if path[: len(owner)] != owner:
                break
            if path in leaves:
                return leaves.index(path)
    return len(leaves)


def _one_for_each(
    runs: Runs, owners: Mapping[str, Path], i: int, owner: Path, place: Place, free: Sequence[Path]
) -> bool:
    """Are there as many operators of this kind ahead as modules that it may be?"""
    op, count = runs.flow.op[runs.names[i]], 1
    for at in range(i + 1, min(i + _FAR, len(runs.names))):
        name = runs.names[at]
        if runs.places[at] != place or owners.get(name, owner) != owner or name in runs.sure:
            break
        count += runs.flow.op[name] == op
    return count == len(free)


def _fits(op: str, name: str) -> bool:
    """`relu` and `ReLU`, `max_pool2d` and `MaxPool2d`, `dropout` and `Dropout1d`."""
    op = op.rpartition(".")[2].replace("_", "")
    cls = short_class(name).lower()
    return len(op) > 2 and (op == cls or cls.startswith(op) or op.startswith(cls))


def prefix(paths: Sequence[Path]) -> Path:
    shared = paths[0]
    for path in paths[1:]:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    return shared


def _longest(path: Path, candidates: frozenset[Path]) -> Path | None:
    """The innermost of the candidates that a module is, or is in."""
    return next((path[:n] for n in range(len(path), -1, -1) if path[:n] in candidates), None)


def _line(place: Place) -> tuple[str, str, int]:
    return place.file, place.function, place.line
