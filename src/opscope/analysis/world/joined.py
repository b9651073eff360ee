"""Recorded ranks as one capture: a stage for each class of them, linked by what they send each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import Capture, Column, Pools, StageLink, Table, column, frozen
from opscope.ir.facts import MESH, RANK_CLASS
from opscope.ir.ranks import rank_of, ranks_text
from opscope.ir.repool import Repooled

from .figures import add_figures
from .mesh import Mesh, mesh_of
from .messages import messages_of
from .odd import odd_ranks
from .same import difference, outline, signature

COMMUNICATES = "communicates"


class Class(NamedTuple):
    """Ranks that compute the same. `capture` is that of one of them, `rank`."""

    capture: Capture
    rank: int
    ranks: tuple[int, ...]
    seen: tuple[int, ...]  # those that were recorded


def classes_of(captures: Sequence[Capture]) -> list[Class]:
    """The classes of ranks that were all recorded, each in a capture of its own."""
    found: dict[str, list[tuple[int, Capture]]] = defaultdict(list)
    world = 0
    for capture in captures:
        rank = rank_of(capture, 0)
        if rank is None:
            raise OpscopeError("this is not the recording of one rank among several")
        if world and rank.world != world:
            raise OpscopeError(f"these are ranks of different programs: one of {world} ranks, one of {rank.world}")
        world = rank.world
        found[signature(capture.stages[0].graph)].append((rank.rank, capture))
    numbers = [rank for same in found.values() for rank, _ in same]
    for rank, count in Counter(numbers).items():
        if count > 1:
            raise OpscopeError(f"rank {rank} is there {count} times: these are files of several runs")
    made: list[Class] = []
    for same in found.values():
        same.sort(key=lambda item: item[0])
        ranks = tuple(rank for rank, _ in same)
        made.append(Class(same[0][1], ranks[0], ranks, ranks))
    return made


def joined(classes: Sequence[Class], world: int) -> Capture:
    """One capture: what a class computes is a stage."""
    classes = sorted(classes, key=lambda one: one.ranks)
    first = classes[0].capture
    recorded = [rank for one in classes if (rank := rank_of(one.capture, 0)) is not None]
    groups = [group for rank in recorded for group in rank.groups]
    mesh = mesh_of(groups, world)
    capture = Capture(pools=Pools(), origin=replace(first.origin, how=f"world of {world}"))
    names = _names(classes, mesh)
    said = Counter(text for one in classes for text in dict.fromkeys(one.capture.warnings))
    of_all = [text for text, count in said.items() if count == len(classes)]
    capture.warnings.extend(of_all)
    strange = _strange(classes, mesh)
    graph_of = {rank: one.capture.stages[0].graph for one in classes for rank in one.ranks}
    for number, (one, name) in enumerate(zip(classes, names, strict=True)):
        moved = Repooled(one.capture.pools, capture.pools)
        stage = one.capture.stages[0]
        odd = ""
        if one.rank in strange:
            like, where = strange[one.rank]
            apart = difference(stage.graph, graph_of[like])
            odd = f"unlike the other ranks along {where} (rank {like}): {apart}"
            capture.warnings.append(f"{_who(one.ranks)} {odd}")
        own = tuple(text for text in dict.fromkeys(one.capture.warnings) if text not in of_all)
        capture.stages.append(replace(stage, name=name, graph=moved.graph(stage.graph), after=None, warnings=own))
        tables = [table for table in one.capture.tables.values() if table.stage == 0]
        if not any(table.fact == RANK_CLASS.name for table in tables):
            before = set(one.capture.tables)
            add_figures(one.capture, 0, "", "")
            tables += [table for title, table in one.capture.tables.items() if title not in before]
        for table in tables:
            capture.add(_named(moved.table(table, number), one, odd))
        capture.sources.update(one.capture.sources)
    capture.stage_links.extend(_links(capture, classes, mesh))
    capture.add(_mesh_table(mesh))
    _say_what_was_seen(capture, classes, world)
    return capture


def _strange(classes: Sequence[Class], mesh: Mesh) -> dict[int, tuple[int, str]]:
    """Classes whose ranks stand out, by what they do and then by what they do it with."""
    pipelines = {way[0] for one in classes for way in messages_of(one.capture.stages[0].graph).sent}
    alike: dict[str, list[int]] = defaultdict(list)
    for one in classes:
        alike[outline(one.capture.stages[0].graph)].extend(one.ranks)
    found = odd_ranks({ranks[0]: ranks for ranks in alike.values()}, mesh, pipelines)
    found = odd_ranks({one.rank: one.ranks for one in classes}, mesh, pipelines) | found
    return {one.rank: found[one.rank] for one in classes if one.rank in found}


def _who(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks_text(ranks)}"


def _named(table: Table, one: Class, odd: str) -> Table:
    if table.fact != RANK_CLASS.name:
        return table
    told = {"ranks": ranks_text(one.ranks), "seen": ranks_text(one.seen), "odd": odd}
    texts: dict[str, Column] = {name: column([text]) for name, text in told.items()}
    return replace(table, columns={**table.columns, **texts})


def _mesh_table(mesh: Mesh) -> Table:
    columns = {
        "dimension": column([one.name for one in mesh.dimensions]),
        "size": column(np.array([one.size for one in mesh.dimensions])),
        "stride": column(np.array([one.stride for one in mesh.dimensions])),
    }
    return Table(0, "row", frozen(range(len(mesh.dimensions))), columns, MESH.name)


def _say_what_was_seen(capture: Capture, classes: Sequence[Class], world: int) -> None:
    seen = sum(len(one.seen) for one in classes)
    there = sum(len(one.ranks) for one in classes)
    if seen < there:
        capture.warnings.append(
            f"{seen:,} of {world:,} ranks were recorded and compared; what the others compute is inferred from their "
            "places in the mesh (--all records every one)"
        )
    if there < world:
        missing = sorted(set(range(world)) - {rank for one in classes for rank in one.ranks})
        capture.warnings.append(f"of {world:,} ranks {len(missing):,} are not here: {ranks_text(missing)}")


def _names(classes: Sequence[Class], mesh: Mesh) -> list[str]:
    """`pp 1`, `pp 0 · tp 3`: the places that all ranks of a class have in common, and no other class has."""
    names: list[str] = []
    for one in classes:
        places = [mesh.coordinates(rank) for rank in one.ranks]
        words: list[str] = []
        for i, dimension in enumerate(mesh.dimensions):
            own = sorted({place[i] for place in places})
            if len(own) < dimension.size:
                words.append(f"{dimension.name} {ranks_text(own)}")
        names.append(" · ".join(words) or "all ranks")
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} (rank {one.rank})" for name, one in zip(names, classes, strict=True)
    ]


# -- what they send each other -----------------------------------------------------------------------------


def _links(capture: Capture, classes: Sequence[Class], mesh: Mesh) -> list[StageLink]:
    class_of = {rank: number for number, one in enumerate(classes) for rank in one.ranks}
    messages = [messages_of(stage.graph) for stage in capture.stages]
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for source, own in enumerate(messages):
        for way, (node, to) in own.sent.items():
            target = class_of.get(to)
            got = messages[target].received.get(way) if target is not None else None
            if target is not None and target != source and got is not None and class_of.get(got[1]) == source:
                pairs[source, target].append((node, got[0]))
    for source, target, dimension in _neighbours(classes, class_of, mesh):
        own, other = messages[source].together, messages[target].together
        pairs[source, target] += [
            (node, other[key]) for key, node in own.items() if key[0] == dimension and key in other
        ]
    return [
        StageLink(*ways, COMMUNICATES, frozen([a for a, _ in found]), frozen([b for _, b in found]), "structure")
        for ways, found in sorted(pairs.items())
        if found
    ]


def _neighbours(classes: Sequence[Class], class_of: Mapping[int, int], mesh: Mesh) -> list[tuple[int, int, str]]:
    """Classes next to each other in a group that share its collectives."""
    found: dict[tuple[int, int, str], None] = {}
    for number, one in enumerate(classes):
        for i, dimension in enumerate(mesh.dimensions):
            line = mesh.line(one.rank, i)
            others = [class_of[rank] for rank in line[line.index(one.rank) + 1 :] if rank in class_of]
            other = next((other for other in others if other != number), None)
            if other is not None:
                found[number, other, dimension.name] = None
    return list(found)


def as_one(captures: Sequence[Capture]) -> Capture:
    """Files of single ranks as one capture."""
    first = rank_of(captures[0], 0)
    if first is None:
        raise OpscopeError("this is not the recording of one rank among several")
    classes = classes_of(captures)
    return joined(classes, first.world)
