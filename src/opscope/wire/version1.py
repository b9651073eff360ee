"""What files of version 1 said in other words: facts had no names, and some of them were JSON among the listings."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import numpy as np

from opscope.ir import Capture, Listing, Table, column, frozen
from opscope.ir.facts import BREAKS, TIME_UNITS, TIMES

from .arrow import ReadTable
from .listings import listing_rows

_BREAK = re.compile(r"^(?:(.+?):(\d+): )?(?:graph break: )?(.*)$")


def fact_of(by: str, units: dict[str, str]) -> str:
    """What a table is about."""
    return TIMES.name if by in TIMES.by and units.get("time") in TIME_UNITS else ""


def read_listings(texts: ReadTable) -> dict[str, dict[str, Listing]]:
    """Stage name -> kind -> listing. (line, node) pairs were JSON in a listing `<kind>.nodes`; what a stage changed was
    one called `changes`, which is computed again when it is shown."""
    found: dict[str, dict[str, str]] = {}
    for stage, kind, text in listing_rows(texts):
        found.setdefault(stage, {})[kind] = text
    return {
        stage: {
            kind: Listing.of(text, _pairs(kinds.get(f"{kind}.nodes", "[]")))
            for kind, text in kinds.items()
            if kind != "changes" and not kind.endswith(".nodes")
        }
        for stage, kinds in found.items()
    }


def _pairs(text: str) -> list[tuple[int, int]]:
    return [(int(line), int(node)) for line, node in cast("list[Any]", json.loads(text))]


def name_breaks(capture: Capture) -> None:
    """Graph breaks were lines of a listing."""
    for number, stage in enumerate(capture.stages):
        listing = stage.listings.pop("breaks", None)
        if listing is not None:
            capture.add(_breaks(number, listing.text.splitlines()))


def _breaks(stage: int, lines: list[str]) -> Table:
    found = [match.groups() for line in lines if (match := _BREAK.match(line))]
    known = [file is not None for file, _, _ in found]
    columns = {
        "file": column([file or "" for file, _, _ in found], known=known),
        "line": column(np.array([int((line or "0")[:9]) for _, line, _ in found], dtype=np.int64), known=known),
        "reason": column([reason or "" for _, _, reason in found]),
    }
    return Table(stage, "row", frozen(range(len(found))), columns, BREAKS.name)
