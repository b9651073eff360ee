"""Capture: what was captured from one model or file, as one or more stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opscope.errors import OpscopeError

from .columns import Int32
from .graph import Graph
from .pools import Pools

LINK_STAGE_KINDS = ("lowers", "flows", "communicates")
EVIDENCE = ("reported", "name", "structure")
BY = ("node", "value", "scope", "group")


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
ColumnValues: TypeAlias = npt.NDArray[Any] | Sequence[str] | Sequence[Sequence[float]]


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
    """Columns for some rows of a stage. `by` is node, value, scope, or group:<kind>."""

    stage: int
    by: str
    index: Int32  # the node, value, scope or group of each row
    columns: dict[str, Column]


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

    def stage(self, name: str) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        known = ", ".join(stage.name for stage in self.stages) or "none"
        raise KeyError(f"no stage {name!r} (there are: {known})")

    def all_warnings(self) -> list[str]:
        return [*self.warnings, *(text for stage in self.stages for text in stage.warnings)]
