"""The formulas, by family. Importing this fills the vocabulary."""

from __future__ import annotations

from . import (
    attention,
    communication,
    convolution,
    estimates,
    indexing,
    matmul,
    movement,
    normalization,
    optimizers,
    pointwise,
    pooling,
    recurrent,
    second_order,
    windows,
)

__all__ = [
    "attention",
    "communication",
    "convolution",
    "estimates",
    "indexing",
    "matmul",
    "movement",
    "normalization",
    "optimizers",
    "pointwise",
    "pooling",
    "recurrent",
    "second_order",
    "windows",
]
