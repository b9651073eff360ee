"""What each stage did to the one it was made from, and how that is kept in the capture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from opscope.ir import Capture, StageLink, Table, column, frozen
from opscope.ir.enumerations import CHANGE_CLASS_ID, EVIDENCE_ID
from opscope.ir.facts import CHANGES

from .changes import Diff
from .compare import compare
from .fingerprints import Vocabulary

Kind = TypeVar("Kind", bound=Capture)


def stage_diffs(capture: Capture) -> Iterator[tuple[int, int, Diff]]:
    """(before, after, what is different) along `after`."""
    done: dict[tuple[int, int], Diff] = {}
    words = Vocabulary()
    for index, stage in enumerate(capture.stages):
        if stage.after is None:
            continue
        before = capture.stages[stage.after]
        key = id(before.graph), id(stage.graph)
        if key not in done:
            done[key] = compare(before.graph, stage.graph, reported(capture, stage.after, index), words)
        yield stage.after, index, done[key]


def reported(capture: Capture, before: int, after: int) -> list[StageLink]:
    """What the capture itself says about two stages."""
    return [
        link
        for link in capture.stage_links
        if (link.before, link.after, link.kind) == (before, after, "lowers") and link.evidence != "structure"
    ]


def with_changes(capture: Kind) -> Kind:
    """A capture with what each stage changed: a fact `changes`, and which nodes became which. Nothing is done twice;
    the one that is given stays as it is."""
    found = replace(capture, stage_links=list(capture.stage_links), tables=dict(capture.tables))
    for before, after, diff in stage_diffs(capture):
        if not any(table.stage == after and table.fact == CHANGES.name for table in capture.tables.values()):
            found.add(changes_table(after, diff))
        _link(found, before, after, diff)
    return found


def _link(capture: Capture, before: int, after: int, diff: Diff) -> None:
    """What became what, without what the capture says already."""
    links = [link for link in capture.stage_links if (link.before, link.after, link.kind) == (before, after, "lowers")]
    if any(link.evidence == "structure" for link in links):
        return
    known = {pair for link in links for pair in zip(link.source.tolist(), link.target.tolist(), strict=True)}
    source, target = diff.links()
    pairs = [pair for pair in zip(source.tolist(), target.tolist(), strict=True) if pair not in known]
    if pairs:
        sources, targets = zip(*pairs, strict=True)
        found = StageLink(before, after, "lowers", frozen(list(sources)), frozen(list(targets)), "structure")
        capture.stage_links.append(found)


def changes_table(stage: int, diff: Diff) -> Table:
    changes = diff.changes
    columns = {
        "class": column(np.array([CHANGE_CLASS_ID[change.kind] for change in changes], dtype=np.int8)),
        "before": column([list(change.before) for change in changes]),
        "after": column([list(change.after) for change in changes]),
        "evidence": column(np.array([EVIDENCE_ID[change.evidence] for change in changes], dtype=np.int8)),
        "detail": column([change.detail for change in changes]),
    }
    return Table(stage, "row", frozen(range(len(changes))), columns, CHANGES.name)
