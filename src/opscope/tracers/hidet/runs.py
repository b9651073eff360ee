"""What operators took and made while a FlowGraph ran, seen by an instrument of Hidet's own."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from opscope.ir import Column, Graph, Table, column
from opscope.ir.measurements import Measured, measured, times_table, values_table


class Runs:
    """By operator (its id): the seconds of each run, and what the last run made. The operators are held, so that no
    other gets the id of one of them."""

    def __init__(self, hidet: Any, *, values: bool, times: bool) -> None:
        self._cuda: Any = hidet.cuda if hidet.cuda.available() else None
        self._values = values
        self._times = times
        self.graphs: list[Any] = []
        self._seconds: dict[int, list[float]] = {}
        self._measured: dict[int, list[Measured]] = {}
        self._held: list[Any] = []
        self._began = 0.0
        self._instruments: list[Any] = []
        self._instrument: Any = None

    def open(self) -> None:
        flow_graph: Any = importlib.import_module("hidet.graph.flow_graph")
        runs = self

        class Instrument(flow_graph.GraphForwardInstrument):
            def before_graph(self, graph: Any, inputs: Any) -> None:
                if not any(known is graph for known in runs.graphs):
                    runs.graphs.append(graph)

            def before_operator(self, op: Any, inputs: Any) -> None:
                runs._began = runs._now()

            def after_operator(self, op: Any, inputs: Any, outputs: Any) -> None:
                runs._ran(op, runs._now() - runs._began, outputs)

        # Beside the user's own instruments: a context of ours would hide his.
        self._instruments = flow_graph.GraphForwardContext.current().instruments
        self._instrument = Instrument()
        self._instruments.append(self._instrument)

    def close(self) -> None:
        if self._instrument in self._instruments:
            self._instruments.remove(self._instrument)

    def _now(self) -> float:
        if self._cuda is not None:
            self._cuda.synchronize()
        return time.perf_counter()

    def _ran(self, operator: Any, seconds: float, outputs: Any) -> None:
        if id(operator) not in self._seconds:
            self._held.append(operator)
        self._seconds.setdefault(id(operator), []).append(seconds)
        if self._values:
            self._measured[id(operator)] = [measured(tensor.cpu().numpy()) for tensor in outputs]

    # -- what is known of a stage -----------------------------------------------------------------

    def times(self, stage: int, operators: list[Any]) -> Table | None:
        """The mean of an operator's runs, the extremes, and their number. `operators`: the nodes of the stage."""
        found = [np.array(self._seconds.get(id(operator), [])) * 1e9 for operator in operators]
        known = [bool(runs.size) for runs in found]
        if not self._times or not any(known):
            return None

        def figure(of: Callable[[Any], float], unit: str = "ns") -> Column:
            return column(np.array([of(runs) if runs.size else 0.0 for runs in found]), unit, known)

        more = {"least": figure(np.min), "most": figure(np.max), "runs": figure(np.size, "")}
        return times_table(stage, "node", range(len(found)), np.array(figure(np.mean).values), known, more)

    def values(self, stage: int, graph: Graph, operators: list[Any]) -> Table | None:
        found: dict[int, Measured] = {}
        for i, operator in enumerate(operators):
            results = self._measured.get(id(operator), [])
            found.update({value.index: row for value, row in zip(graph.node(i).outputs, results, strict=False)})
        return values_table(stage, found) if found else None
