"""What has no counterpart of its own, gathered into places: a place before and a place after are one change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .fingerprints import Index, Side
from .matching import Matcher

Flags: TypeAlias = npt.NDArray[np.bool_]
Member = tuple[str, int]  # ("a", node before) or ("b", node after)


class Groups:
    """Sets of nodes of both sides, joined as reasons turn up (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[Member, Member] = {}

    def add(self, member: Member) -> None:
        self._parent.setdefault(member, member)

    def find(self, member: Member) -> Member:
        root = member
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[member] != root:
            self._parent[member], member = root, self._parent[member]
        return root

    def join(self, one: Member, other: Member) -> None:
        self.add(one)
        self.add(other)
        self._parent[self.find(other)] = self.find(one)

    def __contains__(self, member: Member) -> bool:
        return member in self._parent

    def members(self) -> list[Member]:
        return list(self._parent)

    def together(self, one: Member, other: Member) -> bool:
        return one in self._parent and other in self._parent and self.find(one) == self.find(other)

    def sets(self) -> list[tuple[list[int], list[int]]]:
        """(before, after) of each set, nodes in order, in the order of their first node after or before."""
        found: dict[Member, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for member in self._parent:
            found[self.find(member)][member[0] == "b"].append(member[1])
        return [(sorted(before), sorted(after)) for before, after in found.values()]


def places(match: Matcher, left_a: Index, left_b: Index) -> Groups:
    """Join what has no counterpart: neighbours, and what makes the same thing for the same reader."""
    a, b = match.a, match.b
    groups = Groups()
    free_a, free_b = _flags(a, left_a), _flags(b, left_b)
    for name, side, free in (("a", a, free_a), ("b", b, free_b)):
        for item in np.flatnonzero(free).tolist():
            groups.add((name, item))
        inner = free[side.source] & free[side.target]
        for source, target in zip(side.source[inner].tolist(), side.target[inner].tolist(), strict=True):
            groups.join((name, source), (name, target))
    _join_by_reader(match, free_a, free_b, groups)
    _join_by_output(match, free_a, free_b, groups)
    _join_one_sided(match, free_a, free_b, groups)
    return groups


def _flags(side: Side, left: Index) -> Flags:
    flags = np.zeros(side.size, dtype=bool)
    flags[left] = True
    return flags


def _join_by_reader(match: Matcher, free_a: Flags, free_b: Flags, groups: Groups) -> None:
    a, b = match.a, match.b
    boundary = free_a[a.source] & (match.to_b[a.target] >= 0)
    for row in np.flatnonzero(boundary).tolist():
        source, port = int(a.source[row]), int(a.port[row])
        reader = int(match.to_b[int(a.target[row])])
        for other_port, other, _ in b.reads[reader]:
            if other_port == port and free_b[other]:
                groups.join(("a", source), ("b", other))


def _join_by_output(match: Matcher, free_a: Flags, free_b: Flags, groups: Groups) -> None:
    """The graph's outputs in order, where there are as many."""
    a, b = match.a.is_output, match.b.is_output
    if len(a) == len(b):
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            if free_a[x] and free_b[y]:
                groups.join(("a", x), ("b", y))


def _join_one_sided(match: Matcher, free_a: Flags, free_b: Flags, groups: Groups) -> None:
    """What only goes and what only comes belong together where both lead nowhere, and they are the only ones that
    read the same value."""
    sides = {root: _sides(members) for root, members in _members(groups).items()}
    for name, side, free in (("a", match.a, free_a), ("b", match.b, free_b)):
        leads_on = free[side.source] & ~free[side.target]
        for item in [*side.source[leads_on].tolist(), *(x for x in side.is_output.tolist() if free[x])]:
            sides[groups.find((name, item))] = "leads on"
    readers_a, readers_b = _new_readers(match.a, free_a), _new_readers(match.b, free_b)
    for source, readers in readers_a.items():
        partner = int(match.to_b[source])
        before = {groups.find(("a", reader)) for reader in readers}
        after = {groups.find(("b", reader)) for reader in readers_b.get(partner, ())}
        if len(before) == 1 and len(after) == 1:
            one, other = before.pop(), after.pop()
            if sides.get(one) == "a" and sides.get(other) == "b":
                groups.join(one, other)
                sides[groups.find(one)] = "joined"


def _members(groups: Groups) -> dict[Member, list[Member]]:
    found: dict[Member, list[Member]] = defaultdict(list)
    for member in groups.members():
        found[groups.find(member)].append(member)
    return found


def _sides(members: Iterable[Member]) -> str:
    return "".join(sorted({name for name, _ in members}))


def _new_readers(side: Side, free: Flags) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    rows = free[side.target] & ~free[side.source]
    for source, target in zip(side.source[rows].tolist(), side.target[rows].tolist(), strict=True):
        found[source].append(target)
    return found
