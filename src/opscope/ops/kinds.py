"""The vocabulary: every kind of operator by its canonical name, and its formula.

The names are PyTorch's where it has one word for the thing (`relu`, `layer_norm`, `gather`), whatever framework an
operator comes from. The alias tables say which operators of a framework are which kind.
"""

from __future__ import annotations

from collections.abc import Callable

from .call import Call
from .cost import ZERO, Cost

Rule = Callable[[Call], Cost]
KINDS: dict[str, Rule] = {}

VIEW = Cost(read=0, written=0, how=ZERO)  # the same memory, seen otherwise
MOVE = Cost(how=ZERO)  # bytes by the general rule, and nothing computed


def kind(*names: str) -> Callable[[Rule], Rule]:
    """Add a formula under one or several canonical names."""

    def add(rule: Rule) -> Rule:
        for name in names:
            if name in KINDS:
                raise ValueError(f"two formulas for {name!r}")
            KINDS[name] = rule
        return rule

    return add


def table(text: str) -> dict[str, int]:
    """`2: silu logit` on each line: names and the number before them."""
    found: dict[str, int] = {}
    for line in text.strip().splitlines():
        number, _, names = line.partition("#")[0].partition(":")
        found.update(dict.fromkeys(names.split(), int(number or 0)))
    return found
