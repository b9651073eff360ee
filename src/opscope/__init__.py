"""opscope shows what a neural network really computes.

>>> import opscope
>>> cap = opscope.open("resnet_train.pkl")        # doctest: +SKIP
>>> cap.save("resnet_train.opscope")              # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opscope.capture import Capture
from opscope.errors import BadInput, OpscopeError
from opscope.ir import Graph, Node, Value
from opscope.opening import open

if TYPE_CHECKING:
    from opscope.diffing import diff, passes
    from opscope.statistics import formula, stats
    from opscope.tracing import record, trace, ways

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "Capture",
    "Graph",
    "Node",
    "OpscopeError",
    "Value",
    "diff",
    "formula",
    "open",
    "passes",
    "record",
    "stats",
    "trace",
    "ways",
]


def __getattr__(name: str) -> Any:
    """Tracing is loaded when it is first asked for: opening a file does not need it."""
    if name in ("record", "trace", "ways"):
        from opscope import tracing

        return getattr(tracing, name)
    if name in ("diff", "passes"):
        from opscope import diffing

        return getattr(diffing, name)
    if name in ("formula", "stats"):
        from opscope import statistics

        return getattr(statistics, name)
    raise AttributeError(f"module 'opscope' has no attribute {name!r}")
