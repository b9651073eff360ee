"""What each result of a kernel depends on, by the text of its code: which of its inputs are read for it, and how.

Inductor's C++ and Triton are one assignment a line. Nothing is executed: names are followed from loads to stores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(
    r"^(?:[\w:<>,&*\[\]() ]+? )?(\w+)(?:\[[^\]=]*(?:\[[^\]]*\][^\]=]*)*\])? (?:\+|-|\*|\|)?= (.+?);?$"
)
_STORED = re.compile(r"^(\w+)\.store\((\w+)\b(.*)$")
_TL_STORED = re.compile(r"^tl\.(?:store|atomic_\w+)\((\w+)\b(.*)$")
_ATOMIC = re.compile(r"^atomic_add\w*(?:<.*?>)?\(&?(\w+)\b(.*)$")
_MOVED = re.compile(r"^transpose_mxn<.*?(?:true|false)>\((\w+)\b(.*)$")
_COPIED = re.compile(r"^(?:std::memcpy|at::vec::convert\w*(?:<.*?>)?)\((\w+)\b(.*)$")
_RETURNED = re.compile(r"^return (.+?);?$")
_BEGUN = re.compile(r"^auto (\w+) =$")
_DECLARED = re.compile(r"^\w[\w:<>]* (\w+)\[[^\]]*\];$")
_LAMBDA = re.compile(r"= \[[&=\w, ]*\](?:\(.*?\))?\s*(?:->.*)?\{?$")
_FUNCTIONS = re.compile(
    r"\b(exp|exp2|expm1|exp_u20|fexp_u20|tanh|erf|erfc|rsqrt|log|log1p|log2|sin|cos|sqrt|atan2?|pow|sigmoid)\("
)
_KNOWN = {"exp_u20": "exp", "fexp_u20": "exp", "sigmoid": "exp", "rsqrt": "sqrt", "erfc": "erf"}
_REDUCED = re.compile(
    r"\btmp_acc\d|\bwelford|\btl\.(?:sum|reduce)\(|triton_helpers\.(?:max2|min2|any|welford|prod|max_with)"
)
REDUCTIONS = frozenset(
    f"aten.{name}"
    for name in (
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "prod",
        "any",
        "all",
        "argmax",
        "argmin",
        "var_mean",
        "var",
    )
) | {"prims.prepare_softmax_online"}  # fmt: skip
# The same words for operators; one that is in neither says nothing.
FUNCTIONS = {
    "aten.exp": "exp", "aten.sigmoid": "exp", "prims.prepare_softmax_online": "exp", "aten.expm1": "expm1",
    "aten.exp2": "exp2", "aten.tanh": "tanh", "aten.erf": "erf", "aten.rsqrt": "sqrt", "aten.sqrt": "sqrt",
    "aten.log": "log", "aten.log1p": "log1p", "aten.log2": "log2", "aten.sin": "sin", "aten.cos": "cos",
    "aten.atan": "atan", "aten.atan2": "atan2",
}  # fmt: skip
_LONGEST = 400_000  # characters of one kernel


@dataclass
class Made:
    """One result."""

    inputs: set[str] = field(default_factory=set[str])  # parameters
    functions: set[str] = field(default_factory=set[str])

    def take(self, other: Made) -> None:
        self.inputs |= other.inputs
        self.functions |= other.functions


def results(code: str, parameters: list[str]) -> dict[str, Made]:
    """By parameter that is written: what it is made from."""
    return _Reading(parameters).run(code) if len(code) <= _LONGEST else {}


class _Reading:
    def __init__(self, parameters: list[str]) -> None:
        self.parameters = set(parameters)
        self.alias: dict[str, str] = {}
        self.made: dict[str, Made] = {}
        self.stored: dict[str, Made] = {}
        self.open: list[str] = []  # lambdas whose result is on its way
        self.begun = ""  # a name whose value begins in the next line

    def run(self, code: str) -> dict[str, Made]:
        start = max(code.find("{"), 0) if "extern " in code else max(code.rfind("def "), 0)
        for line in code[start:].split("\n"):
            self.line(line.strip())
        return self.stored

    def line(self, text: str) -> None:
        if not text or text.startswith(("//", "#", "for", "if", "}", "{")):
            return
        if found := _BEGUN.match(text):
            self.begun = found[1]
        elif self.begun:
            self.open.append(self.begun)
            self.made[self.begun], self.begun = Made(), ""
        elif found := _DECLARED.match(text):
            self.made.pop(found[1], None)
        elif found := _STORED.match(text):
            self.store(found[2], found[1] + found[3])
        elif found := _TL_STORED.match(text) or _ATOMIC.match(text):
            self.store(found[1], found[2])
        elif found := _MOVED.match(text):
            into = [name for name in _NAME.findall(found[2]) if name in self.parameters or name.startswith("tmp")]
            self.store(into[0] if into else "", found[1])
        elif found := _COPIED.match(text):
            self.store(found[1], found[2])
        elif found := _RETURNED.match(text):
            if self.open:
                self.made.setdefault(self.open.pop(), Made()).take(self.read(found[1]))
        elif found := _ASSIGNED.match(text):
            name, right = found[1], found[2]
            if right in self.parameters and name not in self.parameters:
                self.alias[name] = self.alias.get(right, right)
            elif _LAMBDA.search(text):
                self.open.append(name)
                self.made[name] = Made()
            elif self.canonical(name) in self.parameters and "[" in text[: found.start(2)]:
                self.store(name, right)
            else:
                self.made[name] = self.read(right)

    def canonical(self, name: str) -> str:
        return self.alias.get(name, name)

    def store(self, name: str, text: str) -> None:
        name = self.canonical(name)
        into = self.stored if name in self.parameters else self.made
        into.setdefault(name, Made()).take(self.read(text))

    def read(self, text: str) -> Made:
        found = Made()
        for name in _NAME.findall(text):
            name = self.canonical(name)
            if name in self.parameters:
                if name in self.stored:
                    found.take(self.stored[name])
                else:
                    found.inputs.add(name)
            elif name in self.made:
                found.take(self.made[name])
        names: list[str] = _FUNCTIONS.findall(text)
        found.functions.update(_KNOWN.get(name, name) for name in names)
        if _REDUCED.search(text):
            found.functions.add("reduce")
        return found
