"""Modules of operators whose names are lost, from those of their neighbours.

An operator that lies between two parts of a module is taken to be the module's: what comes before it on every way and
what comes after it on every way have that module in common. What lies at an end of the graph belongs to nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from opscope.ir import Pools

_NOTHING = -1  # no operator with a module lies in that direction


def between(
    pools: Pools,
    scopes: Sequence[int],
    following: Sequence[Sequence[int]],
    order: Sequence[int],
    prepares: Sequence[bool] = (),
) -> dict[int, int]:
    """Node without scope (0) -> the innermost scope that all its surroundings share.

    `following`: the nodes that read what a node makes; `order`: all nodes, makers first, as far as there is one;
    `prepares`: nodes that read nothing but parameters, which belong to who reads them.
    """
    common = _Common(pools)
    before = [_NOTHING] * len(scopes)
    for node in order:
        reach = scopes[node] or before[node]
        if reach == _NOTHING and not (prepares and prepares[node]):
            reach = 0  # what comes from outside of the graph is in no module
        for other in following[node]:
            before[other] = common.of(before[other], reach)
    after = [_NOTHING] * len(scopes)
    found: dict[int, int] = {}
    for node in reversed(order):
        reach = _NOTHING
        for other in following[node]:
            reach = common.of(reach, scopes[other] or max(after[other], 0))
        after[node] = reach
        if scopes[node] or reach == _NOTHING:
            continue
        earlier = before[node]
        if earlier == _NOTHING and not (prepares and prepares[node]):
            earlier = 0
        scope = common.of(earlier, reach)
        if scope > 0:
            found[node] = scope
    return found


class _Common:
    """The innermost scope around two scopes."""

    def __init__(self, pools: Pools) -> None:
        self._chains: dict[int, list[int]] = {}
        self._known: dict[tuple[int, int], int] = {}
        self._pools = pools

    def of(self, a: int, b: int) -> int:
        if a == b or b == _NOTHING:
            return a
        if a == _NOTHING:
            return b
        found = self._known.get((a, b))
        if found is None:
            found = 0
            for one, other in zip(self._chain(a), self._chain(b), strict=False):
                if one != other:
                    break
                found = one
            self._known[a, b] = found
        return found

    def _chain(self, scope: int) -> list[int]:
        """From the outermost to the scope itself."""
        if scope not in self._chains:
            chain: list[int] = []
            at = scope
            while at > 0:
                chain.append(at)
                at = self._pools.scopes[at].parent
            self._chains[scope] = chain[::-1]
        return self._chains[scope]
