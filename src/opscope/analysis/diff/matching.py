"""Which node of one graph is which of the other.

First what is certain (fingerprints of whole neighbourhoods that occur once on both sides), then growth from there
along the edges, then the order of execution for what repeats, and at last nodes in the same place that changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from .fingerprints import RADIUS, Hash, Index, Side
from .sequence import align

Pairs = list[tuple[int, int]]


class Matcher:
    """Pairs of items (nodes and leaves), one to one."""

    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = a, b
        self.to_b: Index = np.full(a.size, -1, dtype=np.int64)
        self.to_a: Index = np.full(b.size, -1, dtype=np.int64)
        self._barred_a: set[int] = set()
        self._barred_b: set[int] = set()
        self._fresh: Pairs = []
        self._log: Pairs | None = None

    # -- the whole of it --------------------------------------------------------------------------

    def run(
        self, given: Iterable[tuple[int, int]] = (), barred: tuple[Iterable[int], Iterable[int]] = ((), ())
    ) -> None:
        """`given` pairs are certain; `barred` nodes have their explanation already and are left alone."""
        self._barred_a, self._barred_b = set(barred[0]), set(barred[1])
        for x, y in given:
            self._pair(x, y)
        if all(x == y for x, y in self._fresh) and self._same_rows():
            return
        self._closed()
        self._exact()
        self._loose()

    def _same_rows(self) -> bool:
        """Graphs that are equal row by row, as most are that did not change: found without any search."""
        a, b = self.a, self.b
        same = (
            not self._barred_a
            and not self._barred_b
            and a.size == b.size
            and np.array_equal(a.exact, b.exact)
            and all(
                np.array_equal(getattr(a, column), getattr(b, column))
                for column in ("source", "slot", "target", "port", "is_output")
            )
        )
        if same:
            self.to_b[:] = np.arange(a.size)
            self.to_a[:] = np.arange(b.size)
        return same

    def _closed(self) -> None:
        """Items with equal pasts and futures: all of them, where one graph is the other in another order."""
        colours = self.a.closed, self.b.closed
        self._unique(*colours)
        self._grow([colours])
        self._ties(*colours, [colours])

    def _exact(self) -> None:
        a, b = self.a.exact_colours, self.b.exact_colours
        growing = [(a[2], b[2]), (a[1], b[1]), (a[0], b[0])]
        for radius in range(RADIUS, 0, -1):
            self._unique(a[radius], b[radius])
            self._grow(growing)
        self._regrow(growing)  # who had several candidates at first may have one now
        self._in_order(a[0], b[0], growing)
        for radius in range(RADIUS, 0, -1):
            self._ties(a[radius], b[radius], growing)
        self._unique(a[0], b[0], nodes_only=True)
        self._grow(growing)

    def _loose(self) -> None:
        """The same operator in the same place, with other attributes or types. "The same place" is strict: it
        reads what its counterpart reads, and is read by the same."""
        a, b = self.a.loose_colours, self.b.loose_colours
        growing = [(a[1], b[1]), (a[0], b[0])]
        self._log = []
        for radius in range(RADIUS, 0, -1):
            self._unique(a[radius], b[radius])
            self._grow(growing)
        self._in_order(a[0], b[0], growing)
        self._regrow(growing)
        for radius in range(RADIUS, 0, -1):
            self._ties(a[radius], b[radius], growing)
        tried, self._log = self._log, None
        self._drop_misplaced(tried)
        self._leaves()

    # -- single pairs -----------------------------------------------------------------------------

    def _pair(self, x: int, y: int) -> None:
        self.to_b[x], self.to_a[y] = y, x
        self._fresh.append((x, y))
        if self._log is not None:
            self._log.append((x, y))

    def _drop(self, x: int, y: int) -> None:
        self.to_b[x] = self.to_a[y] = -1

    def _free(self) -> tuple[Index, Index]:
        free_a = self.to_b < 0
        free_b = self.to_a < 0
        free_a[list(self._barred_a)] = False
        free_b[list(self._barred_b)] = False
        return np.flatnonzero(free_a), np.flatnonzero(free_b)

    def _is_free(self, x: int, y: int) -> bool:
        return (
            bool(self.to_b[x] < 0 and self.to_a[y] < 0)
            and x not in self._barred_a
            and y not in self._barred_b
            and (x < self.a.n_nodes) == (y < self.b.n_nodes)
        )

    # -- by fingerprint ---------------------------------------------------------------------------

    def _unique(self, a: Hash, b: Hash, nodes_only: bool = False) -> None:
        """Pair what occurs once on each side among those that are left."""
        left_a, left_b = self._free()
        if nodes_only:
            left_a, left_b = left_a[left_a < self.a.n_nodes], left_b[left_b < self.b.n_nodes]
        if not len(left_a) or not len(left_b):
            return
        once_a, at_a = _once(a[left_a])
        once_b, at_b = _once(b[left_b])
        _, i, j = np.intersect1d(once_a, once_b, assume_unique=True, return_indices=True)
        found_a, found_b = left_a[at_a[i]], left_b[at_b[j]]
        order = np.argsort(found_a)
        self.to_b[found_a] = found_b
        self.to_a[found_b] = found_a
        pairs = list(zip(found_a[order].tolist(), found_b[order].tolist(), strict=True))
        self._fresh += pairs
        if self._log is not None:
            self._log += pairs

    def _ties(self, a: Hash, b: Hash, growing: Sequence[tuple[Hash, Hash]]) -> None:
        """Alike and as many on both sides: in the same module, then in order; growth keeps neighbours together."""
        left_a, left_b = self._free()
        if not len(left_a) or not len(left_b):
            return
        shared = np.intersect1d(a[left_a], b[left_b])
        classes_a, classes_b = _classes(a, left_a, shared), _classes(b, left_b, shared)
        for colour in sorted(classes_a, key=lambda c: classes_a[c][0]):
            xs = [x for x in classes_a[colour] if self.to_b[x] < 0]
            ys = [y for y in classes_b[colour] if self.to_a[y] < 0]
            if not xs or len(xs) != len(ys):
                continue
            for x, y in self._by_module(xs, ys):
                if self._is_free(x, y):
                    self._pair(x, y)
                    self._grow(growing)

    def _by_module(self, xs: list[int], ys: list[int]) -> Pairs:
        paths_a, paths_b = self._paths(self.a, xs), self._paths(self.b, ys)
        waiting: dict[str, list[int]] = defaultdict(list)
        for y, path in zip(ys, paths_b, strict=True):
            waiting[path].append(y)
        pairs: Pairs = []
        rest_a: list[int] = []
        for x, path in zip(xs, paths_a, strict=True):
            if waiting[path]:
                pairs.append((x, waiting[path].pop(0)))
            else:
                rest_a.append(x)
        rest_b = sorted(y for left in waiting.values() for y in left)
        return pairs + list(zip(rest_a, rest_b, strict=True))

    @staticmethod
    def _paths(side: Side, items: Sequence[int]) -> list[str]:
        return [side.graph.pools.scope_path(int(side.scopes[item])) for item in items]

    # -- along the edges --------------------------------------------------------------------------

    def _grow(self, levels: Sequence[tuple[Hash, Hash]]) -> None:
        """From the newest pairs to what they read and what reads them: the likeliest first."""
        start, self._fresh = self._fresh, []
        for a, b in levels:
            todo = self._with_free_neighbours(start)
            while todo:
                x, y = todo.pop()
                before = len(self._fresh)
                self._grow_up(x, y, a, b)
                self._grow_down(x, y, a, b)
                todo += self._fresh[before:]
            start = start + self._fresh
            self._fresh = []

    def _regrow(self, levels: Sequence[tuple[Hash, Hash]]) -> None:
        """Growth from every pair, also the old ones."""
        matched = np.flatnonzero(self.to_b >= 0)
        self._fresh = list(zip(matched.tolist(), self.to_b[matched].tolist(), strict=True))
        self._grow(levels)

    def _with_free_neighbours(self, pairs: Pairs) -> Pairs:
        if len(pairs) < 64:
            return list(pairs)
        xs = np.array([x for x, _ in pairs], dtype=np.int64)
        free = self.to_b < 0
        near = np.zeros(self.a.size, dtype=bool)
        near[self.a.target[free[self.a.source]]] = True
        near[self.a.source[free[self.a.target]]] = True
        return [pairs[i] for i in np.flatnonzero(near[xs]).tolist()[::-1]]

    def _grow_up(self, x: int, y: int, a: Hash, b: Hash) -> None:
        reads_x, reads_y = self.a.reads[x], self.b.reads[y]
        if len(reads_x) != len(reads_y):
            return
        for (port_x, source_x, slot_x), (port_y, source_y, slot_y) in zip(reads_x, reads_y, strict=True):
            if (
                port_x == port_y
                and slot_x == slot_y
                and self.to_b[source_x] < 0
                and self._is_free(source_x, source_y)
                and a[source_x] == b[source_y]
            ):
                self._pair(source_x, source_y)

    def _grow_down(self, x: int, y: int, a: Hash, b: Hash) -> None:
        free_x = self._free_readers(self.a.read_by[x], self.to_b, self._barred_a, a)
        if not free_x:
            return
        free_y = self._free_readers(self.b.read_by[y], self.to_a, self._barred_b, b)
        for place, readers in free_x.items():
            others = free_y.get(place, ())
            if len(readers) == 1 and len(others) == 1 and self._is_free(readers[0], others[0]):
                self._pair(readers[0], others[0])

    @staticmethod
    def _free_readers(
        readers: Sequence[tuple[int, int, int]], matched: Index, barred: set[int], colours: Hash
    ) -> dict[tuple[int, int, int], list[int]]:
        found: dict[tuple[int, int, int], list[int]] = {}
        for slot, port, reader in readers:
            if matched[reader] < 0 and reader not in barred:
                found.setdefault((slot, port, int(colours[reader])), []).append(reader)
        return found

    # -- by the order of execution ----------------------------------------------------------------

    def _in_order(self, a: Hash, b: Hash, growing: Sequence[tuple[Hash, Hash]]) -> None:
        """What repeats (equal layers) has no fingerprint of its own: there the order of execution decides."""
        left_a, left_b = self._free()
        left_a, left_b = left_a[left_a < self.a.n_nodes], left_b[left_b < self.b.n_nodes]
        _, numbers = np.unique(np.concatenate([a[left_a], b[left_b]]), return_inverse=True)
        tokens = numbers.reshape(-1).tolist()
        aligned = align(tokens[: len(left_a)], tokens[len(left_a) :])
        tried = [(int(left_a[i]), int(left_b[j])) for i, j in aligned]
        for x, y in tried:
            self.to_b[x], self.to_a[y] = y, x
        # Only where a neighbour agrees and none contradicts.
        while bad := [pair for pair in tried if not self._agrees(*pair)]:
            for pair in bad:
                self._drop(*pair)
            dropped = set(bad)
            tried = [pair for pair in tried if pair not in dropped]
        self._fresh += tried
        if self._log is not None:
            self._log += tried
        self._grow(growing)

    def _agrees(self, x: int, y: int) -> bool:
        agreed = 0
        reads_y = {port: (source, slot) for port, source, slot in self.b.reads[y]}
        for port, source, slot in self.a.reads[x]:
            other = reads_y.get(port)
            if other is None or (self.to_b[source] < 0 and self.to_a[other[0]] < 0):
                continue
            if self.to_b[source] == other[0] and slot == other[1]:
                agreed += 1
            elif self.to_b[source] >= 0 and self.to_a[other[0]] >= 0:
                return False
        for slot, port, reader in self.a.read_by[x]:
            partner = int(self.to_b[reader])
            if partner < 0:
                continue
            if any(p == port and source == y and s == slot for p, source, s in self.b.reads[partner]):
                agreed += 1
        return agreed > 0 or not (self.a.reads[x] or self.a.read_by[x] or self.b.reads[y] or self.b.read_by[y])

    # -- what changed in its place ----------------------------------------------------------------

    def _drop_misplaced(self, tried: Pairs) -> None:
        """Loose pairs must be in the same place; dropping one may take its neighbours with it."""
        tried = [(x, y) for x, y in tried if x < self.a.n_nodes]
        while bad := [(x, y) for x, y in tried if not self._in_place(x, y)]:
            for pair in bad:
                self._drop(*pair)
            dropped = set(bad)
            tried = [pair for pair in tried if pair not in dropped]

    def _in_place(self, x: int, y: int) -> bool:
        reads_x, reads_y = self.a.reads[x], self.b.reads[y]
        if [port for port, _, _ in reads_x] != [port for port, _, _ in reads_y]:
            return False
        open_ports = False
        for (_, source_x, slot_x), (_, source_y, slot_y) in zip(reads_x, reads_y, strict=True):
            weight_x, weight_y = source_x >= self.a.n_nodes, source_y >= self.b.n_nodes
            if weight_x and weight_y:
                continue
            if not weight_x and not weight_y and self.to_b[source_x] < 0 and self.to_a[source_y] < 0:
                open_ports = True  # what is above was rewritten; then what is below must agree
            elif weight_x != weight_y or self.to_b[source_x] != source_y or slot_x != slot_y:
                return False
        if (x in self.a.outputs) != (y in self.b.outputs):
            return False
        readers_x, readers_y = self.a.read_by[x], self.b.read_by[y]
        if bool(readers_x) != bool(readers_y):
            return False
        theirs = {(reader, port, slot) for slot, port, reader in readers_y}
        agreed = sum((int(self.to_b[reader]), port, slot) in theirs for slot, port, reader in readers_x)
        return agreed > 0 or (not readers_x and not open_ports)

    def _leaves(self) -> None:
        """Inputs and weights at the same place of nodes that belong together, whatever their type."""
        free = (self.a.source >= self.a.n_nodes) & (self.to_b[self.a.source] < 0) & (self.to_b[self.a.target] >= 0)
        readers: list[int] = self.a.target[free].tolist()
        for x in sorted(set(readers)):
            y = int(self.to_b[x])
            for (port_x, source_x, _), (port_y, source_y, _) in zip(self.a.reads[x], self.b.reads[y], strict=False):
                if port_x == port_y and source_x >= self.a.n_nodes and self._is_free(source_x, source_y):
                    self._pair(source_x, source_y)
        self._fresh = []


def _once(colours: Hash) -> tuple[Hash, npt.NDArray[np.int64]]:
    """The colours that occur once, and where."""
    found, first, count = np.unique(colours, return_index=True, return_counts=True)
    alone = count == 1
    return found[alone], first[alone]


def _classes(colours: Hash, items: Index, wanted: Hash) -> dict[int, list[int]]:
    of_class: dict[int, list[int]] = {}
    shared = items[np.isin(colours[items], wanted)]
    for item, colour in zip(shared.tolist(), colours[shared].tolist(), strict=True):
        of_class.setdefault(colour, []).append(item)
    return of_class
