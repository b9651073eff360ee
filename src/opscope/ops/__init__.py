"""What operators are, whatever framework they come from: one name for each kind, and what it costs by its shapes."""

from __future__ import annotations

from .cost import Argument, Cost, formula
from .families import family_of
from .table import Kinds, canonical, cost_of, kinds_of, parts, title

__all__ = ["Argument", "Cost", "Kinds", "canonical", "cost_of", "family_of", "formula", "kinds_of", "parts", "title"]
