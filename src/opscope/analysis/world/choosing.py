"""Which ranks to record, so that all need not be: those at the corners of the mesh, and between them where they differ.

A part of the mesh whose first and last rank compute the same is taken to be of one class. One whose corners differ is
cut along the dimensions in which they differ, and its parts are looked at in the same way. What was taken to be so is
then tried on ranks chosen at random; where one of them differs, all ranks of its part are recorded.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from itertools import product
from typing import NamedTuple

from .mesh import Mesh

_ALL_OF = 64  # a dimension of that many places is cut into single ones; a longer one where its halves differ


class Part(NamedTuple):
    """A box of the mesh: by dimension, the first place and the one after the last. `open` are the dimensions in which
    its ranks may still differ."""

    spans: tuple[tuple[int, int], ...]
    open: tuple[int, ...]
    is_whole: bool = True

    def corner(self, at_end: tuple[int, ...] = ()) -> tuple[int, ...]:
        return tuple(end - 1 if i in at_end else first for i, (first, end) in enumerate(self.spans))

    def ranks(self, mesh: Mesh) -> list[int]:
        return [mesh.rank(place) for place in product(*(range(*span) for span in self.spans))]


class Chosen(NamedTuple):
    """Every rank's class, by the signature of a rank that was recorded."""

    classes: dict[str, list[int]]
    parts: list[Part]


Asking = Generator[list[int], Mapping[int, str], Chosen]


def choose(mesh: Mesh, samples: int = 4, seed: int = 0) -> Asking:
    """Asks for ranks, gets the signatures of all that were recorded so far, and returns the class of every rank."""
    whole = Part(tuple((0, one.size) for one in mesh.dimensions), tuple(range(len(mesh.dimensions))))
    waiting, done = [whole], list[Part]()
    known: Mapping[int, str] = {}
    while waiting:
        corners = [mesh.rank(part.corner(at)) for part in waiting for at in ((), part.open)]
        known = yield [rank for rank in dict.fromkeys(corners) if rank not in known]
        apart = [part for part in waiting if not _is_even(part, mesh, known)]
        done += [part for part in waiting if part not in apart]
        edges = [mesh.rank(part.corner((i,))) for part in apart for i in part.open]
        known = yield [rank for rank in dict.fromkeys(edges) if rank not in known]
        waiting = [piece for part in apart for piece in _cut(part, mesh, known)]
    chance = random.Random(seed)
    tried = [rank for part in done for rank in _some(part, mesh, known, chance)]
    known = yield chance.sample(tried, min(samples, len(tried)))
    wrong = [part for part in done if len({known[rank] for rank in part.ranks(mesh) if rank in known}) > 1]
    if wrong:
        known = yield [rank for part in wrong for rank in part.ranks(mesh) if rank not in known]
    classes: dict[str, list[int]] = {}
    for part in done:
        first = known[mesh.rank(part.corner())]
        for rank in part.ranks(mesh):
            classes.setdefault(known.get(rank, first), []).append(rank)
    return Chosen({same: sorted(ranks) for same, ranks in classes.items()}, done)


def _is_even(part: Part, mesh: Mesh, known: Mapping[int, str]) -> bool:
    return known[mesh.rank(part.corner())] == known[mesh.rank(part.corner(part.open))]


def _cut(part: Part, mesh: Mesh, known: Mapping[int, str]) -> list[Part]:
    """Along the first dimension in which its corners differ. Those in which they do not are taken to be even; if they
    differ in none alone, it is the longest."""
    first = known[mesh.rank(part.corner())]
    differ = [i for i in part.open if known[mesh.rank(part.corner((i,)))] != first]
    along = differ[0] if differ else max(part.open, key=lambda i: part.spans[i][1] - part.spans[i][0])
    begin, end = part.spans[along]
    rest = tuple(i for i in part.open if i != along)
    if end - begin > _ALL_OF:
        middle = (begin + end) // 2
        return [_with(part, along, *span, part.open) for span in ((begin, middle), (middle, end))]
    # What was even beside a first cut is looked at in every piece; beside later ones in the first and the last.
    few = rest if part.is_whole or not differ else tuple(i for i in differ if i != along)
    return [
        _with(part, along, place, place + 1, few if begin < place < end - 1 else rest) for place in range(begin, end)
    ]


def _with(part: Part, along: int, begin: int, end: int, still: tuple[int, ...]) -> Part:
    spans = tuple((begin, end) if i == along else span for i, span in enumerate(part.spans))
    return Part(spans, tuple(i for i in still if spans[i][1] - spans[i][0] > 1), False)


def _some(part: Part, mesh: Mesh, known: Mapping[int, str], chance: random.Random) -> list[int]:
    """A few ranks of a part that were not recorded."""
    found: list[int] = []
    for _ in range(2):
        rank = mesh.rank([chance.randrange(*span) for span in part.spans])
        if rank not in known and rank not in found:
            found.append(rank)
    return found
