"""The search language, parsed. docs/find.md says it in words; viewer/src/find reads the same language.

op:conv scope:layer4 -phase:backward        matmul -> * -> softmax
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from opscope.errors import OpscopeError
from opscope.ir.facts import VALUE_FIGURES

FIELDS = (
    "op", "kind", "name", "scope", "class", "phase", "role", "dtype", "shape", "attr", "file", "line", "kernel",
    "id", "time", *VALUE_FIGURES,
)  # fmt: skip
MOST_STEPS = 16

Kind: TypeAlias = Literal["word", "quoted", "regex"]


class BadQuery(OpscopeError):
    """A query that cannot be read; says where."""


@dataclass(frozen=True)
class Term:
    """One condition on a node. `field` is "" for a plain word."""

    field: str
    text: str
    kind: Kind
    negated: bool

    def __str__(self) -> str:
        text = {"word": self.text, "quoted": f'"{self.text}"', "regex": f"/{self.text}/"}[self.kind]
        return f"{'-' if self.negated else ''}{self.field + ':' if self.field else ''}{text}"


@dataclass(frozen=True)
class Step:
    """One node of a path, which all terms must hold for; with `any_number`, 0 to 10 nodes of any kind."""

    terms: tuple[Term, ...]
    any_number: bool = False


def parse(query: str, own: Collection[str] = ()) -> list[Step]:
    """The steps of a query: one, unless it is a path. `own`: columns of the user's own, which are fields too.

    >>> [str(term) for term in parse('op:conv -"a b"')[0].terms]
    ['op:conv', '-"a b"']
    """
    if not query.strip():
        raise BadQuery("the query is empty: type a word, such as conv, or a field, such as op:conv")
    parts: list[list[Term]] = [[]]
    at = 0
    while at < len(query):
        if query[at].isspace():
            at += 1
        elif query.startswith("->", at):
            parts.append([])
            at += 2
        else:
            term, at = _term(query, at, own)
            parts[-1].append(term)
    if len(parts) > MOST_STEPS:
        raise BadQuery(f"the path has {len(parts)} steps; {MOST_STEPS} are the most")
    return [_step(terms) for terms in parts]


def _step(terms: list[Term]) -> Step:
    if not terms:
        raise BadQuery("a step of the path is empty: there must be something on both sides of ->")
    stars = [term for term in terms if term.kind == "word" and not term.field and term.text in ("*", "**")]
    if stars and (len(terms) > 1 or stars[0].negated):
        several = "s" if stars[0].text == "**" else ""
        raise BadQuery(f"{stars[0].text} cannot be combined: it means any node{several}")
    if stars:
        return Step((), any_number=stars[0].text == "**")
    return Step(tuple(terms))


def _term(query: str, at: int, own: Collection[str]) -> tuple[Term, int]:
    start = at
    negated = query[at] == "-"
    at += negated
    field = ""
    named = re.compile(r"([^\W\d]\w*):(?!:)").match(query, at)
    mine = next((name for name in own if named is not None and name.lower() == named[1].lower()), None)
    if mine is None:
        named = re.compile(r"([A-Za-z]+):(?!:)").match(query, at)
    if mine is not None and named is not None:
        field, at = mine, named.end()
    elif named is not None:
        field, at = named[1].lower(), named.end()
        if field not in FIELDS:
            raise BadQuery(
                f"no field {named[1]} (there are: {', '.join([*FIELDS, *own])}); "
                "to look for the text itself, put it in quotes"
            )
    text, kind, at = _text(query, at)
    if not text:
        raise BadQuery(f"{query[start:at]} has nothing to look for")
    if kind != "word" and at < len(query) and not query[at].isspace() and not query.startswith("->", at):
        closing = "/" if kind == "regex" else '"'
        raise BadQuery(
            f"{query[at : at + 20]} comes right after a closing {closing}: put a space between, or all of it in quotes"
        )
    return Term(field, text, kind, negated), at


def _text(query: str, at: int) -> tuple[str, Kind, int]:
    """A word, "quoted text" or /regex/ that starts at `at`, and where it ends."""
    if query.startswith('"', at):
        found = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL).match(query, at)
        if found is None:
            raise BadQuery(f"the quote at {query[at : at + 20]} is not closed")
        return re.sub(r'\\(["\\])', r"\1", found[1]), "quoted", found.end()
    if query.startswith("/", at):
        found = re.compile(r"/((?:[^/\\]|\\.)*)/", re.DOTALL).match(query, at)
        if found is None:
            raise BadQuery(f"the regex at {query[at : at + 20]} has no closing /; a path goes in quotes")
        return found[1], "regex", found.end()
    found = re.compile(r"(?:(?!->)\S)*").match(query, at)
    assert found is not None
    return found[0], "word", found.end()
