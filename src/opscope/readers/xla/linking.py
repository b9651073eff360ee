"""Which operators of one stage became which of a later one, by the names and places that JAX gives operations.

XLA renames instructions freely, but what it makes of an operation keeps the operation's name and place in the source.
That says where kernels come from, over all passes at once; passes that follow each other are compared by structure.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from opscope.ir import Capture, Graph, Groups, StageLink
from opscope.ir.columns import frozen

from .build import Builder, Origin

_EVIDENCE = "name"


def link(capture: Capture, builder: Builder, before: int, after: int) -> None:
    """Link two stages whose operators carry names."""
    pairs = _pairs(capture.stages[before].graph, capture.stages[after].graph, builder)
    if pairs:
        source, target = zip(*pairs, strict=True)
        capture.stage_links.append(StageLink(before, after, "lowers", frozen(source), frozen(target), _EVIDENCE))


def kernels(capture: Capture, builder: Builder, before: int, after: int) -> None:
    """Give an early stage the kernels of the last one, as sets of its own operators. They may overlap: what XLA
    computes twice, it computes in two kernels."""
    early, late = capture.stages[before].graph, capture.stages[after].graph
    ran = late.groups.get("kernel")
    if ran is None or "kernel" in early.groups:
        return
    members: dict[int, list[int]] = {}
    for source, target in _pairs(early, late, builder):
        members.setdefault(target, []).append(source)
    rows = [sorted(members.get(int(ran.members(i)[0]), [])) for i in range(len(ran))]
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    groups = Groups("kernel", ran.name, ran.code, ran.attrs, frozen(start), frozen([n for row in rows for n in row]))
    graph = replace(early, groups=MappingProxyType({**early.groups, "kernel": groups}))
    builder.origins[graph] = builder.origins[early]
    for number, stage in enumerate(capture.stages):
        if stage.graph is early:
            capture.stages[number] = replace(stage, graph=graph)


def _pairs(before: Graph, after: Graph, builder: Builder) -> list[tuple[int, int]]:
    made_by: dict[Origin, list[int]] = {}
    for node, origins in enumerate(builder.origins.get(before, ())):
        for origin in origins:
            made_by.setdefault(origin, []).append(node)
    found: set[tuple[int, int]] = set()
    for node, origins in enumerate(builder.origins.get(after, ())):
        for origin in origins:
            found.update((source, node) for source in made_by.get(origin, ()))
    return sorted(found)
