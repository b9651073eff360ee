"""What the operators of each framework are called here: one module for each framework, named like it.

A module has a `FRAMEWORK`: a table, the framework's title, how its operators are spelled, and what it writes as several
operators. That module is all that a new framework needs.

A line of a table is a kind, where the framework has the arguments that its formula asks for, and the operators:

    matmul  bias:self a:mat1 b:mat2     < addmm
    conv    x:input weight bias         < conv1d conv2d conv3d
    matmul/by-result  a:0 b:1           < Matmul

`role:name@position`: the name may be left out when it is the role's, the position when it is the place in the line.
A second name follows `|`. Where the plain formula does not fit, a slash and a reading follow the kind (kinds.py).
A line that is indented goes on with the operators. An operator that is called like its kind needs no line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from opscope.ir.graph import Graph
from opscope.ops import formulas as _formulas  # fills the vocabulary: every table may use all of it
from opscope.ops.call import Place, Places
from opscope.ops.cost import Cost
from opscope.ops.kinds import check, kind_of

assert _formulas


class Spelled(NamedTuple):
    """An operator's name taken apart: what to look for in the table, best first, and what its spelling says."""

    names: tuple[str, ...]
    in_place: bool = False
    lists: bool = False  # it does the same to every tensor of a list
    has_out: bool = False  # it is given the tensors to write its results to
    only_computed: bool = False  # a backward operator that lists no gradient that it does not compute


class Alias(NamedTuple):
    formula: str  # a kind, or a kind and a reading
    places: Places

    @property
    def kind(self) -> str:
        return kind_of(self.formula)


def as_written(op: str) -> Spelled:
    return Spelled((op,))


class Part(NamedTuple):
    """A node of an operation that a framework writes as several operators."""

    cost: Cost | None = None  # None: what the node's name says
    kind: str = ""  # of the whole operation, at the node where it is counted; "": what the node's name says


def no_chains(graph: Graph) -> dict[int, Part]:
    return {}


class Framework(NamedTuple):
    """What is known of a framework's operators."""

    table: str = ""
    title: str = ""  # as its makers write it
    spelled: Callable[[str], Spelled] = as_written
    # The nodes of operations that it writes as several operators: each is counted once, at one of them.
    chains: Callable[[Graph], Mapping[int, Part]] = no_chains
    composes: bool = False  # it writes softmax and layer norm as several operators, each of which costs what it costs


def frameworks() -> list[str]:
    """Those that have a module here."""
    return sorted(module.name for module in iter_modules(__path__))


@cache
def framework_of(name: str) -> Framework:
    """What is known of a framework; nothing of one that has no module here."""
    return import_module(f"{__name__}.{name}").FRAMEWORK if name in frameworks() else Framework()


@cache
def aliases(framework: str) -> dict[str, Alias]:
    return read(framework_of(framework).table)


def read(text: str) -> dict[str, Alias]:
    """The table as it is looked up. An operator on two lines is an error, and so is an unknown kind."""
    found: dict[str, Alias] = {}
    whole = re.sub(r"\n +", " ", re.sub(r"#.*", "", text))
    for line in whole.split("\n"):
        if not line.strip():
            continue
        head, _, ops = line.partition("<")
        formula, *roles = head.split()
        try:
            check(formula)
        except ValueError as error:
            raise ValueError(f"{line.strip()}: {error}") from None
        places: dict[str, Place] = {}
        for index, role in enumerate(roles):
            role, _, position = role.partition("@")
            role, _, names = role.partition(":")
            places[role] = Place(tuple((names or role).split("|")), int(position) if position else index)
        for op in ops.split():
            if op in found:
                raise ValueError(f"{op!r} is on two lines: {found[op].formula} and {formula}")
            found[op] = Alias(formula, places)
    return found
