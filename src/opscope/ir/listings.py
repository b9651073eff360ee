"""Texts of a framework's own beside a stage (code, IR, tables), and which of their lines belong to which operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from .capture import Capture, Table, column
from .columns import frozen
from .facts import LINES


class Listing(NamedTuple):
    """A text, and the (line, node) pairs that join its lines to operators."""

    text: str
    lines: Sequence[tuple[int, int]] = ()


def add_listings(capture: Capture, stage: int, listings: Mapping[str, Listing]) -> None:
    """Put texts beside a stage, by kind, and their lines among its facts."""
    capture.stages[stage].listings.update({kind: listing.text for kind, listing in listings.items()})
    rows = [(kind, line, node) for kind, listing in listings.items() for line, node in listing.lines]
    if rows:
        kinds, lines, nodes = zip(*rows, strict=True)
        columns = {"listing": column(list(kinds)), "line": column(np.array(lines, dtype=np.int32))}
        capture.add(Table(stage, "node", frozen(nodes), columns, LINES.name))


def lines_of(capture: Capture, stage: int, kind: str) -> list[tuple[int, int]]:
    """The (line, node) pairs of a listing."""
    return [
        (int(line), node)
        for table in capture.facts(LINES.name, stage)
        for of, line, node in zip(
            cast("Sequence[str]", table.columns["listing"].values),
            np.asarray(table.columns["line"].values).tolist(),
            table.index.tolist(),
            strict=True,
        )
        if of == kind
    ]
