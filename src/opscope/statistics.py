"""opscope.stats: what a model, a capture or a file costs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opscope import ir
from opscope.analysis.binding import bind
from opscope.analysis.costs.columns import Row
from opscope.analysis.costs.devices import device as device_named
from opscope.analysis.costs.parameters import Parameter
from opscope.analysis.costs.report import Report, report
from opscope.analysis.costs.roofline import Roofline, roofline
from opscope.analysis.costs.stats import GraphStats
from opscope.analysis.device import device_of
from opscope.analysis.times import clocks, in_all, kernel_times, node_times
from opscope.analysis.values import own_figures, value_figures
from opscope.export import cost_tables
from opscope.ops import formula

__all__ = ["Stats", "StatsTable", "formula", "stats"]


_HIDDEN = frozenset(("own", "scope"))


class StatsTable:
    """A table of costs: `print` it, look at it in a notebook, or take its `rows`."""

    def __init__(self, stats: Stats, found: Report) -> None:
        self._stats, self.report = stats, found

    @property
    def rows(self) -> list[Row]:
        """Exact figures, one dictionary for each row."""
        return list(self.each_row())

    def each_row(self) -> Iterator[Row]:
        """The same one by one, for tables of a million rows."""
        for row in self.report.rows:
            row = row if _HIDDEN.isdisjoint(row) else {key: row[key] for key in row if key not in _HIDDEN}
            yield row

    def __len__(self) -> int:
        return len(self.report.rows)

    def __str__(self) -> str:
        return cost_tables.plain(self.report)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return cost_tables.html_table(self.report, self._stats)

    def markdown(self) -> str:
        return cost_tables.markdown(self.report)

    def csv(self) -> str:
        return cost_tables.comma_separated(self.report)


class Stats(GraphStats):
    """Parameters, FLOPs, activations, memory and bytes of one graph, each exact or marked.

    >>> s = opscope.stats(model, x)                                  # doctest: +SKIP
    >>> s.total.macs, s.total.at_least, s.unknown_ops                # doctest: +SKIP
    >>> print(s.by_module(depth=2))                                  # doctest: +SKIP
    """

    def table(self, by: str = "module", *, device: str | None = None, **options: Any) -> StatsTable:
        """By module, op, kind, node, kernel or phase. Options: columns, depth, sort, top, fold."""
        found = report(self, by, device=device_named(device) if device is not None else None, **options)
        return StatsTable(self, found)

    def by_module(self, **options: Any) -> StatsTable:
        return self.table("module", **options)

    def by_op(self, **options: Any) -> StatsTable:
        return self.table("op", **options)

    def by_kernel(self, **options: Any) -> StatsTable:
        return self.table("kernel", **options)

    def by_phase(self, **options: Any) -> StatsTable:
        return self.table("phase", **options)

    def by_node(self, **options: Any) -> StatsTable:
        return self.table("node", **options)

    def roofline(self, device: str) -> Roofline:
        """The least time of every operator on a device."""
        return roofline(self.graph, self.costs, device_named(device))

    def to_dict(self, by: str = "module", **options: Any) -> dict[str, Any]:
        """What `opscope stats --json` prints; docs/stats.md lists the fields."""
        return {"total": self.totals(), "rows": self.table(by, **options).rows}

    def __str__(self) -> str:
        found = report(self)
        return "\n".join([cost_tables.plain(found), "", *cost_tables.summary(self, found)])

    def __repr__(self) -> str:
        total = self.total
        macs = ("≥ " if total.at_least else "") + cost_tables.short(total.macs, "MACs")
        parameters = ("≥ " if total.params_at_least else "") + f"{total.params:,} parameters"
        return f"<opscope.Stats {macs}, {parameters}, peak memory at least {cost_tables.short(total.peak_bytes, 'B')}>"

    def _repr_html_(self) -> str:
        return cost_tables.html_table(report(self), self)


def stats(target: Any, *args: Any, train: bool = False, fake: bool | None = None, **kwargs: Any) -> Stats:
    """What a model costs for these arguments, or what a capture or a file costs.

    >>> opscope.stats(model, x)                                      # doctest: +SKIP
    >>> opscope.stats(model, input_ids=ids, train=True)              # doctest: +SKIP
    >>> opscope.stats("resnet_train.pkl")                            # doctest: +SKIP
    >>> opscope.stats("dynamic.pt2", sizes={"s77": 4})               # doctest: +SKIP

    The model is called once. It keeps its mode, hooks, gradients, buffers and random numbers, also after an exception.
    `train=True` adds the backward pass, from the loss that the model returns or from the sum of what it returns.
    `fake=True` counts a PyTorch model on tensors without numbers, which needs no memory for them; by default that is
    done where the model has no numbers or would not fit. Where shapes depend on data, real tensors are used.
    `sizes=` gives numbers for the open sizes of a capture or a file.
    """
    if isinstance(target, ir.Capture):
        sizes = kwargs.pop("sizes", {})
        _none_given(args, kwargs)
        return of_capture(bind(target, sizes))
    if isinstance(target, str | os.PathLike):
        sizes = kwargs.pop("sizes", {})
        _none_given(args, kwargs)
        from opscope.opening import open

        return of_capture(open(Path(os.fspath(target)), sizes=sizes))
    from opscope.tracers import counting

    found = counting.count(target, args, kwargs, train=train, fake=fake)
    held = [Parameter(*row[:-1], is_used=True, is_taken=row.is_taken) for row in found.held]
    return of_capture(found.capture, held=held, guesses=found.guesses)


def of_capture(
    capture: ir.Capture,
    stage: str | None = None,
    *,
    held: Sequence[Parameter] = (),
    guesses: Sequence[str] = (),
) -> Stats:
    """The statistics of one stage of a capture, with the times that were measured. Unless it is named: the first, or,
    where a profile was joined to others than that, the one that took the most time."""
    chosen = capture.stage(stage) if stage is not None else _measured_most(capture) or capture.stage(None)
    number = capture.stages.index(chosen)
    return Stats(
        chosen.graph,
        capture.origin.framework,
        held=held,
        guesses=guesses,
        times=node_times(capture, number),
        kernel_times=kernel_times(capture, number),
        clocks=clocks(capture, number),
        in_all=in_all(capture) if stage is None else None,
        gaps=ir.gaps_of(capture, number),
        figures=value_figures(capture, number),
        own=own_figures(capture, number),
        device=device_of(capture),
    )


def _measured_most(capture: ir.Capture) -> ir.Stage | None:
    """Of a profile that is on several stages, none of them the first, the one with the most seconds."""
    found = {number: clock for number in range(len(capture.stages)) if (clock := clocks(capture, number)) is not None}
    if not found or ((first := found.get(0)) is not None and (first.gpu_known.any() or np.isfinite(first.cpu).any())):
        return None
    return capture.stages[max(found, key=lambda number: (float(found[number].gpu.sum()), -number))]


def _none_given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if args or kwargs:
        raise TypeError("a capture or a file takes no arguments: only a model is called with them")
