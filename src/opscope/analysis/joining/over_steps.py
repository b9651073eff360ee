"""Of a recording of several steps: what each operator took in all of them, its median, fastest and slowest run."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from opscope.analysis.times import in_seconds
from opscope.ir import Capture, Graph, column
from opscope.ir.facts import TIMES

from .measured import operator_names
from .sequences import aligned

_STEP = re.compile(r"step (\d+)")
_LEAST_STEPS = 3  # from which on the first one is left out


def over_steps(capture: Capture) -> None:
    """Adds the columns `median`, `least`, `most` and `runs` to the times of the first stage. The first step warms up
    (memory is taken, libraries choose their kernels): where two follow, it is left out, and a warning says so."""
    graph = capture.graph
    steps = [nodes for _, nodes in sorted(_steps(graph).items())]
    table = next((t for t in capture.facts(TIMES.name, 0) if t.by == "node"), None)
    if len(steps) < 2 or table is None:
        return
    seconds = np.full(graph.n_nodes, np.nan)
    time = table.columns["time"]
    seconds[table.index[time.known]] = in_seconds(time)[time.known]
    totals = [float(np.nansum(seconds[nodes])) for nodes in steps]
    counted = steps[1:] if len(steps) >= _LEAST_STEPS else steps
    if counted is not steps:
        others = float(np.median(totals[1:]))
        capture.warnings.append(
            f"step 1 warms up: its operators took {1e3 * totals[0]:.3f} ms, the median of the others is "
            f"{1e3 * others:.3f} ms. It is left out of the median, fastest and slowest run of each operator"
        )
    figures = _figures(graph, seconds, steps, counted)
    for name in ("median", "least", "most"):
        found = figures[name][table.index]
        table.columns[name] = column(np.nan_to_num(found), "s", np.isfinite(found).tolist())
    table.columns["runs"] = column(figures["runs"][table.index].astype(np.int64))


def _steps(graph: Graph) -> dict[int, list[int]]:
    """The operators of each recorded step."""
    scopes = graph.pools.scopes.rows()
    step_of = [0] * len(scopes)
    for number, scope in enumerate(scopes[1:], 1):  # parents come first
        found = _STEP.fullmatch(scope.name) if scope.parent == 0 else None
        step_of[number] = int(found[1]) if found else step_of[scope.parent]
    steps: dict[int, list[int]] = {}
    used: list[int] = graph.node_scope.tolist()
    for node, scope in enumerate(used):
        if step_of[scope]:
            steps.setdefault(step_of[scope], []).append(node)
    return steps


def _figures(
    graph: Graph, seconds: npt.NDArray[np.float64], steps: list[list[int]], counted: list[list[int]]
) -> dict[str, npt.NDArray[np.float64]]:
    names = operator_names(graph)
    model = counted[-1]  # the last step, with which each is compared
    ops = [names[node] for node in model]
    places = [aligned(ops, [names[node] for node in nodes]) for nodes in steps]
    found = {name: np.full(graph.n_nodes, np.nan) for name in ("median", "least", "most")}
    runs = np.ones(graph.n_nodes)
    for position in range(len(model)):
        same = [nodes[own[position]] for nodes, own in zip(steps, places, strict=True) if own[position] >= 0]
        first = 1 if counted is not steps and places[0][position] >= 0 else 0
        took = seconds[same[first:]]
        took = took[np.isfinite(took)]
        if len(took):
            found["median"][same], found["least"][same] = np.median(took), took.min()
            found["most"][same], runs[same] = took.max(), len(took)
    return {**found, "runs": runs}
