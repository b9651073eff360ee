"""Two graphs as the stages of one capture, so that the page can show them together."""

from __future__ import annotations

from opscope.analysis.divergence import add_errors
from opscope.ir import Capture, Origin, Pools, Stage
from opscope.ir.facts import CHANGES, FACTS
from opscope.ir.repool import Repooled


def side_by_side(before: tuple[Capture, Stage, str], after: tuple[Capture, Stage, str]) -> Capture:
    """Two stages, of one capture or of two, as a capture of its own: the second was made from the first.

    Each is given with the name to show. `annotate` adds what is different in structure; of two recordings with
    statistics, each operator has its error.
    """
    both = Capture(pools=Pools())
    for number, (capture, stage, name) in enumerate((before, after)):
        repooled = Repooled(stage.graph.pools, both.pools)
        graph = repooled.graph(stage.graph)
        made_from = number - 1 if number else None
        both.stages.append(
            Stage(_other_than(name, both.stages), graph, made_from, None, dict(stage.listings), stage.warnings)
        )
        for fact in FACTS:
            if fact != CHANGES.name:  # of what it was made from, which is not here
                for table in capture.facts(fact, capture.stages.index(stage)):
                    both.add(repooled.table(table, number))
        both.sources.update(capture.sources)
        both.warnings += [text for text in capture.warnings if text not in both.warnings]
    first, second = before[0].origin, after[0].origin
    alike = first.framework == second.framework and first.version == second.version
    # The page begins such a capture at what is different.
    both.origin = Origin(first.format, first.framework, first.version if alike else "", "compared")
    add_errors(both)
    return both


def _other_than(name: str, stages: list[Stage]) -> str:
    """Listings belong to a stage by its name: no two have the same."""
    return f"{name} (2)" if any(stage.name == name for stage in stages) else name
