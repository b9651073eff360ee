"""What is written on the edges of a drawing: the type of what flows there, and what was seen of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opscope.errors import OpscopeError
from opscope.ir import Capture, Graph, Table
from opscope.ir.facts import GRADIENTS

WORDS = ("shape", "dtype", "place", "grad")
_FIGURES = ("norm", "min", "max", "mean")
_COUNTS = ("nan", "inf")


def checked(words: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """`"shape,dtype"` and `("shape", "dtype")` alike; "none" for nothing."""
    if words is None:
        return None
    parts = [part.strip() for part in words.split(",")] if isinstance(words, str) else list(words)
    if parts in ([], ["none"]):
        return ()
    for part in parts:
        if part not in WORDS:
            raise OpscopeError(f"edges: {part!r} is not known (there are: {', '.join(WORDS)}, or none)")
    return tuple(parts)


def gradients_of(capture: Capture, stage: int) -> Table | None:
    return next(capture.facts(GRADIENTS.name, stage), None)


def suiting(capture: Capture, stage: int) -> tuple[str, ...]:
    """A backward graph is read by what flows in it, as long as all of it can be read."""
    graph = capture.stages[stage].graph
    found = gradients_of(capture, stage)
    is_chain = found is not None and "place" in found.columns and not graph.links
    return ("shape", "dtype", "place", "grad") if is_chain else ()


def by_value(capture: Capture, stage: int, words: Sequence[str]) -> list[str]:
    """The lines of each value, with newlines between them."""
    texts = types_by_value(capture.stages[stage].graph, words)
    table = gradients_of(capture, stage)
    if table is not None:
        for row, value in enumerate(table.index.tolist()):
            lines: list[str] = [texts[value]] if texts[value] else []
            texts[value] = "\n".join(lines + _seen(table, row, words))
    return texts


def types_by_value(graph: Graph, words: Sequence[str]) -> list[str]:
    types = {type_: _type(graph, type_, words) for type_ in set(graph.value_type.tolist())}
    return [types[type_] for type_ in graph.value_type.tolist()]


def _type(graph: Graph, type_: int, words: Sequence[str]) -> str:
    found = graph.pools.types[type_]
    parts: list[str] = []
    if "shape" in words and found.shape is not None:
        parts.append("×".join("?" if size is None else str(size) for size in found.shape) or "scalar")
    if "dtype" in words and found.dtype:
        parts.append(found.dtype)
    return " ".join(parts) or ("?" if {"shape", "dtype"} & set(words) else "")


def _seen(table: Table, row: int, words: Sequence[str]) -> list[str]:
    def figure(name: str) -> float | None:
        column = table.columns.get(name)
        value: Any = column.values[row] if column is not None and column.known[row] else None
        return None if value is None else float(value)

    lines: list[str] = []
    place = table.columns.get("place")
    if "place" in words and place is not None and place.known[row]:
        lines.append(str(place.values[row]))
    if "grad" in words:
        figures = [f"{name} {found:.3g}" for name in _FIGURES if (found := figure(name)) is not None]
        figures += [f"{name} {found:.0f}" for name in _COUNTS if (found := figure(name))]
        lines += [" ".join(figures[i : i + 2]) for i in range(0, len(figures), 2)]
    return lines
