"""opscope shows what a neural network really computes.

>>> import opscope
>>> cap = opscope.open("resnet_train.pkl")        # doctest: +SKIP
>>> cap.save("resnet_train.opscope")              # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opscope.capture import Capture
    from opscope.diffing import diff, passes
    from opscope.diverging import diverge
    from opscope.errors import BadInput, OpscopeError
    from opscope.ir import Graph, Node, Value
    from opscope.opening import open
    from opscope.statistics import formula, stats
    from opscope.tracing import record, trace, ways
    from opscope.worlds import world

__version__ = "0.1.0"

__all__ = [
    "BadInput",
    "Capture",
    "Graph",
    "Node",
    "OpscopeError",
    "Value",
    "diff",
    "diverge",
    "formula",
    "open",
    "passes",
    "record",
    "stats",
    "trace",
    "ways",
    "world",
]

# Loaded when first asked for: opening a file does not need the tracers, and `opscope --help` needs none of it.
_HOMES = {
    "BadInput": "errors",
    "Capture": "capture",
    "Graph": "ir",
    "Node": "ir",
    "OpscopeError": "errors",
    "Value": "ir",
    "diff": "diffing",
    "diverge": "diverging",
    "formula": "statistics",
    "open": "opening",
    "passes": "diffing",
    "record": "tracing",
    "stats": "statistics",
    "trace": "tracing",
    "ways": "tracing",
    "world": "worlds",
}
_MODULES = ("capture", "errors", "ir", "opening", "ops")  # `import opscope` is enough for them


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"opscope.{name}")
    if name in _HOMES:
        found = globals()[name] = getattr(importlib.import_module(f"opscope.{_HOMES[name]}"), name)
        return found
    raise AttributeError(f"module 'opscope' has no attribute {name!r}")
