"""The framework's own texts of every stage."""

from __future__ import annotations

from collections.abc import Sequence

from opscope.ir import Stage

from .arrow import Columns, ReadTable
from .members import text_columns


def listing_table(stages: Sequence[Stage]) -> Columns:
    rows = [(stage.name, kind, text) for stage in stages for kind, text in stage.listings.items()]
    return text_columns(("stage", "kind", "text"), rows)


def read_listings(texts: ReadTable) -> dict[str, dict[str, str]]:
    """Stage name -> kind -> text."""
    found: dict[str, dict[str, str]] = {}
    for stage, kind, text in zip(texts.texts("stage"), texts.texts("kind"), texts.texts("text"), strict=True):
        found.setdefault(stage, {})[kind] = text
    return found
