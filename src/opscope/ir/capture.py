"""Capture: what was captured from one model or file, as one or more stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError

from .columns import Int32
from .facts import FACTS
from .graph import Graph
from .pools import Pools


@dataclass(frozen=True)
class Origin:
    """Where a capture comes from: the format it was read as, the framework, and how it was captured."""

    format: str = ""
    framework: str = ""
    version: str = ""
    how: str = ""


@dataclass(frozen=True, eq=False)
class Stage:
    """One graph in a line of graphs. Stages that do not differ share one Graph object."""

    name: str
    graph: Graph
    after: int | None = None  # the stage it was made from
    seconds: float | None = None
    listings: dict[str, str] = field(default_factory=dict[str, str])  # kind -> the framework's own text
    warnings: tuple[str, ...] = ()


def named_apart(stages: Sequence[Stage]) -> list[Stage]:
    """The same stages; of those with one name, the later ones get a number."""
    taken: set[str] = set()
    found: list[Stage] = []
    for stage in stages:
        name, number = stage.name, 2
        while name in taken:
            name, number = f"{stage.name} #{number}", number + 1
        taken.add(name)
        found.append(replace(stage, name=name) if name != stage.name else stage)
    return found


@dataclass(frozen=True, eq=False)
class StageLink:
    """Which nodes of one stage became which of another, and how we know."""

    before: int
    after: int
    kind: str
    source: Int32  # nodes of `before`
    target: Int32  # nodes of `after`
    evidence: str


# Text, numbers, or a list of numbers in each row.
ColumnValues: TypeAlias = npt.NDArray[Any] | Sequence[str] | Sequence[Sequence[float]] | Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class Column:
    """Measured or computed figures. Where `known` is False the figure is not known: not zero."""

    values: ColumnValues
    known: npt.NDArray[np.bool_]
    unit: str = ""


def column(values: ColumnValues, unit: str = "", known: Sequence[bool] | None = None) -> Column:
    mask = np.ones(len(values), dtype=bool) if known is None else np.asarray(known, dtype=bool)
    return Column(values, mask, unit)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns for some rows of a stage. `by` is node, value, scope, group:<kind>, op or row (see `facts.BY`).

    `fact` names the declared kind of fact (`facts.FACTS`) that this is; a table of another sort has none.
    """

    stage: int
    by: str
    index: Int32  # the node, value, scope, group or string of each row
    columns: dict[str, Column]
    fact: str = ""


@dataclass
class Capture:
    """Stages with the pools they share, and what was measured on them."""

    pools: Pools = field(default_factory=Pools)
    stages: list[Stage] = field(default_factory=list[Stage])
    stage_links: list[StageLink] = field(default_factory=list[StageLink])
    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    origin: Origin = field(default_factory=Origin)
    sources: dict[str, str] = field(default_factory=dict[str, str])  # path -> text
    warnings: list[str] = field(default_factory=list[str])
    extra: dict[str, bytes] = field(default_factory=dict[str, bytes])  # file members of a newer opscope, kept

    @property
    def graph(self) -> Graph:
        """The graph of the only stage, or of the first one."""
        if not self.stages:
            raise OpscopeError("the capture has no graph yet: a recording is filled when its block ends")
        return self.stages[0].graph

    def stage(self, name: str | None = None) -> Stage:
        """The stage of this name; without one, the first."""
        if not self.stages:
            raise OpscopeError("the capture has no stage: if it is being recorded, wait for the end of the block")
        for stage in self.stages:
            if name is None or stage.name == name:
                return stage
        raise OpscopeError(f"no stage {name!r} (there are: {', '.join(stage.name for stage in self.stages)})")

    def facts(self, fact: str, stage: int) -> Iterator[Table]:
        """The tables of this kind of fact about a stage. Stages that share a graph share what is known of it."""
        graph = self.stages[stage].graph
        tables = [table for table in self.tables.values() if table.fact == fact]
        own = [table for table in tables if table.stage == stage]
        is_shared = FACTS[fact].of == "graph"
        yield from own or (table for table in tables if is_shared and self.stages[table.stage].graph is graph)

    def add(self, table: Table) -> None:
        """Put a fact among the tables, under a title that is still free."""
        title = table.fact if not table.stage else f"{table.fact} of {self.stages[table.stage].name}"
        number = 2
        while title in self.tables:
            title, number = f"{title.rpartition(' #')[0] or title} #{number}", number + 1
        self.tables[title] = table

    def all_warnings(self) -> list[str]:
        return [*self.warnings, *(text for stage in self.stages for text in stage.warnings)]
