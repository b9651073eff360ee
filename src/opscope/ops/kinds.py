"""The vocabulary: every kind of operator by its canonical name, and the formulas for it.

The names are PyTorch's where it has one word for the thing (`relu`, `layer_norm`, `gather`), whatever framework an
operator comes from. The alias tables say which operators of a framework are which kind.

Frameworks do not say the same about one operation: PyTorch has both matrices of a product as they are multiplied,
MegEngine flags that turn them round. So a kind may have more formulas beside the plain one, its readings, each written
behind a slash: `matmul/by-result`. A reading says how the arguments are to be read. It is no part of the kind, and
it does not appear outside of the alias tables.
"""

from __future__ import annotations

from collections.abc import Callable

from .call import Call
from .cost import ZERO, Cost

Rule = Callable[[Call], Cost]
RULES: dict[str, Rule] = {}  # by kind, or by kind and reading

VIEW = Cost(read=0, written=0, how=ZERO)  # the same memory, seen otherwise
MOVE = Cost(how=ZERO)  # bytes by the general rule, and nothing computed


def kind(*names: str) -> Callable[[Rule], Rule]:
    """Add a formula for one or several kinds, or for a reading of them."""

    def add(rule: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"two formulas for {name!r}")
            RULES[name] = rule
        return rule

    return add


def kind_of(name: str) -> str:
    """`matmul` of `matmul/by-result`."""
    return name.partition("/")[0]


def check(name: str) -> None:
    """An error that says what is wrong, unless there is a formula of this name."""
    if name in RULES:
        return
    kind, _, reading = name.partition("/")
    if kind not in RULES:
        raise ValueError(f"there is no kind {kind!r}")
    known = ", ".join(sorted(other.partition("/")[2] for other in RULES if other.startswith(f"{kind}/")))
    raise ValueError(f"{kind} has no reading {reading!r} (there are: {known or 'none'})")


def table(text: str) -> dict[str, int]:
    """`2: silu logit` on each line: names and the number before them."""
    found: dict[str, int] = {}
    for line in text.strip().splitlines():
        number, _, names = line.partition("#")[0].partition(":")
        found.update(dict.fromkeys(names.split(), int(number or 0)))
    return found
