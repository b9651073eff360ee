"""The framework's own texts of every stage, and which line belongs to which node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Listing, Stage, frozen

from .arrow import Columns, ReadTable
from .members import text_columns


def listing_tables(stages: Sequence[Stage]) -> dict[str, Columns]:
    rows = [(stage.name, kind, listing) for stage in stages for kind, listing in stage.listings.items()]
    lines = [listing for _, _, listing in rows]
    none = np.zeros(0, dtype=np.int32)
    return {
        "listings": text_columns(("stage", "kind", "text"), [(name, kind, one.text) for name, kind, one in rows]),
        "listing_lines": {
            "listing": np.repeat(np.arange(len(rows), dtype=np.int32), [len(one.line) for one in lines]),
            "line": np.concatenate([none, *(one.line for one in lines)]),
            "node": np.concatenate([none, *(one.node for one in lines)]),
        },
    }


def read_listings(table: Callable[[str], ReadTable]) -> dict[str, dict[str, Listing]]:
    """Stage name -> kind -> listing."""
    rows = listing_rows(table("listings"))
    lines = table("listing_lines")
    owner, line, node = (lines.ints(name) for name in ("listing", "line", "node"))
    if len(owner) and (owner.min() < 0 or owner.max() >= len(rows)):
        raise BadInput(f"member listing_lines: a line belongs to listing {owner.max()}, of {len(rows)}")
    found: dict[str, dict[str, Listing]] = {}
    for i, (stage, kind, text) in enumerate(rows):
        own = owner == i
        found.setdefault(stage, {})[kind] = Listing(text, frozen(line[own]), frozen(node[own]))
    return found


def listing_rows(texts: ReadTable) -> list[tuple[str, str, str]]:
    """(stage, kind, text)."""
    return list(zip(texts.texts("stage"), texts.texts("kind"), texts.texts("text"), strict=True))
