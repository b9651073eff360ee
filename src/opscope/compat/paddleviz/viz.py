"""Where paddleviz had it: `from paddleviz.viz import make_graph`."""

from __future__ import annotations

from .drawing import make_graph

__all__ = ["make_graph"]
