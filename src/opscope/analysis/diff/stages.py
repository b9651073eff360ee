"""What each stage did to the one it was made from, and how that is kept in the capture.

`annotated` adds a StageLink of kind "lowers" for each stage that has one before it, and a listing `changes` (JSON, for
the page) to the stage: {"before": stage, "changes": […], "summary": {…}}. docs/diff.md describes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from opscope.ir import Capture, StageLink
from opscope.ir.columns import frozen

from .changes import Diff
from .compare import compare

LISTING = "changes"


def stage_diffs(capture: Capture) -> Iterator[tuple[int, int, Diff]]:
    """(before, after, what is different) along `after`."""
    done: dict[tuple[int, int], Diff] = {}
    for index, stage in enumerate(capture.stages):
        if stage.after is None:
            continue
        before = capture.stages[stage.after]
        key = id(before.graph), id(stage.graph)
        if key not in done:
            done[key] = compare(before.graph, stage.graph, reported(capture, stage.after, index))
        yield stage.after, index, done[key]


def reported(capture: Capture, before: int, after: int) -> list[StageLink]:
    """What the capture itself says about two stages."""
    return [
        link
        for link in capture.stage_links
        if (link.before, link.after, link.kind) == (before, after, "lowers") and link.evidence != "structure"
    ]


def annotated(capture: Capture) -> Capture:
    """The capture with what each stage changed. Nothing is done twice."""
    for before, after, diff in list(stage_diffs(capture)):
        stage = capture.stages[after]
        if LISTING not in stage.listings:
            capture.stages[after] = replace(stage, listings={**stage.listings, LISTING: listing(before, diff)})
        _link(capture, before, after, diff)
    return capture


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


def listing(before: int, diff: Diff) -> str:
    changes = [
        {"class": c.kind, "before": c.before, "after": c.after, "evidence": c.evidence, "detail": c.detail}
        for c in diff.changes
    ]
    return json.dumps({"before": before, "changes": changes, "summary": diff.summary()}, ensure_ascii=False)
