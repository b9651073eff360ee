"""find(graph, query): the nodes that a query of the search language finds. docs/find.md describes it."""

from __future__ import annotations

import numpy as np

from opscope.ir import Graph
from opscope.ir.columns import Int32, frozen

from .conditions import Conditions, Mask, Measured
from .query import BadQuery, Step, parse

__all__ = ["BadQuery", "find"]

AT_MOST = 10  # nodes that `**` stands for


def find(graph: Graph, query: str, framework: str = "", measured: Measured | None = None) -> Int32:
    """The nodes that match, in execution order; of a path, every node on it. `framework` says which kinds its operators
    are, `measured` what is known of their times and values.

    >>> from opscope.ir import GraphBuilder, Pools
    >>> b = GraphBuilder(Pools())
    >>> conv = b.node("conv2d")
    >>> relu = b.node("relu", [b.output(conv)])
    >>> find(b.freeze(), "op:conv -> relu").tolist()
    [0, 1]
    """
    steps = parse(query, measured.own_names() if measured is not None else ())
    conditions = Conditions(graph, framework, measured)
    if len(steps) == 1 and not steps[0].any_number:
        return frozen(np.flatnonzero(conditions.all_of(steps[0].terms)))
    return frozen(np.flatnonzero(_on_paths(graph, steps, conditions)))


def _on_paths(graph: Graph, steps: list[Step], conditions: Conditions) -> Mask:
    """A node is on a path where it can be reached from the first step and can reach the last one."""
    places: list[Mask] = []
    optional: list[bool] = []
    everything = np.ones(graph.n_nodes, dtype=bool)
    for step in steps:
        mask = everything if not step.terms else conditions.all_of(step.terms)
        places += [mask] * (AT_MOST if step.any_number else 1)
        optional += [step.any_number] * (AT_MOST if step.any_number else 1)
    read = np.flatnonzero(graph.use_value >= 0)
    source, target = graph.value_producer[graph.use_value[read]], graph.use_node[read]
    source, target = source[source >= 0], target[source >= 0]
    forward = _reached(places, optional, source, target)
    backward = _reached(places[::-1], optional[::-1], target, source)[::-1]
    found = np.zeros(graph.n_nodes, dtype=bool)
    for before, behind in zip(forward, backward, strict=True):
        found |= before & behind
    return found


def _reached(places: list[Mask], optional: list[bool], source: Int32, target: Int32) -> list[Mask]:
    """For each place of a path the nodes that can be there, going by what comes before it."""
    reached: list[Mask] = []
    last = np.zeros_like(places[0])  # what can come right before: optional places may have been left out
    from_start = True
    for mask, may_be_left_out in zip(places, optional, strict=True):
        here = np.zeros_like(mask)
        if last.any():
            here[target[last[source]]] = True
        here = mask if from_start else here & mask
        reached.append(here)
        last = last | here if may_be_left_out else here
        from_start = from_start and may_be_left_out
    return reached
