"""opscope.diff and opscope.passes: what is different between two graphs, and what each compiler pass did."""

from __future__ import annotations

from types import TracebackType

from opscope import ir
from opscope.analysis.diff import Diff, compare, stage_diffs, with_changes
from opscope.analysis.diff.exported import crossing
from opscope.analysis.diff.report import Compared
from opscope.analysis.diff.stages import reported
from opscope.capture import Capture

Graphs = ir.Capture | ir.Stage | ir.Graph


def diff(before: Graphs, after: Graphs) -> Diff:
    """What is different between two captures (their first stages), two stages, or two graphs.

    >>> opscope.diff(cap.stages[0], cap.stages[1])                   # doctest: +SKIP
    20 → 19 operators: 1 rewritten, 14 same
    """
    if isinstance(before, ir.Capture) and isinstance(after, ir.Capture):
        return of_captures((before, before.stage()), (after, after.stage()))
    return compare(_graph(before), _graph(after))


def of_captures(before: tuple[ir.Capture, ir.Stage], after: tuple[ir.Capture, ir.Stage]) -> Diff:
    """What is different between stages of two captures. Of two frameworks, what was exported is told apart by what the
    exporter kept: names of operators, modules, lines."""
    one, other = before[1].graph, after[1].graph
    frameworks = before[0].origin.framework, after[0].origin.framework
    if not all(frameworks) or frameworks[0] == frameworks[1]:
        return compare(one, other)
    links = crossing(one, other)
    return compare(one, other, links, frameworks=frameworks if links else None)


def _graph(given: Graphs) -> ir.Graph:
    return given if isinstance(given, ir.Graph) else given.graph


def between(capture: ir.Capture, before: int, after: int) -> Diff:
    """What is different between two stages of one capture, with what the compiler itself reported."""
    return compare(capture.stages[before].graph, capture.stages[after].graph, reported(capture, before, after))


def along_stages(capture: ir.Capture) -> list[Compared]:
    """Each stage compared with the one it was made from."""
    return [
        Compared(capture.stages[before].name, capture.stages[after].name, found, capture.stages[after].seconds)
        for before, after, found in stage_diffs(capture)
    ]


def ends(capture: ir.Capture) -> tuple[int, int]:
    """The last stage that was made from another, and the first one of its line: what all stages together did."""
    last = max(index for index, stage in enumerate(capture.stages) if stage.after is not None)
    first = last
    while (above := capture.stages[first].after) is not None:
        first = above
    return first, last


def passes(framework: str = "hidet") -> Passes:
    """Record what each pass of a compiler does to the graph, with its time, while a `with` block runs.

    >>> with opscope.passes() as cap:                                # doctest: +SKIP
    ...     hidet.graph.optimize(graph)
    >>> cap.stages[-1].graph                                         # doctest: +SKIP
    """
    return Passes(framework)


class Passes:
    """The context manager behind `passes`: gives a capture that is filled at the end of the block."""

    def __init__(self, framework: str) -> None:
        from opscope.tracers import start_passes

        self._start = start_passes(framework)
        self._capture = Capture()

    def __enter__(self) -> Capture:
        from opscope.tracers.frames import users_frame

        self._session = self._start(users_frame())
        return self._capture

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._session.abort()
        else:
            self._capture.fill(with_changes(self._session.finish()))
