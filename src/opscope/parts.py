"""A part of a program while it runs, said in the search language: of operators only names and modules are known yet."""

from __future__ import annotations

from opscope.analysis.search import find, parse
from opscope.errors import OpscopeError
from opscope.ir import GraphBuilder, Pools
from opscope.tracers.contract import Part

_FIELDS = ("", "op", "scope", "class")


def part_of(query: str | None) -> Part | None:
    """Whether an operator is found by a query; None: there is no query."""
    if query is None:
        return None
    steps = parse(query)
    if len(steps) != 1 or any(term.field not in _FIELDS for term in steps[0].terms):
        raise OpscopeError(f"part={query!r}: while a program runs, only op:, scope: and class: can be asked for")

    def holds(op: str, modules: tuple[tuple[str, str], ...]) -> bool:
        builder = GraphBuilder(Pools())
        scope = 0
        for name, cls in modules:
            scope = builder.pools.scope(scope, name, cls)
        builder.node(op, [], scope=scope)
        return len(find(builder.freeze(), query)) > 0

    return holds
