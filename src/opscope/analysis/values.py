"""Measured figures of tensors (min, max, how many are NaN …), whatever they were measured by, and the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opscope.ir import Capture, Graph
from opscope.ir.columns import Int32
from opscope.ir.facts import GRADIENTS, IDS, OWN, VALUE_FIGURES, VALUES


class Figure(NamedTuple):
    """One figure by value, and of which values it is known."""

    numbers: npt.NDArray[np.float64]
    known: npt.NDArray[np.bool_]


_JOINED: dict[str, Callable[[Sequence[float]], float]] = {
    "norm": lambda each: math.hypot(*each),
    "min": min,
    "max": max,
    "nan": sum,
    "inf": sum,
}  # what several tensors have together; the mean of several is that of no tensor


def made_by(graph: Graph, figures: Mapping[str, Figure]) -> dict[int, dict[str, float]]:
    """The figures of what each node makes, of all its outputs together; nodes without any are left out."""
    found: dict[int, dict[str, float]] = {}
    for name, (numbers, known) in figures.items():
        each: dict[int, list[float]] = {}
        for value in np.flatnonzero(known & (graph.value_producer >= 0)).tolist():
            each.setdefault(int(graph.value_producer[value]), []).append(float(numbers[value]))
        for node, outputs in each.items():
            if len(outputs) == 1:
                found.setdefault(node, {})[name] = outputs[0]
            elif name in _JOINED:
                has_nan = any(math.isnan(number) for number in outputs)
                found.setdefault(node, {})[name] = math.nan if has_nan else _JOINED[name](outputs)
    return found


def framework_ids(capture: Capture, stage: int) -> Mapping[str, Figure]:
    """The numbers that the framework itself gives, by "node" and by "value"."""
    graph = capture.stages[stage].graph
    found: dict[str, Figure] = {}
    for table in capture.facts(IDS.name, stage):
        count = graph.n_nodes if table.by == "node" else graph.n_values
        ids = found.setdefault(table.by, Figure(np.zeros(count), np.zeros(count, dtype=bool)))
        column = table.columns["id"]
        ids.numbers[table.index] = np.asarray(column.values, dtype=np.float64)
        ids.known[table.index] = column.known
    return found


def value_figures(capture: Capture, stage: int) -> Mapping[str, Figure]:
    """The figures that were measured of the values of a stage, by name; only those that some value has."""
    count = capture.stages[stage].graph.n_values
    found: dict[str, Figure] = {}
    for table in (*capture.facts(VALUES.name, stage), *capture.facts(GRADIENTS.name, stage)):
        for name in VALUE_FIGURES:
            column = table.columns.get(name)
            if column is None or not column.known.any():
                continue
            figure = found.setdefault(name, Figure(np.zeros(count), np.zeros(count, dtype=bool)))
            rows = column.known & ~figure.known[table.index]  # of two tables, the first one counts
            figure.numbers[table.index[rows]] = np.asarray(column.values, dtype=np.float64)[rows]
            figure.known[table.index[rows]] = True
    return found


class OwnFigures(NamedTuple):
    """A column of figures of the user's own: those of nodes, and of whole modules (by scope)."""

    by_node: Figure
    by_scope: Figure
    unit: str


def own_figures(capture: Capture, stage: int) -> dict[str, OwnFigures]:
    """The numeric columns of the user's own about a stage, by name."""
    graph = capture.stages[stage].graph
    found: dict[str, OwnFigures] = {}
    for table in capture.facts(OWN.name, stage):
        for name, column in table.columns.items():
            if not isinstance(column.values, np.ndarray):
                continue
            one = found.setdefault(name, OwnFigures(_none(graph.n_nodes), _none(len(graph.pools.scopes)), column.unit))
            figure = one.by_node if table.by == "node" else one.by_scope
            rows: Int32 = table.index[column.known]
            figure.numbers[rows] = np.asarray(column.values, dtype=np.float64)[column.known]
            figure.known[rows] = True
    return found


def own_texts(capture: Capture, stage: int) -> dict[str, dict[str, dict[int, str]]]:
    """The columns of text: by name, `node` or `scope`, and its number."""
    found: dict[str, dict[str, dict[int, str]]] = {}
    for table in capture.facts(OWN.name, stage):
        for name, column in table.columns.items():
            if isinstance(column.values, np.ndarray):
                continue
            one = found.setdefault(name, {"node": {}, "scope": {}})[table.by]
            for at, value, known in zip(table.index.tolist(), column.values, column.known.tolist(), strict=True):
                if known:
                    one[at] = str(value)
    return found


def _none(count: int) -> Figure:
    return Figure(np.zeros(count), np.zeros(count, dtype=bool))
