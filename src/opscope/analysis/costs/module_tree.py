"""The table by module as a tree: as deep as stays readable, with neighbours that do not differ folded into one row.

There may be a million modules, or a chain of them 100,000 deep. So nothing here calls itself, what is folded is found
on whole columns, and only rows that are shown are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .columns import Row, column_of
from .gaps import MARKS
from .outputs import outputs
from .rows import ModuleRows, Rows
from .signatures import alike
from .sizes import Ints, Mask
from .stats import GraphStats

FITS = 40  # rows that a tree is unfolded to by itself


def tree_rows(
    stats: GraphStats,
    modules: ModuleRows,
    columns: list[str],
    depth: int | None,
    sort: str | None,
    share_of: str,
    fold: bool,
) -> Rows:
    """`share_of` is the column that shares are of, which a table sorted by its shares is sorted by."""
    shown = _Shown(stats, modules, columns, sort, share_of)
    looks = _Looks(shown) if fold else None
    if depth is not None:
        return _rows(shown, _Folds(shown, looks, min(depth, shown.deepest)))
    found = _Folds(shown, looks, min(1, shown.deepest))
    for most in range(2, shown.deepest + 1):
        deeper = _Folds(shown, looks, most)
        if deeper.rows + len(shown.outside) > FITS:
            break
        found = deeper
    return _rows(shown, found)


class _Shown:
    """The modules that have something to show, as a tree: the children of scope s are child[start[s]:start[s + 1]]."""

    def __init__(
        self, stats: GraphStats, modules: ModuleRows, columns: list[str], sort: str | None, share_of: str
    ) -> None:
        tree = modules.tree
        self.modules, self.columns, self.parent, self.level = modules, columns, tree.parent, tree.level
        self.path = stats.graph.pools.scope_path_near
        self.output = outputs(stats.graph, tree) if "output" in columns else None
        figures = [name for name in columns if column_of(name).kind not in ("text", "share", "bar")]
        self.is_shown = self._says_something(figures)
        scopes = np.flatnonzero(self.is_shown)
        keys = [tree.first_node[scopes]]
        if sort is not None:
            keys.append(self._rank(scopes, sort, share_of))
        count = len(self.parent)
        self.child: Ints = scopes[np.lexsort((*keys, self.parent[scopes]))]
        self.start = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.parent[scopes], minlength=count), out=self.start[1:])
        self.deepest = int(self.level[scopes].max(initial=0))
        self.outside = self._outside(figures)

    def _says_something(self, figures: list[str]) -> Mask:
        """A module without any figure says nothing, and what is inside it has none either."""
        shown = self.modules.tree.has_nodes.copy()
        if figures:
            something = np.zeros(len(shown), dtype=bool)
            for name in (*MARKS, *figures):
                column = self.modules.figures(name)
                if column is not None:
                    something |= np.nan_to_num(column) != 0
            shown &= something
        shown[0] = False
        return shown

    def _outside(self, figures: list[str]) -> list[Row]:
        """What is outside of all modules, if anything is: a graph without operators may have parameters."""
        own: Row = self.modules.row([0])["own"]
        row: Row = {
            "name": "(outside of modules)",
            "class": "",
            "path": "",
            "times": 1,
            "output": "",
            **own,
            "own": own,
        }
        is_there = any(row.get(name) for name in (*MARKS, *figures)) if figures else self.modules.tree.has_nodes[0]
        return [row] if is_there else []

    def _rank(self, scopes: Ints, sort: str, share_of: str) -> npt.NDArray[Any]:
        """Numbers that stand in the order that is asked for: the largest first, text by the alphabet."""
        column = share_of if sort in ("share", "self") else sort
        figures = self.modules.figures(column, own=sort == "self")
        if figures is not None:
            return -figures[scopes]
        texts = {"name": self.modules.label, "class": self.modules.cls, "output": self.output_of}
        if sort not in texts:
            return np.zeros(len(scopes), dtype=np.int64)
        return numbered([texts[sort](scope) for scope in scopes.tolist()], in_order=True)

    def output_of(self, scope: int) -> str:
        return self.output[scope] if self.output is not None else ""


class _Looks:
    """How modules look in the table, as numbers by scope: equal where they look alike."""

    def __init__(self, shown: _Shown) -> None:
        modules = shown.modules
        scopes = np.flatnonzero(shown.is_shown)
        every: list[int] = scopes.tolist()
        labels = list(map(modules.label, every))
        classes = list(map(modules.cls, every))
        looks: list[npt.NDArray[Any]] = [numbered(classes), numbered(list(map(shown.output_of, every)))]
        for mark in MARKS:
            missing = modules.figures(mark)
            if missing is not None:
                looks.append(missing[scopes] > 0)
        for name in ("macs", *shown.columns):
            if column_of(name).kind in ("share", "bar"):
                continue
            for column in (modules.figures(name), modules.figures(name, own=True)):
                if column is not None:
                    looks.append(column[scopes])
        alike_but_for_name = alike(looks)
        # conv1 and conv2 are alike, k_proj and v_proj only happen to be as large
        patterns = numbered([_DIGITS.sub("#", label.partition(" … ")[0]) for label in labels])

        def by_scope(numbers: Ints) -> Ints:
            column = np.full(len(shown.is_shown), -1, dtype=np.int64)
            column[scopes] = numbers
            return column

        names = numbered(labels)
        self.name = by_scope(names)
        self.exactly = by_scope(alike([names, alike_but_for_name]))
        self.but_for_numbers = by_scope(alike([patterns, alike_but_for_name]))
        self.has_class = by_scope(np.array([bool(cls) for cls in classes], dtype=np.int64)) > 0


_DIGITS = re.compile(r"\d+")


def numbered(texts: Sequence[str], *, in_order: bool = False) -> Ints:
    """A number for each text, the same for the same one; in the order of the alphabet if that is asked for."""
    distinct = sorted(set(texts)) if in_order else dict.fromkeys(texts)
    number = {text: i for i, text in enumerate(distinct)}
    return np.fromiter(map(number.__getitem__, texts), np.int64, len(texts))


class _Folds:
    """The tree down to level `most`, with runs of neighbours of one class that do not differ in anything shown, nor in
    what is unfolded inside them. Run r of scope s, one of run_start[s] up to run_start[s + 1], has the children
    first[r] up to first[r + 1] in `shown.child`."""

    def __init__(self, shown: _Shown, looks: _Looks | None, most: int) -> None:
        self.most = most
        count = len(shown.parent)
        child, parent = shown.child, shown.parent[shown.child]
        is_open = shown.level[child] <= most
        inside = np.zeros(count, dtype=np.int64)  # what is unfolded in a scope; 0: nothing
        begins = np.ones(len(child), dtype=bool)
        if looks is not None:
            levels = shown.level[child]
            in_level = np.argsort(levels, kind="stable")
            ends = np.searchsorted(levels[in_level], np.arange(most + 2))
            known: dict[bytes, int] = {}
            for level in range(most, 0, -1):
                places = in_level[ends[level] : ends[level + 1]]  # in `child`, neighbours side by side
                self._fold(shown, looks, places, begins, inside, known)
        kept = is_open & begins
        self.first = np.append(np.flatnonzero(kept), 0)
        self.last = np.zeros(len(self.first), dtype=np.int64)  # the place behind the last one of each run
        runs = np.flatnonzero(kept)
        following = np.append(runs[1:], len(child))
        self.last[:-1] = np.minimum(following, shown.start[parent[runs] + 1])
        self.run_start = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(parent[runs], minlength=count), out=self.run_start[1:])
        self.rows = self._count(shown, child[runs], parent[runs])

    def _fold(
        self, shown: _Shown, looks: _Looks, places: Ints, begins: Mask, inside: Ints, known: dict[bytes, int]
    ) -> None:
        """Which scopes of one level begin a run, and what their parents then look like inside."""
        scopes = shown.child[places]
        parent = shown.parent[scopes]
        top = alike([looks.but_for_numbers[scopes], inside[scopes]])
        joins = np.zeros(len(scopes), dtype=bool)
        joins[1:] = (parent[1:] == parent[:-1]) & (top[1:] == top[:-1]) & looks.has_class[scopes[1:]]
        begins[places] = ~joins
        runs = np.flatnonzero(~joins)
        length = np.diff(np.append(runs, len(scopes)))
        first, last = scopes[runs], scopes[runs + length - 1]
        # A run is called by its first and last name.
        name = np.where(length > 1, looks.name[last], -1)
        look = alike([looks.exactly[first], inside[first], name, length])
        owner = parent[runs]
        starts = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else runs
        bounds = [*starts.tolist(), len(owner)]
        for begin, end in pairwise(bounds):
            # A level may say the same of other things than another one: the level is part of what is known.
            key = b"%d " % int(shown.level[owner[begin]]) + look[begin:end].tobytes()
            inside[owner[begin]] = known.setdefault(key, len(known) + 1)

    def _count(self, shown: _Shown, scopes: Ints, parent: Ints) -> int:
        """The rows of all that is unfolded. A run shows what is inside its first module."""
        rows = [0] * len(shown.parent)
        for scope, around in sorted(zip(scopes.tolist(), parent.tolist(), strict=True), reverse=True):
            rows[around] += 1 + rows[scope]  # those inside have larger numbers, so they are counted already
        return rows[0]


class _Run(NamedTuple):
    """A row for several scopes: those that it is the sum of, how many neighbours it stands for, and how deep it is."""

    scopes: Ints
    name: str
    times: int
    depth: int


def _runs(shown: _Shown, folds: _Folds) -> Iterator[int | _Run]:
    """Every row in order, without recursion; a row for one scope is its number."""
    todo: list[int | _Run] = [0]
    while todo:
        run = todo.pop()
        if run != 0:
            yield run
        inner = _in_one(shown, folds, run) if isinstance(run, int) else _in_several(shown, folds, run)
        todo += reversed(list(inner))


def _in_one(shown: _Shown, folds: _Folds, scope: int) -> Iterator[int | _Run]:
    begin, end = folds.run_start[scope : scope + 2].tolist()
    bounds = zip(folds.first[begin:end].tolist(), folds.last[begin:end].tolist(), strict=True)
    for first, last in bounds:
        if last - first == 1:
            yield int(shown.child[first])
        else:
            scopes = shown.child[first:last]
            yield _Run(scopes, _named(shown, scopes), last - first, int(shown.level[scopes[0]]) - 1)


def _in_several(shown: _Shown, folds: _Folds, run: _Run) -> Iterator[_Run]:
    """The same run of every scope of this one: they do not differ inside."""
    first = int(run.scopes[0])
    begin, end = folds.run_start[first : first + 2].tolist()
    for number in range(begin, end):
        same = number - begin + folds.run_start[run.scopes]
        parts = [shown.child[folds.first[i] : folds.last[i]] for i in same.tolist()]
        yield _Run(np.concatenate(parts), _named(shown, parts[0]), len(parts[0]), run.depth + 1)


def _named(shown: _Shown, scopes: Ints) -> str:
    label, count = shown.modules.label, len(scopes)
    first = label(int(scopes[0]))
    return first if count == 1 else f"{first.partition(' … ')[0]} … {label(int(scopes[-1]))}"


_BLOCK = 256  # rows of one module that are made together


def _rows(shown: _Shown, folds: _Folds) -> Rows:
    runs = list(_runs(shown, folds))
    made: dict[int, Row] = {}  # rows of the block that was looked at last, until they are taken

    def of_one(number: int) -> Row:
        if number not in made:
            made.clear()
            begin = number - number % _BLOCK
            alone = [(at, run) for at, run in enumerate(runs[begin : begin + _BLOCK], begin) if isinstance(run, int)]
            made.update(zip((at for at, _ in alone), shown.modules.each([scope for _, scope in alone]), strict=True))
        return made.pop(number)

    def row(number: int) -> Row:
        if number >= len(runs):
            return {**shown.outside[0], "depth": 0}
        run = runs[number]
        scope = run if isinstance(run, int) else int(run.scopes[0])
        found = of_one(number) if isinstance(run, int) else shown.modules.row(run.scopes)
        found["share"] = found["self"] = None  # here, where JSON has it
        found["path"] = shown.path(scope)
        found["output"] = shown.output_of(scope)
        if isinstance(run, int):
            found["depth"] = int(shown.level[scope]) - 1
        else:
            found["name"], found["times"], found["depth"] = run.name, run.times, run.depth
        return found

    times = np.array([1 if isinstance(run, int) else run.times for run in runs] + [1] * len(shown.outside))
    return Rows(range(len(times)), row, {"times": times})
