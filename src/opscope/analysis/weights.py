"""The weights of a model and what is known of their numbers: for people who look into a file."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from opscope.ir import ROLES, Capture

from .values import Figure, value_figures

_ROLES = ("parameter", "buffer", "constant")
_SHOWN = ("min", "max", "mean", "rms", "zeros", "nan", "inf", "subnormal")


class Weight(NamedTuple):
    """A tensor that came with the model, and its figures, as far as they are known."""

    name: str
    role: str
    type: str
    elements: int | None
    value: int
    figures: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        whole = ("zeros", "nan", "inf", "subnormal")
        known = {name: int(figure) if name in whole else figure for name, figure in self.figures.items()}
        return {"name": self.name, "role": self.role, "type": self.type, "elements": self.elements, **known}

    @property
    def is_bad(self) -> bool:
        return self.figures.get("nan", 0) > 0 or self.figures.get("inf", 0) > 0


def weights(capture: Capture, stage: int = 0) -> list[Weight]:
    """Those of which something is known, in the order of the file; tied ones once."""
    graph = capture.stages[stage].graph
    known = value_figures(capture, stage)
    strings, types = graph.pools.strings, graph.pools.types
    found: list[Weight] = []
    seen: set[int] = set()
    for value in range(graph.n_values):
        role = ROLES[int(graph.value_role[value])]
        owner = int(graph.value_storage[value])
        if role not in _ROLES or graph.value_producer[value] >= 0 or (figures := _of(known, value)) == {}:
            continue
        if owner != value and owner in seen:
            continue
        seen.add(owner)
        type_ = types[int(graph.value_type[value])]
        found.append(Weight(strings[int(graph.value_name[value])], role, str(type_), type_.elements, value, figures))
    return found


def _of(known: Any, value: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name in _SHOWN:
        figure: Figure | None = known.get(name)
        if figure is not None and figure.known[value] and not math.isnan(number := float(figure.numbers[value])):
            figures[name] = number
    return figures
