"""Weights without a graph: what stands for a tensor of a file computes nothing."""

from __future__ import annotations

from . import Framework

FRAMEWORK = Framework("empty < tensor", "weights")
