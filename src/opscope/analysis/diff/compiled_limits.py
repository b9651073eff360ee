"""Conditions on what a compiler did: graph breaks, recompilations, and how many kernels compute something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.analysis.search import find
from opscope.errors import OpscopeError
from opscope.ir import Capture, Graph, scope_label
from opscope.ir.facts import BREAKS, RECOMPILES

from .kernels import kernel_stages
from .limits import Limit, exceeded_by, holds

_SCOPE = re.compile(r"scope:([^\s\"()]+)$")
_FACTS = {"breaks": BREAKS.name, "recompiles": RECOMPILES.name}


class Counted(NamedTuple):
    number: int
    where: str = ""


def exceeded_in(limit: Limit, before: Capture | None, after: Capture) -> str | None:
    """Why a condition holds of the later capture, or of the difference; None where it does not."""
    found = list(_counts(limit, after))
    if limit.is_difference:
        if before is None:
            raise OpscopeError(f"--fail-on {limit.text!r} is about a difference, which takes two captures")
        return exceeded_by(limit, _most(_counts(limit, before)), _most(iter(found)))
    for counted in found:
        if holds(limit, counted.number):
            return f"{limit.text}: {f'{counted.where} has' if counted.where else 'there are'} {counted.number:,}"
    return None


def _most(found: Iterator[Counted]) -> int:
    return max((counted.number for counted in found), default=0)


def _counts(limit: Limit, capture: Capture) -> Iterator[Counted]:
    if limit.figure in _FACTS:
        fact = _FACTS[limit.figure]
        yield Counted(sum(len(table.index) for table in capture.tables.values() if table.fact == fact))
        return
    stages = list(kernel_stages(capture))
    if not stages:
        raise OpscopeError(f"--fail-on {limit.text!r}: the capture has no kernels of a compiler")
    if _SCOPE.match(limit.query):
        for stage in stages:
            graph, name = capture.stages[stage].graph, capture.stages[stage].name
            for scope, nodes in modules_like(graph, limit.query):
                yield Counted(_kernels_of(graph, nodes), f"{graph.pools.scope_path(scope)} in {name}")
        return
    total = 0
    for stage in stages:
        graph = capture.stages[stage].graph
        nodes = np.ones(graph.n_nodes, dtype=bool)
        if limit.query:
            nodes = np.zeros(graph.n_nodes, dtype=bool)
            nodes[find(graph, limit.query, capture.origin.framework)] = True
        total += _kernels_of(graph, nodes) if limit.query else len(graph.groups["kernel"])
    yield Counted(total)


def _kernels_of(graph: Graph, wanted: npt.NDArray[np.bool_]) -> int:
    """How many kernels compute one of these operators."""
    groups = graph.groups["kernel"]
    number = np.repeat(np.arange(len(groups)), np.diff(groups.start))
    return len(np.unique(number[wanted[groups.member]]))


def modules_like(graph: Graph, query: str) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
    """Each module whose path ends as `scope:PATTERN` says, with the operators in it."""
    module = _SCOPE.match(query)
    if module is None:
        return
    wanted = re.split(r"[./]", module[1])
    scopes = graph.pools.scopes.rows()
    labels = [scope_label(scope) for scope in scopes]
    for i in range(1, len(scopes)):
        tail: list[str] = []
        walk = i
        while walk > 0 and len(tail) < len(wanted):
            tail.insert(0, labels[walk])
            walk = scopes[walk].parent
        if len(tail) < len(wanted) or not all(map(fnmatchcase, tail, wanted)):
            continue
        inside = np.zeros(len(scopes), dtype=bool)
        inside[i] = True
        for j in range(i + 1, len(scopes)):  # parents come first
            inside[j] = inside[scopes[j].parent]
        nodes = inside[graph.node_scope]
        if nodes.any():
            yield i, nodes
