"""What the schema says of operators: `options.txt`, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from .flat import Table

Fields = list[tuple[str, int, str]]  # name, slot, type

_NAMED = {
    "padding": ("SAME", "VALID"),
    "fused_activation_function": ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"),
    "mode": ("REFLECT", "SYMMETRIC"),
    "combiner": ("SUM", "MEAN", "SQRTN"),
}


@cache
def _lines() -> list[list[str]]:
    text = Path(__file__).with_name("options.txt").read_text(encoding="utf-8")
    return [line.split() for line in text.replace("\n ", " ").splitlines() if line and not line.startswith("#")]


@cache
def operators() -> dict[int, str]:
    (words,) = (line[1:] for line in _lines() if line[0] == "operators")
    return {int(number): name for number, _, name in (word.partition("=") for word in words)}


@cache
def _options(kind: str) -> dict[int, Fields]:
    found: dict[int, Fields] = {}
    for line in _lines():
        if line[0] == kind:
            fields: Fields = []
            for word in line[3:]:
                name, _, rest = word.partition("=")
                slot, _, code = rest.partition(":")
                fields.append((name, int(slot), code))
            found[int(line[1])] = fields
    return found


def attributes(operator: Table) -> dict[str, Any]:
    """The options of an operator, by their names in the schema."""
    found: dict[str, Any] = {}
    for kind, tag, slot in (("options", 3, 4), ("options2", 11, 12)):
        options = operator.table(slot)
        if options is None:
            continue
        for name, place, code in _options(kind).get(operator.get(tag, "B"), []):
            value = options.get(place, code)
            names = _NAMED.get(name, ())
            found[name] = names[value] if code == "b" and 0 <= value < len(names) else value
    return found
