"""Conditions on what changed, for CI: `nodes>+5%`, `macs>+5%`, `params>0`, `added>0`, `breaks>0`.

For figures the condition is about the difference: `params>0` means that there are more parameters than before. What is
counted of compiled code (`breaks`, `recompiles`, `kernels`) is about the later capture alone, unless the number has a
sign or a percentage: `breaks>0` means that there is one, `breaks>+0` that there are more than before.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from opscope.errors import OpscopeError
from opscope.ir.enumerations import CHANGE_CLASSES

from .changes import Diff

# What people write -> the figure of the statistics.
FIGURES = {
    "macs": "macs",
    "flops": "flops",
    "other_flops": "other_flops",
    "params": "params",
    "param_bytes": "param_bytes",
    "activations": "activations",
    "activation_bytes": "activation_bytes",
    "memory": "peak_bytes",
    "peak_bytes": "peak_bytes",
}
COUNTS = ("nodes", "values", "edges")
CHANGES = ("changes", *(kind for kind in CHANGE_CLASSES if kind != "same"))
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_UNITS = {"us": 1, "µs": 1, "ms": 10**3, "s": 10**6, "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
TIME = "time"
COMPILED = ("breaks", "recompiles", "kernels")
_FORM = re.compile(
    r"\s*(\w+)\s*(?:\((.*)\))?\s*(>=|<=|==|!=|>|<)\s*([+-]?\d+(?:\.\d+)?)\s*([kMGT]|[um]?s|µs)?\s*(%?)\s*$", re.DOTALL
)


class Limit(NamedTuple):
    text: str
    figure: str
    sign: str
    amount: float
    percent: bool
    query: str = ""  # of `kernels(…)`: which operators, in the search language
    is_difference: bool = True

    @property
    def is_compiled(self) -> bool:
        """Whether it is about what a compiler did, in `compiled_limits`."""
        return self.figure in COMPILED

    @property
    def needs_stats(self) -> bool:
        return self.figure in FIGURES


def parse(text: str) -> Limit:
    """
    >>> parse("macs>+5%").amount
    5.0
    """
    found = _FORM.match(text)
    known = ", ".join((*COUNTS, *FIGURES, *CHANGES, TIME, *COMPILED))
    if not found:
        raise OpscopeError(f"--fail-on {text!r}: not a condition such as 'macs>+5%' or 'added>0' (figures: {known})")
    figure, query, sign, number, unit, percent = found.groups()
    if query is not None and figure not in ("kernels", TIME):
        raise OpscopeError(f"--fail-on {text!r}: only kernels(…) and time(…) take a query")
    if query is not None and not query.strip():
        raise OpscopeError(f"--fail-on {text!r}: {figure}() needs a query, as in '{figure}(scope:layers.*.mlp)>1'")
    if figure not in (*COUNTS, *FIGURES, *CHANGES, TIME, *COMPILED):
        raise OpscopeError(f"--fail-on {text!r}: there is no figure {figure!r} (there are: {known})")
    if percent and figure in CHANGES:
        raise OpscopeError(f"--fail-on {text!r}: {figure} is a number of changes, which has no percentage")
    is_difference = figure not in COMPILED or bool(percent) or number[0] in "+-"
    if unit and (unit.endswith("s") != (figure == TIME)):
        raise OpscopeError(f"--fail-on {text!r}: {figure} is not counted in {unit!r}")
    amount = float(number) * _UNITS[unit or ""]
    return Limit(text, figure, sign, amount, bool(percent), (query or "").strip(), is_difference)


def exceeded(limit: Limit, diff: Diff, before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Why the condition holds, in words; None where it does not. `before` and `after` are totals of the statistics."""
    if limit.figure in CHANGES:
        count = len(diff.changes) if limit.figure == "changes" else diff.summary()[limit.figure]
        return f"{limit.text}: there are {count:,}" if holds(limit, count) else None
    old, new = _figure(limit, diff, before, after)
    if old is None or new is None:
        return f"{limit.text}: the figure is not known for both"
    return exceeded_by(limit, old, new)


def holds(limit: Limit, value: float) -> bool:
    return _OPERATORS[limit.sign](value, limit.amount)


def exceeded_by(limit: Limit, old: float, new: float, unit: str = "") -> str | None:
    """Why a condition on a difference holds."""
    grown = new - old
    if limit.percent:
        share = 100 * grown / old if old else (0.0 if not grown else float("inf") if grown > 0 else float("-inf"))
        return f"{limit.text}: {old:,}{unit} → {new:,}{unit} ({share:+.1f} %)" if holds(limit, share) else None
    return f"{limit.text}: {old:,}{unit} → {new:,}{unit} ({grown:+,})" if holds(limit, grown) else None


def _figure(limit: Limit, diff: Diff, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Any, Any]:
    if limit.figure in COUNTS:
        name = f"n_{limit.figure}"
        return getattr(diff.before, name), getattr(diff.after, name)
    name = FIGURES[limit.figure]
    return before.get(name), after.get(name)
