"""What the operators of each framework are called here. One module for each framework: a table, and its spelling.

A line of a table is a kind, where the framework has the arguments that its formula asks for, and the operators:

    matmul  bias:self a:mat1 b:mat2     < addmm
    conv    x:input weight bias         < conv1d conv2d conv3d

`role:name@position`: the name may be left out when it is the role's, the position when it is the place in the line.
A second name follows `|`; a line that is indented goes on with the operators. An operator that is called like its
kind needs no line.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from opscope.ops.call import Place, Places

FRAMEWORKS = ("torch", "jittor", "hidet", "megengine", "paddle")


class Spelled(NamedTuple):
    """An operator's name taken apart: what to look for in the table, best first, and what its spelling says."""

    names: tuple[str, ...]
    in_place: bool = False
    lists: bool = False  # it does the same to every tensor of a list
    has_out: bool = False  # it is given the tensors to write its results to


class Alias(NamedTuple):
    kind: str
    places: Places


@cache
def module_of(framework: str) -> ModuleType | None:
    return import_module(f"{__name__}.{framework}") if framework in FRAMEWORKS else None


@cache
def aliases(framework: str) -> dict[str, Alias]:
    module = module_of(framework)
    return read(module.TABLE) if module is not None else {}


def spelled(framework: str, op: str) -> Spelled:
    module = module_of(framework)
    return module.spelled(op) if module is not None else Spelled((op,))


def read(text: str) -> dict[str, Alias]:
    """The table as it is looked up; an operator on two lines is an error."""
    found: dict[str, Alias] = {}
    whole = re.sub(r"\n +", " ", re.sub(r"#.*", "", text))
    for line in whole.split("\n"):
        if not line.strip():
            continue
        head, _, ops = line.partition("<")
        kind, *roles = head.split()
        places: dict[str, Place] = {}
        for index, role in enumerate(roles):
            role, _, position = role.partition("@")
            role, _, names = role.partition(":")
            places[role] = Place(tuple((names or role).split("|")), int(position) if position else index)
        for op in ops.split():
            if op in found:
                raise ValueError(f"{op!r} stands in two lines: {found[op].kind} and {kind}")
            found[op] = Alias(kind, places)
    return found
