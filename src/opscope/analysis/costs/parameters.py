"""The parameters of a model, each once however many names or uses it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opscope.ir import Graph
from opscope.ir.enumerations import PHASE_ID, ROLE_ID

from .operators import CostTable
from .sizes import Ints, bytes_of


class Parameter(NamedTuple):
    """One parameter. What is not known is None: whether it is trained, its size."""

    names: tuple[str, ...]  # several: tied
    dtype: str
    elements: int | None
    bytes: int | None
    is_trained: bool | None
    is_used: bool
    scope: int = 0  # where it is used first
    is_taken: bool = False  # the model's code took it, whether an operator reads it or not


@dataclass(frozen=True)
class Parameters:
    """Unique by storage. `at_least`: there may be more of them. `may_be_used`: those that no operator reads may have
    been read by one that is not in the graph."""

    each: tuple[Parameter, ...]
    at_least: bool = False
    may_be_used: bool = False

    @property
    def count(self) -> int:
        return sum(p.elements or 0 for p in self.each)

    @property
    def bytes(self) -> int:
        return sum(p.bytes or 0 for p in self.each)

    @property
    def trainable(self) -> int | None:
        """Numbers that are trained; None where the capture does not say."""
        return self._of(True)

    @property
    def frozen(self) -> int | None:
        return self._of(False)

    def _of(self, is_trained: bool) -> int | None:
        if any(p.is_trained is None for p in self.each):
            return None
        return sum(p.elements or 0 for p in self.each if p.is_trained is is_trained)

    @property
    def unused(self) -> list[str]:
        """Those that nothing uses, by name. None are where operators may be missing from the graph."""
        return [] if self.may_be_used else [p.names[0] for p in self.each if not p.is_used and not p.is_taken]

    @property
    def perhaps_unused(self) -> list[str]:
        """Those that no operator of the graph reads and something else may have read, by name."""
        return self.unread if self.may_be_used else [p.names[0] for p in self.each if not p.is_used and p.is_taken]

    @property
    def unread(self) -> list[str]:
        """Those that no operator of the graph reads, by name."""
        return [p.names[0] for p in self.each if not p.is_used]

    @property
    def tied(self) -> list[tuple[str, ...]]:
        """Those with several names."""
        return [p.names for p in self.each if len(p.names) > 1]

    @property
    def bytes_by_dtype(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for p in self.each:
            found[p.dtype or "?"] += p.bytes or 0
        return dict(found.most_common())

    @property
    def unknown(self) -> int:
        """How many are of unknown size."""
        return sum(p.elements is None for p in self.each)


def parameters(graph: Graph, table: CostTable, held: Sequence[Parameter] = (), *, has_gaps: bool = False) -> Parameters:
    """Those of the graph. `held` are those of the live model: it also knows the ones that no operator reads, all of
    their names, and which are trained. `has_gaps`: operators that read parameters are missing from the graph."""
    found = _of_graph(graph, table)
    if not held:
        return Parameters(tuple(found), has_gaps or any(p.elements is None for p in found), has_gaps)
    by_name = {name: p for p in found for name in p.names}
    every: list[Parameter] = []
    for own in held:
        seen = next((by_name[name] for name in own.names if name in by_name), None)
        every.append(own._replace(is_used=seen is not None, scope=seen.scope if seen is not None else 0))
    named = {name for own in held for name in own.names}
    every += [p for p in found if not named.intersection(p.names)]
    return Parameters(tuple(every), any(p.elements is None for p in every), has_gaps)


def first_users(graph: Graph, of_value: Ints) -> Ints:
    """By storage: the node whose module it is counted in, or -1. Where it is used, not where it is made or updated:
    forward operators come first. `of_value`: the storage of each value."""
    read = np.flatnonzero(graph.use_value >= 0)
    node = graph.use_node[read]
    late = np.isin(graph.node_phase[node], [PHASE_ID["init"], PHASE_ID["optimizer"], PHASE_ID["backward"]])
    order = np.argsort(late, kind="stable")[::-1]
    first = np.full(graph.n_values, -1, dtype=np.int64)
    first[of_value[graph.use_value[read[order]]]] = node[order]
    return first


def _of_graph(graph: Graph, table: CostTable) -> list[Parameter]:
    of_value = table.storages.of_value
    values = np.flatnonzero(graph.value_role == ROLE_ID["parameter"])
    by_storage: dict[int, list[int]] = {}
    for value, storage in zip(values.tolist(), of_value[values].tolist(), strict=True):
        by_storage.setdefault(storage, []).append(value)

    first = first_users(graph, of_value)
    trained = _trained(graph, table)
    strings, types = graph.pools.strings, graph.pools.types
    found: list[Parameter] = []
    for storage, members in by_storage.items():
        names = tuple(dict.fromkeys(name for v in members if (name := strings[int(graph.value_name[v])])))
        type_ = max((types[int(graph.value_type[v])] for v in members), key=lambda t: t.elements or 0)
        user = int(first[storage])
        found.append(
            Parameter(
                names or (f"%{storage}",),
                type_.dtype,
                type_.elements,
                bytes_of(type_),
                storage in trained if trained is not None else None,
                user >= 0,
                int(graph.node_scope[user]) if user >= 0 else 0,
            )
        )
    return found


def _trained(graph: Graph, table: CostTable) -> set[int] | None:
    """The storages of parameters that get a gradient or are written by an optimizer; None if nothing trains here."""
    strings = graph.pools.strings
    is_parameter = graph.value_role == ROLE_ID["parameter"]
    owner = table.storages.of_value
    made = graph.value_producer >= 0
    updated = np.zeros(graph.n_values, dtype=bool)
    updated[made] = graph.node_phase[graph.value_producer[made]] == PHASE_ID["optimizer"]
    found = set(owner[is_parameter & updated].tolist())
    gradients = {
        strings[int(name)].removesuffix(".grad")
        for name in np.unique(graph.value_name[graph.value_role == ROLE_ID["gradient"]])
    } - {""}
    for value in np.flatnonzero(is_parameter).tolist():
        if strings[int(graph.value_name[value])] in gradients:
            found.add(int(owner[value]))
    return found or None
