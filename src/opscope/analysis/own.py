"""Figures of the user's own (a latency, an error rate, a label) joined to operators and modules,.

Which operator or module a row is about, one of its columns says: the number of a node, the path of a module, or a name.
`viewer/src/engine/own.ts` follows the same rules; `tests/own_cases.json` tests both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opscope.errors import BadInput
from opscope.ir import PHASES, Capture, Column, Graph, Table, frozen
from opscope.ir.facts import OWN, OWN_KEYS, OWN_LABELS

from .search.query import FIELDS

Columns = Mapping[str, Sequence[Any]]  # as a table has them; None where nothing is known
ROLLS = ("sum", "mean", "max")
_UNIT = re.compile(r"(.*?)\s*[(\[]([^()\[\]]*)[)\]]\s*", re.DOTALL)
_UNKNOWN = {"", "-", "?", "nan", "na", "n/a", "null", "none"}
_MOST_LISTED = 10


class Joined(NamedTuple):
    """What became of a table: how many of its rows found their place, and which did not (row and text)."""

    name: str
    columns: list[str]
    rows: int
    matched: int
    unmatched: list[tuple[int, str]]

    def __str__(self) -> str:
        lost = len(self.unmatched)
        found = f"{self.name}: {self.matched:,} of {self.rows:,} rows joined as {', '.join(self.columns)}"
        if not lost:
            return found
        listed = ", ".join(f"{text!r} (row {row})" for row, text in self.unmatched[:_MOST_LISTED])
        more = f", and {lost - _MOST_LISTED:,} more" if lost > _MOST_LISTED else ""
        return f"{found}; no operator or module is {listed}{more}"


def join(capture: Capture, name: str, columns: Columns, stage: int | None = None) -> Joined:
    """Add a table to the facts of a stage: of the one that is given, or the one in which most rows find their place."""
    rows = max((len(values) for values in columns.values()), default=0)
    keys = key_columns(list(columns))
    labels = OWN_LABELS if keys else ()
    figures = [header for header in columns if header not in keys and header.strip().lower() not in labels]
    if not keys and columns:  # the first column, if it names anything
        first = next(iter(columns))
        keys, figures = {first: "any"}, figures[1:]
    if not figures or not rows:
        raise BadInput(f"{name}: no figures: a column says which operators (node, path or name), others hold figures")
    stages = range(len(capture.stages)) if stage is None else [stage]
    found = {i: _places(capture.stages[i].graph, columns, keys, rows) for i in stages}
    best = max(found, key=lambda i: (sum(place is not None for place in found[i]), -i))
    places = found[best]
    if not any(places):
        named = ", ".join(map(str, columns))
        raise BadInput(
            f"{name}: none of its {rows:,} rows is an operator or module here: a column node (a number), path "
            f"(layer1/0/conv1) or name says which it is about (found: {named})"
        )
    taken = {column for table in capture.tables.values() if table.fact == OWN.name for column in table.columns}
    names = column_names(figures, taken)
    for by in ("node", "scope"):
        _add(capture, name, best, by, places, {names[h]: (columns[h], unit_of(h)) for h in figures})
    key = next(iter(keys))
    lost = [(row + 1, _text(columns[key][row])) for row, place in enumerate(places) if place is None]
    joined = Joined(name, list(names.values()), rows, rows - len(lost), lost)
    if lost:
        capture.warnings.append(str(joined))
    return joined


def key_columns(headers: Sequence[str]) -> dict[str, str]:
    """Headers that say which operator or module a row is about, and how: `node`, `path` or `name`, in this order."""
    return {
        header: kind for kind, spelled in OWN_KEYS.items() for header in headers if header.strip().lower() in spelled
    }


def unit_of(header: str) -> str:
    """`ms` of `latency (ms)`."""
    found = _UNIT.fullmatch(header)
    return found[2].strip() if found and found[1].strip() else ""


def column_names(headers: Sequence[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """What columns are called in searches and tables: letters, digits and `_`, no name that means something else."""
    used = {*(name.lower() for name in taken), *FIELDS}
    names: dict[str, str] = {}
    for header in headers:
        found = _UNIT.fullmatch(header)
        text = found[1] if found and found[1].strip() else header
        plain = re.sub(r"\W+", "_", text.strip()).strip("_") or "column"
        plain = plain if not plain[0].isdigit() else f"c{plain}"
        name = plain if plain.lower() not in FIELDS else f"my_{plain}"
        number = 2
        while name.lower() in used:
            name, number = f"{plain}_{number}", number + 1
        used.add(name.lower())
        names[header] = name
    return names


def _places(graph: Graph, columns: Columns, keys: Mapping[str, str], rows: int) -> list[tuple[str, int] | None]:
    finder = _Finder(graph)
    places: list[tuple[str, int] | None] = [None] * rows
    for header, kind in keys.items():
        values = columns[header]
        for row in range(min(rows, len(values))):
            if places[row] is None and values[row] is not None:
                places[row] = finder.place(values[row], kind)
    return places


class _Finder:
    """From what a row says to a node or a scope of the graph."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.n_nodes
        strings = graph.pools.strings
        paths = graph.pools.scope_paths()
        used = np.zeros(len(paths), dtype=bool)
        used[graph.node_scope] = True
        scopes = graph.pools.scopes.rows()
        for i in range(len(paths) - 1, 0, -1):  # what is around a module that is used is used
            used[scopes[i].parent] |= used[i]
        self.scopes: dict[str, int] = {}
        self.tails: dict[str, int] = {}  # -1: of several modules
        for i in range(1, len(paths)):
            if not used[i]:
                continue
            path = _plain(paths[i])
            self.scopes.setdefault(path, i)
            at = path.find(".")
            while at >= 0:
                tail = path[at + 1 :]
                self.tails[tail] = -1 if tail in self.tails else i
                at = path.find(".", at + 1)
        self.names: dict[str, int] = {}  # -1: of several
        for node, name in enumerate(graph.node_name.tolist()):
            self._name(strings[name], node)
        made = np.flatnonzero(graph.value_producer >= 0)
        for value in made.tolist():
            self._name(strings[int(graph.value_name[value])], int(graph.value_producer[value]))

    def _name(self, name: str, node: int) -> None:
        if name:
            self.names[name] = node if self.names.get(name, node) == node else -1

    def place(self, said: Any, kind: str) -> tuple[str, int] | None:
        text = _text(said)
        ways: dict[str, tuple[Callable[[str], tuple[str, int] | None], ...]] = {
            "node": (self._number,),
            "path": (self._path, self._named),
            "name": (self._named, self._path),
            "any": (self._named, self._path, self._number),
        }
        return next((found for way in ways[kind] if (found := way(text)) is not None), None)

    def _number(self, text: str) -> tuple[str, int] | None:
        number = re.fullmatch(r"#?(\d{1,10})(?:\.0*)?", text, re.ASCII)
        return ("node", int(number[1])) if number and int(number[1]) < self.nodes else None

    def _path(self, text: str) -> tuple[str, int] | None:
        path = _plain(text)
        phase, colon, rest = path.partition(":")
        if colon and phase in PHASES:
            path = rest
        scope = self.scopes.get(path, self.tails.get(path, -1))
        return ("scope", scope) if scope > 0 else None

    def _named(self, text: str) -> tuple[str, int] | None:
        node = self.names.get(text, -1)
        return ("node", node) if node >= 0 else None


def _plain(path: str) -> str:
    """`layer1.0.conv1` and `layer1/0/conv1` are the same path."""
    return path.strip().strip("/").replace("/", ".")


def _text(said: Any) -> str:
    return str(int(said)) if isinstance(said, float) and said.is_integer() else str(said).strip()


def _add(
    capture: Capture,
    name: str,
    stage: int,
    by: str,
    places: Sequence[tuple[str, int] | None],
    figures: Mapping[str, tuple[Sequence[Any], str]],
) -> None:
    rows: dict[int, list[int]] = {}
    for row, place in enumerate(places):
        if place is not None and place[0] == by:
            rows.setdefault(place[1], []).append(row)
    if not rows:
        return
    index = sorted(rows)
    columns = {label: _column([[values[row] for row in rows[at] if row < len(values)] for at in index], values, unit)
               for label, (values, unit) in figures.items()}  # fmt: skip
    title, number = f"{name} by {'module' if by == 'scope' else by}", 2
    while title in capture.tables:
        title, number = f"{title.rpartition(' #')[0] or title} #{number}", number + 1
    capture.tables[title] = Table(stage, by, frozen(index), columns, OWN.name)


def _column(each: Sequence[Sequence[Any]], whole: Sequence[Any], unit: str) -> Column:
    """Numbers, of several rows about one thing their mean; text where a column holds any that is no number."""
    if all(_is_unknown(value) or _number(value) is not None for value in whole):
        means = [_mean(values) for values in each]
        numbers = np.array([0.0 if mean is None else mean for mean in means], dtype=np.float64)
        return Column(numbers, np.array([mean is not None for mean in means], dtype=bool), unit)
    texts = [next((_text(value) for value in values if not _is_unknown(value)), None) for values in each]
    return Column([text or "" for text in texts], np.array([text is not None for text in texts], dtype=bool), unit)


def _mean(values: Sequence[Any]) -> float | None:
    known = [number for value in values if not _is_unknown(value) and (number := _number(value)) is not None]
    return sum(known) / len(known) if known else None


def _is_unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value).strip().lower() in _UNKNOWN


def _number(value: Any) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip().replace("_", "x").removesuffix("%")
    try:
        return float(text)
    except ValueError:
        return None
