"""What files of earlier versions said in other words: in version 1 facts had no names, and some of them were JSON among
the listings; in version 2 lines of listings and files of kernels were no facts."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Capture, Listing, Table, add_listings, column, frozen
from opscope.ir.facts import BREAKS, FILES, TIME_UNITS, TIMES

from .arrow import ReadTable

_PAIRS = ".nodes"
_BREAK = re.compile(r"^(?:(.+?):(\d+): )?(?:graph break: )?(.*)$")


def fact_of(by: str, units: dict[str, str]) -> str:
    """What a table is about."""
    return TIMES.name if by in TIMES.by and units.get("time") in TIME_UNITS else ""


def name_version1(capture: Capture) -> None:
    """(line, node) pairs were JSON in a listing `<kind>.nodes`, graph breaks were lines of one called `breaks`, and
    what a stage changed was one called `changes`, which is computed again when it is shown."""
    for number, stage in enumerate(capture.stages):
        texts = dict(stage.listings)
        stage.listings.clear()
        texts.pop("changes", None)
        breaks = texts.pop("breaks", None)
        pairs = {kind.removesuffix(_PAIRS): texts.pop(kind) for kind in list(texts) if kind.endswith(_PAIRS)}
        listings = {kind: Listing(text, _pairs(pairs.get(kind, "[]"))) for kind, text in texts.items()}
        if breaks is not None:
            capture.add(_breaks(number, breaks.splitlines()))
        add_listings(capture, number, listings)
        name_files(capture, number)


def name_version2(capture: Capture, listings: ReadTable, lines: ReadTable) -> None:
    """Lines of listings had a member of their own."""
    rows = list(zip(listings.texts("stage"), listings.texts("kind"), strict=True))
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = {row: [] for row in rows}
    for owner, line, node in zip(*(lines.ints(name).tolist() for name in ("listing", "line", "node")), strict=True):
        if not 0 <= owner < len(rows):
            raise BadInput(f"member listing_lines: a line belongs to listing {owner}, of {len(rows)}")
        pairs[rows[owner]].append((line, node))
    for number, stage in enumerate(capture.stages):
        texts = {kind: Listing(text, pairs.get((stage.name, kind), [])) for kind, text in stage.listings.items()}
        add_listings(capture, number, texts)
        name_files(capture, number)


def name_files(capture: Capture, number: int) -> None:
    """Files of kernels were an attribute."""
    kernels = capture.stages[number].graph.groups.get("kernel")
    files = [capture.pools.attrs_of(attrs).get("file") for attrs in kernels.attrs.tolist()] if kernels else []
    named = [(i, file) for i, file in enumerate(files) if isinstance(file, str) and file]
    if named and not any(capture.facts(FILES.name, number)):
        index, paths = zip(*named, strict=True)
        capture.add(Table(number, "group:kernel", frozen(index), {"file": column(list(paths))}, FILES.name))


def _pairs(text: str) -> list[tuple[int, int]]:
    return [(int(line), int(node)) for line, node in cast("list[Any]", json.loads(text))]


def _breaks(stage: int, lines: list[str]) -> Table:
    found = [match.groups() for line in lines if (match := _BREAK.match(line))]
    known = [file is not None for file, _, _ in found]
    columns = {
        "file": column([file or "" for file, _, _ in found], known=known),
        "line": column(np.array([int((line or "0")[:9]) for _, line, _ in found], dtype=np.int64), known=known),
        "reason": column([reason or "" for _, _, reason in found]),
    }
    return Table(stage, "row", frozen(range(len(found))), columns, BREAKS.name)
