"""What is in a capture: the figures of `opscope info`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from opscope.ir import PHASES, ROLES, Capture, Graph
from opscope.ir.attributes import COPIES_FOR, MODULE_GUESSED
from opscope.ir.facts import BREAKS, PROFILE, RECOMPILES, SPLIT
from opscope.ir.relations import Groups

from .costs.operators import sum_by
from .joining.by_size import memory_summary as memory_summary
from .savings import described, savings
from .times import in_seconds
from .utilization import utilization
from .weights import weights
from .world import summary as world


def info(capture: Capture) -> dict[str, Any]:
    """The content of `opscope info --json`; docs/cli.md lists the fields."""
    return {
        "format": capture.origin.format,
        "framework": capture.origin.framework,
        "version": capture.origin.version or None,
        "how": capture.origin.how,
        "breaks": _rows(capture, BREAKS.name),
        "recompiles": _rows(capture, RECOMPILES.name),
        **({"profile": measured} if (measured := profile(capture)) is not None else {}),
        **({"utilization": used} if (used := utilization(capture)) is not None else {}),
        **({"savings": described(capture, won)} if (won := savings(capture)) else {}),
        **({"memory": held} if (held := memory_summary(capture)) is not None else {}),
        **({"world": world.info(found)} if (found := world.world_of(capture)) is not None else {}),
        "warnings": list(capture.warnings),
        "stages": [_stage(capture, number) for number in range(len(capture.stages))],
    }


def _stage(capture: Capture, number: int) -> dict[str, Any]:
    stage = capture.stages[number]
    graph = stage.graph
    return {
        "name": stage.name,
        "after": None if stage.after is None else capture.stages[stage.after].name,
        "seconds": stage.seconds,
        "nodes": graph.n_nodes,
        "values": graph.n_values,
        "edges": graph.n_edges,
        "scopes": len(used_scopes(graph)),
        "phases": phase_counts(graph),
        **({"weights": [one.to_dict() for one in known]} if (known := weights(capture, number)) else {}),
        "links": {kind: len(links) for kind, links in graph.links.items()},
        "groups": {kind: len(groups) for kind, groups in graph.groups.items()},
        "coverage": coverage(graph),
        "warnings": list(stage.warnings),
    }


def profile(capture: Capture) -> dict[str, Any] | None:
    """How much of a measured profile found its place, and what did not; None where there is no profile."""
    tables = [table for table in capture.tables.values() if table.fact == PROFILE.name]
    if not tables:
        return None
    evidence: dict[str, int] = {}
    unplaced: list[dict[str, Any]] = []
    total = {"kernels": 0, "placed": 0, "with_module": 0, "with_line": 0, "seconds": 0.0, "placed_seconds": 0.0}
    for table in tables:
        columns: dict[str, Any] = {name: column.values for name, column in table.columns.items()}
        seconds = in_seconds(table.columns["time"])
        for row in range(len(table.index)):
            kernels, how = int(columns["kernels"][row]), str(columns["evidence"][row])
            total["kernels"] += kernels
            total["seconds"] += float(seconds[row])
            if how:
                evidence[how] = evidence.get(how, 0) + kernels
                total["placed"] += kernels
                total["placed_seconds"] += float(seconds[row])
                total["with_module"] += int(columns["with module"][row])
                total["with_line"] += int(columns["with line"][row])
            else:
                reason, name = str(columns["reason"][row]), str(columns["name"][row])
                unplaced.append({"name": name, "kernels": kernels, "seconds": float(seconds[row]), "reason": reason})
    return {**total, "evidence": evidence, "unplaced": unplaced, "split": split(capture)}


def split(capture: Capture) -> list[dict[str, Any]]:
    """Where the time of a profiled run went."""
    found: list[dict[str, Any]] = []
    for table in capture.tables.values():
        if table.fact == SPLIT.name:
            columns: dict[str, Any] = {name: column.values for name, column in table.columns.items()}
            took = in_seconds(table.columns["time"])
            for row in range(len(table.index)):
                words = {key: str(columns[key][row]) for key in ("name", "explanation")}
                found.append({**words, "seconds": float(took[row]), "count": int(columns["count"][row])})
    return found


def _rows(capture: Capture, fact: str) -> int:
    return sum(len(table.index) for table in capture.tables.values() if table.fact == fact)


def coverage(graph: Graph) -> dict[str, int]:
    """How many operators and kernels lead to a module and to a line of source."""
    in_module, on_line = graph.node_scope > 0, graph.node_stack > 0
    found = {
        "operators": graph.n_nodes,
        "operators_with_module": int(in_module.sum()),
        "operators_with_line": int(on_line.sum()),
        "operators_with_guessed_module": _guessed(graph),
    }
    groups = graph.groups.get("kernel")
    if groups is None:
        return {**found, "kernels": 0, "kernels_with_module": 0, "kernels_with_line": 0}
    group, member = np.repeat(np.arange(len(groups)), np.diff(groups.start)), groups.member
    served = _served(graph, groups)
    group = np.concatenate([group, np.array([number for number, _ in served], dtype=np.int64)])
    member = np.concatenate([member, np.array([node for _, node in served], dtype=np.int64)])
    return {
        **found,
        "kernels": len(groups),
        "kernels_with_module": len(np.unique(group[in_module[member]])),
        "kernels_with_line": len(np.unique(group[on_line[member]])),
    }


def _guessed(graph: Graph) -> int:
    """Operators whose module is a guess, which says so."""
    ids, counts = np.unique(graph.node_attrs, return_counts=True)
    rows, texts, key = zip(ids.tolist(), counts.tolist(), strict=True), graph.pools.attr_texts, f'"{MODULE_GUESSED}"'
    return sum(count for number, count in rows if key in texts[number])


def _served(graph: Graph, groups: Groups) -> list[tuple[int, int]]:
    """Kernels that compute nothing, each with the operator that they copy for."""
    empty = np.flatnonzero(np.diff(groups.start) == 0).tolist()
    wanted = {
        number: name for number in empty if (name := graph.pools.attrs_of(int(groups.attrs[number])).get(COPIES_FOR))
    }
    strings = graph.pools.strings
    nodes = {strings[name]: i for i, name in enumerate(graph.node_name.tolist())} if wanted else {}
    return [(number, nodes[name]) for number, name in wanted.items() if name in nodes]


def phase_counts(graph: Graph) -> dict[str, int]:
    counts = np.bincount(graph.node_phase, minlength=len(PHASES)).tolist()
    return {phase: n for phase, n in zip(PHASES, counts, strict=True) if n}


def op_counts(graph: Graph) -> Counter[str]:
    strings = graph.pools.strings
    ops, counts = np.unique(graph.node_op, return_counts=True)
    return Counter({strings[op]: n for op, n in zip(ops.tolist(), counts.tolist(), strict=True)})


def used_scopes(graph: Graph) -> set[int]:
    """The scopes that have nodes in this graph, with those around them; the root is not counted."""
    scopes = graph.pools.scopes
    found: set[int] = set()
    for scope in np.unique(graph.node_scope).tolist():
        while scope > 0 and scope not in found:
            found.add(scope)
            scope = scopes[scope].parent
    return found


@dataclass(frozen=True)
class Tally:
    """Values of one role: how many distinct storages, and their elements (None: of some, not known)."""

    storages: int
    elements: int
    unknown: int


def tally(graph: Graph, role: str) -> Tally:
    """Counted by storage: an updated parameter is the same parameter."""
    owners = np.unique(graph.value_storage[graph.value_role == ROLES.index(role)])
    types, counts = np.unique(graph.value_type[owners], return_counts=True)
    sizes = [(graph.pools.types[type_].elements, n) for type_, n in zip(types.tolist(), counts.tolist(), strict=True)]
    return Tally(
        len(owners),
        sum(size * n for size, n in sizes if size is not None),
        sum(n for size, n in sizes if size is None),
    )


@dataclass(frozen=True)
class KernelSummary:
    """How fused kernels cover the graph."""

    executions: int
    distinct: int  # generated kernels that differ
    ready: int  # executions of ready-made code: reshape, copies, data from numpy
    fused: int  # executions of more than one operator
    largest: int  # operators in the largest one
    repeated: int  # operators that ran in more than one kernel
    with_code: int


def kernels(graph: Graph) -> KernelSummary | None:
    groups = graph.groups.get("kernel")
    if groups is None or not len(groups):
        return None
    inside = np.ones(graph.n_nodes, dtype=np.int64)
    for node, bodies in graph.bodies_by_node.items():
        inside[node] = sum(body.graph.n_nodes for body in bodies) or 1
    sizes = sum_by(np.repeat(np.arange(len(groups)), np.diff(groups.start)), inside[groups.member], len(groups))
    return KernelSummary(
        executions=len(groups),
        distinct=len(np.unique(groups.attrs[groups.attrs > 0])),
        ready=int((groups.attrs == 0).sum()),
        fused=int((sizes > 1).sum()),
        largest=int(sizes.max(initial=0)),
        repeated=int((np.bincount(groups.member, minlength=1) > 1).sum()),
        with_code=int((groups.code > 0).sum()),
    )
