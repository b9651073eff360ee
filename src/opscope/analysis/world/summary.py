"""What a world is: the figures of `opscope info`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from opscope.ir import Capture, Table
from opscope.ir.facts import MESH, RANK_CLASS, RANK_WIRES
from opscope.ir.ranks import Rank, rank_of, ranks_of

_FIGURES = {
    "parameters": "parameters",
    "parameter_bytes": "parameter bytes",
    "state_bytes": "state bytes",
    "gradient_bytes": "gradient bytes",
    "activation_bytes": "activation bytes",
    "peak_bytes": "peak bytes",
    "macs": "macs",
    "other_flops": "other",
    "moved_bytes": "moved bytes",
}


class Wire(NamedTuple):
    dimension: str
    size: int
    bytes: int
    operators: int


class RankClass(NamedTuple):
    """Ranks that compute the same, and what one of them takes."""

    stage: int
    ranks: list[int]
    seen: list[int]
    figures: dict[str, int]
    wires: list[Wire]
    at_least: bool
    odd: str


class World(NamedTuple):
    size: int
    mesh: dict[str, int]  # the outermost dimension first
    classes: list[RankClass]

    @property
    def seen(self) -> int:
        return sum(len(one.seen) for one in self.classes)


def world_of(capture: Capture) -> World | None:
    """The world that a capture is of; None where it is not one, or where it says too little."""
    ranks = [(stage, rank) for stage in range(len(capture.stages)) if (rank := rank_of(capture, stage)) is not None]
    classes = [made for stage, rank in ranks if (made := _class(capture, stage, rank)) is not None]
    if not classes:
        return None
    return World(ranks[0][1].world, _mesh(capture), classes)


def _class(capture: Capture, stage: int, rank: Rank) -> RankClass | None:
    table = next(iter(capture.facts(RANK_CLASS.name, stage)), None)
    if table is None or not len(table.index):
        return None
    try:
        ranks, seen = (ranks_of(_text(table, name)) for name in ("ranks", "seen"))
    except ValueError:
        ranks, seen = [rank.rank], [rank.rank]
    figures = {name: _number(table, column) for name, column in _FIGURES.items()}
    figures["wire_bytes"] = _number(table, "wire bytes")
    wires = [wire for found in capture.facts(RANK_WIRES.name, stage) for wire in _wires(found)]
    return RankClass(stage, ranks, seen, figures, wires, bool(_number(table, "at least")), _text(table, "odd"))


def _wires(table: Table) -> list[Wire]:
    numbers = [np.asarray(table.columns[name].values).tolist() for name in ("size", "bytes", "operators")]
    names: Sequence[Any] = list(table.columns["dimension"].values)
    return [Wire(str(name), *row) for name, row in zip(names, zip(*numbers, strict=True), strict=True)]


def _mesh(capture: Capture) -> dict[str, int]:
    for stage in range(len(capture.stages)):
        for table in capture.facts(MESH.name, stage):
            sizes = np.asarray(table.columns["size"].values).tolist()
            return {str(name): int(size) for name, size in zip(table.columns["dimension"].values, sizes, strict=True)}
    return {}


def _number(table: Table, name: str) -> int:
    return int(np.asarray(table.columns[name].values)[0])


def _text(table: Table, name: str) -> str:
    return str(table.columns[name].values[0])


def info(world: World) -> dict[str, Any]:
    """`world` of `opscope info --json`; docs/ranks.md lists the fields."""
    return {
        "size": world.size,
        "mesh": world.mesh,
        "recorded": world.seen,
        "classes": [
            {
                "stage": one.stage,
                "ranks": one.ranks,
                "recorded": one.seen,
                **one.figures,
                "wire_bytes": {wire.dimension: wire.bytes for wire in one.wires},
                "at_least": one.at_least,
                "odd": one.odd or None,
            }
            for one in world.classes
        ],
    }
