"""How ranks are laid out: the dimensions of a mesh, from the groups that one rank was in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

from opscope.ir.ranks import ranks_of


@dataclass(frozen=True)
class Dimension:
    name: str
    size: int
    stride: int  # how far neighbours are apart


@dataclass(frozen=True)
class Mesh:
    """Dimensions that together hold every rank once, the outermost first."""

    dimensions: tuple[Dimension, ...]

    @cached_property
    def size(self) -> int:
        return prod(one.size for one in self.dimensions)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        return tuple(rank // one.stride % one.size for one in self.dimensions)

    def rank(self, coordinates: Sequence[int]) -> int:
        return sum(place * one.stride for place, one in zip(coordinates, self.dimensions, strict=True))

    def line(self, rank: int, dimension: int) -> list[int]:
        """The ranks that differ from this one in that dimension only, and itself."""
        of = self.dimensions[dimension]
        first = rank - rank // of.stride % of.size * of.stride
        return [first + place * of.stride for place in range(of.size)]


OTHERS = "others"  # a dimension that no group names


def mesh_of(groups: Sequence[tuple[str, str]], world: int) -> Mesh:
    """The dimensions that the groups of a rank make: each as wide as those inside it end. Where none fits, the ranks
    that are left are a dimension without a name."""
    evenly: dict[tuple[int, int], str] = {}  # stride and size -> name
    for name, text in groups:
        try:
            ranks = ranks_of(text)
        except ValueError:
            continue
        apart = {after - before for before, after in pairwise(ranks)}
        if len(ranks) > 1 and len(apart) == 1 and (stride := min(apart)) > 0:
            evenly.setdefault((stride, len(ranks)), name)
    best = max(_chains(evenly, 1, world), key=lambda chain: (_ends(chain, world), len(chain)))
    found = [Dimension(evenly[one], one[1], one[0]) for one in best]
    covered = prod(one.size for one in found)
    if covered < world:
        if world % covered:
            return Mesh((Dimension("world", world, 1),))
        found.append(Dimension(OTHERS if found else "world", world // covered, covered))
    return Mesh(tuple(reversed(found)))


def _ends(chain: list[tuple[int, int]], world: int) -> int:
    """How many ranks a chain of dimensions holds; one that is only the whole world says nothing."""
    return prod(size for _, size in chain) if chain != [(1, world)] else 1


def _chains(evenly: dict[tuple[int, int], str], stride: int, world: int) -> list[list[tuple[int, int]]]:
    """All ways to put dimensions around each other."""
    found: list[list[tuple[int, int]]] = [[]]
    for one in evenly:
        if one[0] == stride and world % (stride * one[1]) == 0:
            found += [[one, *rest] for rest in _chains(evenly, stride * one[1], world)]
    return found
