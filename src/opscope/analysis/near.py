"""What is close to going wrong: numbers near the end of their type, numbers that a type loses, gradients that explode.

All finite, so no origin of `origins`; but the next batch, or the next larger scale, may be over the edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from opscope.ir import ROLES, Capture, Graph
from opscope.ir.dtypes import find
from opscope.ir.rows import Rows

from .values import Figure, value_figures

_CLOSE = 3.0  # powers of two that are left
_LOST = 0.05  # of the numbers of a tensor
_EXPLODES = 1e3  # times as large as the gradients of most other parameters
_CASTS = ("aten._to_copy", "aten.copy_", "aten.to.", "aten.type_as")
_LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
}


@dataclass(frozen=True)
class NearMiss:
    """`kind`: "overflow" (`figure`: powers of two left to the largest number of the type), "saturation" (a cast met
    larger numbers than its type has; `figure`: times as large), "underflow" (`figure`: the share of the numbers that
    became zero or lost digits), "exploding" (a gradient; `figure`: times as large as those of most parameters)."""

    kind: str
    op: str
    path: str
    phase: str
    file: str
    line: int
    node: int
    name: str
    type: str
    figure: float

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def __str__(self) -> str:
        said = {
            "overflow": f"{self.figure:.1f} powers of two from overflow",
            "saturation": f"cut off: read numbers {self.figure:.3g} times as large as {self.type} holds",
            "underflow": f"{self.figure:.0%} of the numbers became zero or lost digits",
            "exploding": f"{self.figure:.3g} times the gradient of most parameters",
        }[self.kind]
        inside = f" in {self.path}" if self.path else ""
        where = f" at {self.file}:{self.line}" if self.file else ""
        return f"{self.kind}: {self.op}{f' {self.name}' if self.name else ''}{inside} ({self.phase}){where}: {said}"


def near_misses(capture: Capture, stage: int = 0) -> list[NearMiss]:
    """In the order of the operators; of what is handed on, the operator that first came close."""
    graph = capture.stages[stage].graph
    figures = value_figures(capture, stage)
    return _Search(graph, figures).found() if "max" in figures else []


class _Search:
    def __init__(self, graph: Graph, figures: Any) -> None:
        self.graph, self.rows = graph, Rows(graph)
        count = graph.n_values

        def column(name: str) -> Any:
            figure: Figure | None = figures.get(name)
            return np.where(figure.known, figure.numbers, np.nan) if figure is not None else np.full(count, np.nan)

        low, high = column("min"), column("max")
        self.largest = np.maximum(np.abs(low), np.abs(high))
        self.zeros, self.subnormal, self.rms = column("zeros"), column("subnormal"), column("rms")
        types = list(graph.pools.types)
        limits = np.array([_LARGEST.get(type_.dtype, np.nan) for type_ in types])
        elements = np.array([type_.elements or 0 for type_ in types])
        self.limit, self.size = limits[graph.value_type], elements[graph.value_type]
        with np.errstate(all="ignore"):
            self.left = np.log2(self.limit / self.largest)

    def found(self) -> list[NearMiss]:
        found = [miss for node in range(self.graph.n_nodes) for miss in self._of(node)]
        return sorted([*found, *self._exploding()], key=lambda miss: miss.node)

    def _of(self, node: int) -> list[NearMiss]:
        used = [value for value in self.rows.used(node) if value >= 0]
        found: list[NearMiss] = []
        for value in self.rows.made(node):
            limit = self.limit[value]
            if math.isnan(limit) or math.isnan(self.largest[value]):
                continue
            before = max((float(self.largest[v]) for v in used if not math.isnan(self.largest[v])), default=0.0)
            is_cast = self.graph.node(node).op.startswith(_CASTS)
            if is_cast and self.largest[value] == limit and before > limit:
                found.append(self._miss("saturation", node, value, before / limit))
            # The limit itself is written as a mask.
            elif self.left[value] < _CLOSE and self.largest[value] < limit and not self._came_close(used):
                found.append(self._miss("overflow", node, value, float(self.left[value])))
            if (lost := self._lost(value, used, is_cast)) > _LOST:
                found.append(self._miss("underflow", node, value, lost))
        return found

    def _came_close(self, used: list[int]) -> bool:
        return not used or any(self.left[v] < _CLOSE for v in used)

    def _lost(self, value: int, used: list[int], is_cast: bool) -> float:
        """The share that is subnormal, and after a cast zero, and was neither before."""
        size = int(self.size[value])
        if size == 0 or math.isnan(self.subnormal[value]):
            return 0.0
        gone = float(self.subnormal[value]) - max((float(np.nan_to_num(self.subnormal[v])) for v in used), default=0.0)
        if is_cast and used and not math.isnan(self.zeros[used[-1]]):
            gone += float(self.zeros[value] - min(float(np.nan_to_num(self.zeros[v])) for v in used))
        return gone / size

    def _exploding(self) -> list[NearMiss]:
        """Gradients of parameters that are far larger than those of the others."""
        graph = self.graph
        own = graph.pools.strings
        ends: dict[str, int] = {}
        for value in range(graph.n_values):
            name = own[int(graph.value_name[value])]
            is_gradient = ROLES[int(graph.value_role[value])] == "gradient" and name.endswith(".grad")
            if is_gradient and not math.isnan(self.rms[value]):
                ends[name] = value
        if len(ends) < 3:
            return []
        middle = float(np.median([self.rms[value] for value in ends.values()]))
        return [
            self._miss("exploding", int(graph.value_producer[value]), value, float(self.rms[value] / middle))
            for value in ends.values()
            if middle > 0 and self.rms[value] > _EXPLODES * middle and graph.value_producer[value] >= 0
        ]

    def _miss(self, kind: str, node: int, value: int, figure: float) -> NearMiss:
        graph = self.graph
        at = graph.node(node)
        frame = self.rows.users_frame(node) or self.rows.frame(node)
        file, line = (frame.file, frame.line) if frame is not None else ("", 0)
        name = graph.pools.strings[int(graph.value_name[value])]
        type_ = graph.value(value).type
        known = find(type_.dtype)
        dtype = known.name if known is not None else type_.dtype
        return NearMiss(kind, at.op, at.path, at.phase, file, line, node, name, dtype, figure)
