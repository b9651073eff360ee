"""Modules of operators whose names are lost, from those of their neighbours.

An operator on a way from one part of a module to another is taken to be the module's, of the innermost such module:
then what belongs together is one piece, and no way leads out of a module and back into it. What lies between two
modules, or at an end of the graph, belongs to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opscope.ir import Pools

_MOST = 16  # modules that are remembered in one direction; more do not say who an operator belongs to


def between(
    pools: Pools,
    scopes: Sequence[int],
    following: Sequence[Sequence[int]],
    order: Sequence[int],
    prepares: Sequence[bool] = (),
) -> dict[int, int]:
    """Node without scope (0) -> the scope that it lies in, for those of which that can be said.

    `following`: the nodes that read what a node makes; `order`: all nodes, makers first, as far as there is such an
    order; `prepares`: nodes that read nothing but parameters, which belong to who reads them.
    """
    before: list[set[int]] = [set() for _ in scopes]
    for node in order:
        reach = {scopes[node]} if scopes[node] else before[node]
        for other in following[node]:
            _add(before[other], reach)
    after: list[set[int]] = [set() for _ in scopes]
    found: dict[int, int] = {}
    common = _Common(pools)
    for node in reversed(order):
        for other in following[node]:
            _add(after[node], {scopes[other]} if scopes[other] else after[other])
        if not scopes[node] and after[node]:
            is_prepared = bool(prepares and prepares[node]) and len(after[node]) == 1
            scope = common.innermost(after[node] if is_prepared else before[node], after[node])
            if scope:
                found[node] = scope
    return found


def _add(known: set[int], more: Iterable[int]) -> None:
    for scope in sorted(more):
        if len(known) < _MOST:
            known.add(scope)


class _Common:
    """The innermost scope around two scopes."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._chains: dict[int, list[int]] = {}

    def innermost(self, before: Iterable[int], after: Iterable[int]) -> int:
        """Around one of the first and one of the second."""
        best: list[int] = []
        for a in before:
            for b in after:
                shared: list[int] = []
                for one, other in zip(self._chain(a), self._chain(b), strict=False):
                    if one != other:
                        break
                    shared.append(one)
                best = max(best, shared, key=len)
        return best[-1] if best else 0

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
