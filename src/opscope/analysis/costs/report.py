"""Costs as tables that people read: rows with figures, and which columns to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from opscope.analysis.times import Clocks
from opscope.errors import OpscopeError
from opscope.ir.facts import VALUE_FIGURES

from .columns import AVAILABLE, BY, CLOCKED, DEFAULT, NAMES, REACHED, Row, column_of, order
from .devices import Device
from .module_tree import tree_rows
from .roofline import Roofline, roofline
from .rows import ModuleRows, Rows, by_kernel, by_kind, by_module, by_node, by_op, by_phase
from .stats import GraphStats


@dataclass
class Report:
    """A table: rows with every figure, the columns to show, and the sums."""

    by: str
    columns: list[str]
    rows: Sequence[Row]
    total: Row
    share_of: str  # what the shares are shares of
    left_out: int = 0  # rows beyond the first `top`
    notes: list[str] = field(default_factory=list[str])

    def title(self, column: str) -> str:
        if column == "name":
            return NAMES[self.by]
        title = column_of(column).title
        if column == "share" and self.share_of != "macs":  # MACs are what one expects
            return f"{title} of {column_of(self.share_of).title.removesuffix(' ≥')}"
        return title


def report(
    stats: GraphStats,
    by: str = "module",
    *,
    columns: Sequence[str] | None = None,
    depth: int | None = None,
    sort: str | None = None,
    top: int | None = None,
    device: Device | None = None,
    fold: bool = True,
) -> Report:
    """The table of one graph. `depth` counts modules from the outermost; without it, as deep as stays readable."""
    if by not in BY:
        raise OpscopeError(f"there is no table by {by!r} (there are: {', '.join(BY)})")
    if depth is not None and depth < 1:
        raise OpscopeError(f"a depth of {depth} shows nothing: 1 is the outermost modules")
    if top is not None and top < 1:
        raise OpscopeError(f"--top must be at least 1 (got {top})")
    shown = list(columns) if columns is not None else _default(stats, by, device)
    for name in [*shown, *([sort] if sort is not None else [])]:
        if name not in (available := [*AVAILABLE[by], *own_columns(stats.own, by)]) and name != "name":
            raise OpscopeError(f"the table by {by} has no column {name!r} (it has: {', '.join(available)})")
    if any(name in ("seconds", "bound") for name in [*shown, sort]) and device is None:
        raise OpscopeError("times need a device to run on: --device h100, for example")
    times = roofline(stats.graph, stats.costs, device) if device is not None else None
    share_of = _share_of(stats, sort, times)
    made, total = _MAKE[by](stats, times)
    _share_total(total, share_of)
    shown = [name for name in shown if name != "name"]
    rows = tree_rows(stats, made, shown, depth, sort, share_of, fold) if isinstance(made, ModuleRows) else made
    if isinstance(rows, Rows):
        if by != "module":
            rows = rows.sorted(_sort_keys(sort, share_of))
        rows = rows.each(lambda row: _shared(row, total, share_of))
    else:
        rows = [_shared(row, total, share_of) for row in rows]
        if sort is not None or by != "phase":
            rows.sort(key=lambda row: [order(row.get(key)) for key in _sort_keys(sort, share_of)])
    found = Report(by, shown, rows, total, share_of)
    if top is not None:
        found.left_out = max(len(found.rows) - top, 0)
        found.rows = found.rows[:top]
    return found


def own_columns(own: Iterable[str], by: str) -> list[str]:
    """Columns of the user's own: of modules the sum of what is inside, and on request its mean and its greatest."""
    rolls = {"module": ("", ":mean", ":max"), "node": ("",)}.get(by, ())
    return [f"{name}{roll}" for name in own for roll in rolls]


def _default(stats: GraphStats, by: str, device: Device | None) -> list[str]:
    columns = list(DEFAULT[by])
    if by == "module" and not stats.total.params:
        columns.remove("params")
    total = stats.total
    if "macs" in columns and (total.causal_macs != total.macs or total.causal_at_most):
        columns.insert(columns.index("macs") + 1, "causal")  # only where it says something
    if total.wire or total.wire_at_least:
        columns.insert(columns.index("share") - (columns[columns.index("share") - 1] in ("self", "how")), "wire")
    if stats.clocks is not None:
        at = columns.index("macs")
        reached = REACHED if stats.work(device) is not None else ()
        columns[at:at] = [*(name for name in CLOCKED if _says_something(stats.clocks, name)), *reached]
    elif stats.times is not None or stats.kernel_times is not None:
        columns.insert(columns.index("macs"), "time")
    if by in ("module", "node"):
        columns[columns.index("macs") : columns.index("macs")] = stats.own
    if device is not None:
        columns[-2:-2] = ["seconds", "bound"] if "bound" in AVAILABLE[by] else ["seconds"]
    return columns


def _says_something(clocks: Clocks, column: str) -> bool:
    if column == "cpu_seconds":
        return bool(np.isfinite(clocks.cpu).any())
    if column == "shared_seconds":
        return bool((np.diff(clocks.kernels.start) > 1).any())
    return len(clocks.kernels) > 0


def _share_of(stats: GraphStats, sort: str | None, times: Roofline | None) -> str:
    if (
        sort is not None
        and column_of(sort).kind in ("count", "short", "bytes", "seconds")
        and sort not in ("node", "runs", *VALUE_FIGURES)
    ):
        return sort
    if times is not None:
        return "seconds"
    total = stats.costs.total
    return "macs" if total.macs else "other" if total.other else "bytes"


def _sort_keys(sort: str | None, share_of: str) -> list[str]:
    first = share_of if sort is None or sort == "share" else sort
    return list(dict.fromkeys((first, "macs", "other", "bytes")))


def _share_total(total: Row, of: str) -> None:
    total["share"] = 1.0 if total.get(of) else None


def _shared(row: Row, total: Row, of: str) -> Row:
    whole = total.get(of) or 0
    row["share"] = (row.get(of) or 0) / whole if whole else None
    own = row.get("own", row).get(of)
    row["self"] = own / whole if whole and own is not None else None
    return row


_MAKE: dict[str, Callable[[GraphStats, Roofline | None], tuple[list[Row] | Rows | ModuleRows, Row]]] = {
    "module": by_module,
    "op": by_op,
    "kind": by_kind,
    "node": by_node,
    "kernel": by_kernel,
    "phase": by_phase,
}
