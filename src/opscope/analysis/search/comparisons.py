"""Terms on figures: `time:>1ms`, `nan:>0`, `max:-1..1`. viewer/src/find/compare.ts reads them in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from opscope.ir.facts import TIME_UNITS

from .query import BadQuery, Term

Numbers: TypeAlias = npt.NDArray[np.float64]
Comparison: TypeAlias = Callable[[Numbers], npt.NDArray[np.bool_]]

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?"
_COMPARED = re.compile(r"(>=|<=|>|<)?(.+)", re.DOTALL)
_COMPARE: dict[str, Callable[[Numbers, float], Any]] = {
    ">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal, "": np.equal,
}  # fmt: skip
_TIMES = {**TIME_UNITS, "µs": TIME_UNITS["us"], "μs": TIME_UNITS["us"]}
_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def comparison(term: Term) -> Comparison:
    """What a term says of a figure. `*` is any figure that is known."""
    found = _COMPARED.fullmatch(term.text) if term.kind == "word" else None
    if found is None:
        raise _unreadable(term)
    sign, rest = found[1] or "", found[2]
    if not sign and rest == "*":
        return lambda numbers: np.ones(len(numbers), dtype=bool)
    if not sign and ".." in rest:
        first, _, last = rest.partition("..")
        low, high = _number(first, term), _number(last, term)
        return lambda numbers: (numbers >= low) & (numbers <= high)
    number, compare = _number(rest, term), _COMPARE[sign]
    return lambda numbers: compare(numbers, number)


def _number(text: str, term: Term) -> float:
    """A plain number with k, M or G behind it; of a time, with its unit. In seconds."""
    units = _TIMES if term.field == "time" else _SUFFIXES
    found = re.fullmatch(rf"({_NUMBER})(\D*)", text, re.IGNORECASE | re.ASCII)
    unit = units.get(found[2].lower()) if found is not None else None
    if found is None or unit is None:
        raise _unreadable(term)
    # Divided by a whole number: 5us are then exactly the 5e-6 that a file may say.
    return float(found[1]) * unit if unit >= 1 else float(found[1]) / round(1 / unit)


def _unreadable(term: Term) -> BadQuery:
    if term.field == "time":
        return BadQuery(f"{term}: a time has a unit, as in time:>1ms, time:10us..1ms, or time:* for any known time")
    return BadQuery(f"{term}: {term.field} is compared with a number, as in {term.field}:>0, {term.field}:-1..1 or :*")
