"""Weights of a checkpoint on a captured graph: by their names and shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from opscope.errors import BadInput
from opscope.ir import ROLES, Capture, Column, Graph, Table, frozen
from opscope.ir.facts import VALUES

Kind = TypeVar("Kind", bound=Capture)

_HOLDS = ("parameter", "buffer", "constant")
_SHOWN = 3


def onto(capture: Kind, weights: Capture, name: str) -> Kind:
    """The capture with what is known of these weights, `name` in messages. A name in the file may begin with more than
    the graph's (`module.`, `state_dict/`), or with less; a pair must have one shape."""
    held = weights.stages[0].graph
    known = next(iter(weights.facts(VALUES.name, 0)), None)
    made = replace(capture, tables=dict(capture.tables), warnings=list(capture.warnings))
    total = 0
    placed: set[int] = set()
    for number, stage in enumerate(capture.stages):
        pairs = _pairs(stage.graph, held)
        total += len(pairs)
        placed.update(pairs.values())
        if known is not None and pairs:
            made.add(_moved(known, number, pairs))
    if not total:
        raise BadInput(
            f"{name}: weights of another model: none of its {held.n_values:,} tensors has the name and shape of a "
            "parameter of the graph"
        )
    lost = [held.value(value).name for value in range(held.n_values) if value not in placed]
    if lost:
        listed = ", ".join(lost[:_SHOWN]) + (", …" if len(lost) > _SHOWN else "")
        made.warnings.append(f"{len(lost):,} of {held.n_values:,} tensors of {name} are no parameters here: {listed}")
    bare = [
        value.name or f"%{value.index}"
        for value in capture.stages[0].graph.values
        if value.role in ("parameter", "buffer") and value.producer is None
    ]
    missing = len(bare) - len(_pairs(capture.stages[0].graph, held))
    if missing > 0:
        made.warnings.append(f"{missing:,} of {len(bare):,} parameters and buffers are not in {name}")
    return made


def _pairs(graph: Graph, held: Graph) -> dict[int, int]:
    """A value of the graph -> the tensor of the file."""
    by_name: dict[str, int] = {}
    by_end: dict[str, list[int]] = defaultdict(list)
    for value in range(graph.n_values):
        if ROLES[int(graph.value_role[value])] in _HOLDS and graph.value_producer[value] < 0:
            plain = _plain(graph.pools.strings[int(graph.value_name[value])])
            if plain:
                by_name.setdefault(plain, value)
                for end in _ends(plain)[1:]:
                    by_end[end].append(value)
    pairs: dict[int, int] = {}
    for tensor in range(held.n_values):
        name = _plain(held.pools.strings[int(held.value_name[tensor])])
        candidates = [by_name[end] for end in _ends(name) if end in by_name]
        candidates += by_end[name] if len(by_end.get(name, ())) == 1 else []
        for value in candidates:
            if value not in pairs and _shape(graph, value) == _shape(held, tensor):
                pairs[value] = tensor
                break
    return pairs


def _plain(name: str) -> str:
    return name.replace("/", ".").replace("_orig_mod.", "")


def _ends(name: str) -> list[str]:
    """`a.b.c`, `b.c`, `c`: of at least two parts, unless it has no more."""
    parts = name.split(".")
    return [".".join(parts[i:]) for i in range(max(len(parts) - 1, 1))][:20]


def _shape(graph: Graph, value: int) -> Any:
    return graph.pools.types[int(graph.value_type[value])].shape


def _moved(table: Table, stage: int, pairs: dict[int, int]) -> Table:
    rows = {int(value): row for row, value in enumerate(table.index.tolist())}
    chosen = sorted((value, rows[tensor]) for value, tensor in pairs.items() if tensor in rows)
    places = [row for _, row in chosen]
    columns = {name: _taken(column, places) for name, column in table.columns.items()}
    return Table(stage, "value", frozen([value for value, _ in chosen]), columns, VALUES.name)


def _taken(column: Column, rows: Sequence[int]) -> Column:
    values = column.values
    chosen = list(rows)
    if isinstance(values, np.ndarray):
        return Column(values[np.array(chosen, dtype=np.int64)], column.known[chosen], column.unit)
    taken: Any = [values[row] for row in chosen]
    return Column(taken, column.known[chosen], column.unit)
