"""One recording of Hidet: every graph that is traced and every pass that runs while it is open."""

from __future__ import annotations

import os
from types import FrameType
from typing import Any

import numpy as np

from opscope.ir import Capture, Origin, Pools, Stage, StageLink, add_listings
from opscope.ir.columns import frozen
from opscope.ir.measurements import TIMES, VALUES
from opscope.readers.hidet.build import Built, build
from opscope.readers.hidet.flow import Flow
from opscope.sources import embed, exact
from opscope.tracers import session
from opscope.tracers.session import NothingRecorded

from .objects import snapshot
from .runs import Runs
from .watch import Passed, Run, Watch


class Session(session.Session):
    def __init__(
        self,
        hidet: Any,
        caller: FrameType | None,
        *,
        passes_only: bool = False,
        values: bool = False,
        times: bool = False,
    ) -> None:
        self._hidet = hidet
        self._passes_only = passes_only
        self.pools = Pools()
        self._runs = Runs(hidet, values=values, times=times) if values or times else None
        self.watch = Watch(hidet, self.pools, caller)
        self.open()
        if self._runs is not None:
            self._runs.open()

    def restore(self) -> None:
        self.watch.close()
        if self._runs is not None:
            self._runs.close()

    def finish(self) -> Capture:
        self.close()
        watch = self.watch
        capture = self._capture("passes" if watch.runs else "trace")
        optimized = {id(operator) for run in watch.runs for operator in run.passes[0].operators}
        if not self._passes_only:
            for graph in self._graphs():
                if not any(id(operator) in optimized for operator in graph.nodes):
                    self.add_graph(capture, snapshot(graph, watch.place, watch.names))
                    self._measure(capture, list(graph.nodes))
        for run in watch.runs:
            self._add_run(capture, run)
        if not capture.stages:
            what = "ran no pass" if self._passes_only else "traced no graph and ran no pass"
            raise NothingRecorded(
                f"Hidet {what} while it was recorded: there is nothing to show (hidet.trace_from() and "
                "Module.flow_graph_for() make graphs, hidet.graph.optimize() runs the passes)"
            )
        if self._runs is not None and not self._runs.graphs:
            capture.warnings.append(
                "no FlowGraph ran while it was recorded, so nothing was measured: call the graph inside the block (a "
                "CompiledGraph runs outside of Python, where its operators cannot be distinguished)"
            )
        return self.finished(capture)

    def _graphs(self) -> list[Any]:
        """Those that were traced here, and those that were there before and ran here; not what passes made."""
        made = {id(operator) for run in self.watch.runs for passed in run.passes for operator in passed.operators}
        found = list(self.watch.traced)
        for graph in self._runs.graphs if self._runs is not None else ():
            is_new = not any(known is graph for known in found)
            if is_new and not any(id(operator) in made for operator in graph.nodes):
                found.append(graph)
        return found

    def _measure(self, capture: Capture, operators: list[Any]) -> None:
        """What is known of the runs of the newest stage, whose nodes are these operators."""
        if self._runs is None:
            return
        number = len(capture.stages) - 1
        stage = capture.stages[number]
        tables = {TIMES: self._runs.times(number, operators), VALUES: self._runs.values(number, stage.graph, operators)}
        for name, table in tables.items():
            if table is not None:
                capture.tables[f"{name} {stage.name}" if name in capture.tables else name] = table

    def finished(self, capture: Capture) -> Capture:
        root = os.path.dirname(self._hidet.__file__) + os.sep
        embed(capture, lambda path: None if path.startswith(root) else exact(path))
        return capture

    def _capture(self, how: str) -> Capture:
        origin = Origin("hidet", "hidet", str(self._hidet.__version__), how)
        return Capture(pools=self.pools, origin=origin)

    def one(self, flow: Flow) -> Capture:
        """A capture of one graph."""
        capture = self._capture("trace")
        self.add_graph(capture, flow)
        return self.finished(capture)

    def add_graph(self, capture: Capture, flow: Flow) -> None:
        count = sum(stage.name.startswith("graph") for stage in capture.stages)
        self._add(capture, build(flow, self.pools), f"graph {count + 1}" if count else "graph", None, None)

    def _add_run(self, capture: Capture, run: Run) -> None:
        names = {stage.name for stage in capture.stages}
        number = 1
        while f"{_prefix(number)}0_Origin" in names:
            number += 1
        before: tuple[Passed, Built] | None = None
        for i, passed in enumerate(run.passes):
            built = build(passed.flow, self.pools)
            if before is not None and before[0].flow == passed.flow and _same(before[0], passed):
                built = before[1]
            after = len(capture.stages) - 1 if before is not None else None
            self._add(capture, built, f"{_prefix(number)}{i}_{passed.name}", after, passed.seconds)
            if before is not None:
                self._report(capture, before[0], passed)
            before = passed, built
        self._measure(capture, run.passes[-1].operators)

    def _add(self, capture: Capture, built: Built, name: str, after: int | None, seconds: float | None) -> None:
        stage = len(capture.stages)
        capture.stages.append(Stage(name, built.graph, after, seconds, warnings=built.warnings))
        add_listings(capture, stage, built.listings)
        table = built.table(stage)
        if table is not None:
            capture.tables[f"constants {name}" if stage else "constants"] = table

    @staticmethod
    def _report(capture: Capture, before: Passed, after: Passed) -> None:
        """An operator that went through a pass as the same object is known to be the same."""
        place = {id(operator): i for i, operator in enumerate(before.operators)}
        kept = [(place[id(operator)], j) for j, operator in enumerate(after.operators) if id(operator) in place]
        if kept:
            source, target = (frozen(np.array(column)) for column in zip(*kept, strict=True))
            index = len(capture.stages) - 1
            capture.stage_links.append(StageLink(index - 1, index, "lowers", source, target, "reported"))


def _prefix(number: int) -> str:
    return "" if number == 1 else f"run {number}: "


def _same(before: Passed, after: Passed) -> bool:
    return len(before.operators) == len(after.operators)
