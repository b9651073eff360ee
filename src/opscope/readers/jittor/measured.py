"""What is known of a trace beside its graph: ids, values of variables, files and times of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, cast

import numpy as np

from opscope.ir import Column, Table, column
from opscope.ir.columns import frozen
from opscope.ir.facts import FILES, IDS
from opscope.ir.measurements import Figures, Measured, figures_table, statistics_of, times_table, values_table
from opscope.ir.tally import figures_of

from .build import Built
from .dump import Dump

HEADER = ("Name", "FileName", "Count", "TotalTime", "AvgTime", "MinTime", "MaxTime")


def id_tables(built: Built) -> dict[str, Table]:
    """Jittor's own ids, by which its messages and our warnings name operators and variables."""
    tables: dict[str, Table] = {}
    for by, ids in (("node", built.node_ids), ("value", built.value_ids)):
        if ids:
            numbers = column(np.array(ids, dtype=np.int64))
            tables[f"jittor id by {by}"] = Table(0, by, frozen(range(len(ids))), {"id": numbers}, IDS.name)
    return tables


def file_table(dump: Dump) -> Table | None:
    """The generated C++ file of every kernel."""
    files = [execution.file if execution.jit_key else "" for execution in dump.executions]
    if not any(files):
        return None
    named = column(files, known=[bool(file) for file in files])
    return Table(0, "group:kernel", frozen(range(len(files))), {"file": named}, FILES.name)


def value_table(dump: Dump, built: Built, figures: bool = False) -> Table | None:
    """The values that a trace with trace_var_data holds, or their figures alone. Variables without them are not in the
    table."""
    found: dict[int, Measured] = {}
    only: dict[int, Figures] = {}
    for value, jittor_id in enumerate(built.value_ids):
        var = dump.vars.get(jittor_id)
        numbers = _numbers(var.data) if var is not None and var.data is not None else None
        if numbers is None:
            continue
        array = np.array(numbers, dtype=np.float64)
        if figures:
            known = figures_of([array], built.graph.value(value).type.dtype)
            if known is not None:
                only[value] = known._replace(hash="")  # Jittor wrote them as text, to a few digits
        else:
            found[value] = Measured(statistics_of(array), numbers)
    if only:
        return figures_table(0, only)
    return values_table(0, found) if found else None


def _numbers(text: str) -> list[float] | None:
    try:
        return [float(part) for part in text.split(",") if part]
    except ValueError:
        return None


def is_report(rows: Any) -> bool:
    """The report of jt.profile_scope: rows of text under a header."""
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], list):
        return False
    return tuple(cast("list[Any]", rows[0])[: len(HEADER)]) == HEADER


def time_table(report: Sequence[Any], dump: Dump, built: Built) -> tuple[Table | None, list[str]]:
    """Times by kernel execution. The profiler adds up all runs of one kernel: each run shows their mean."""
    if "kernel" not in built.graph.groups:
        return None, []
    times: dict[tuple[str, str], tuple[float, ...]] = {}
    for row in report[1:]:
        if not isinstance(row, list) or len(cast("list[Any]", row)) < len(HEADER):
            continue
        name, file, runs, _, mean, least, most = map(str, cast("list[Any]", row)[: len(HEADER)])
        measured = _numbers(",".join((mean, least, most, runs)))
        if measured is not None and len(measured) == 4 and all(map(isfinite, measured)):
            times[name, file.split("\n")[0]] = tuple(measured)
    found = [times.get((one.jit_key, one.file if one.jit_key else "")) for one in dump.executions]
    matched = sum(row is not None for row in found)
    warnings = (
        [] if matched else ["none of the kernels in the profile report ran in this trace: no times were taken from it"]
    )
    if not matched:
        return None, warnings
    known = [row is not None for row in found]

    def figures(place: int, unit: str) -> Column:
        return column(np.array([row[place] if row else 0.0 for row in found], dtype=np.float64), unit, known)

    more = {"least": figures(1, "ns"), "most": figures(2, "ns"), "runs": figures(3, "")}
    means = [row[0] if row else 0.0 for row in found]
    return times_table(0, "group:kernel", range(len(found)), means, known, more), warnings
