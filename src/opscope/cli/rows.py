"""Rows as JSON, printed as they are made: as `json.dumps(…, indent=2)` prints them, for any number of them.

Python's own writer of indented JSON is slow and keeps all of the text. The one in C cannot indent, but takes any text
between two entries of an object: a row without objects in it is written by it alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import click

from .streams import takes_every_text

_BLOCK = 1000  # rows


def print_rows(rows: Iterable[dict[str, Any]], margin: str = "") -> None:
    """A list of objects, without a line's end behind it. `margin` stands before the line that it begins in."""
    source = map(_Indented(margin + "  ").text, rows)
    block = list(islice(source, _BLOCK))
    if not block:
        click.echo("[]", nl=False)
        return
    click.echo(f"[\n{margin}  ", nl=False)
    between = f",\n{margin}  "
    while block:
        following = list(islice(source, _BLOCK))
        click.echo(between.join(block) + (between if following else ""), nl=False)
        block = following
    click.echo(f"\n{margin}]", nl=False)


def print_lines(lines: Iterator[str]) -> None:
    """Lines of text, many at a time."""
    while block := list(islice(lines, _BLOCK)):
        click.echo("\n".join(block))


class _Indented:
    """Objects and what is in them, as `json.dumps` with `indent=2` has them inside of something that is indented so."""

    def __init__(self, margin: str) -> None:
        self._margin = margin
        self._is_ascii = not takes_every_text()
        self._plain = json.JSONEncoder(ensure_ascii=self._is_ascii).encode
        self._flat = lru_cache(self._flat_encoder)

    def text(self, value: Any) -> str:
        return self._text(value, self._margin)

    def _text(self, value: Any, margin: str) -> str:
        inner = margin + "  "
        if isinstance(value, dict) and value:
            return (
                "{\n"
                + inner
                + f",\n{inner}".join(self._entries(cast("dict[str, Any]", value), inner))
                + f"\n{margin}}}"
            )
        if isinstance(value, list | tuple) and value:
            lines = [self._text(item, inner) for item in cast("Sequence[Any]", value)]
            return "[\n" + inner + f",\n{inner}".join(lines) + f"\n{margin}]"
        return self._plain(cast("object", value))

    def _entries(self, entries: dict[str, Any], margin: str) -> Iterator[str]:
        """The entries of an object. Those that hold nothing else are left to the encoder in C, many at a time."""
        flat = self._flat(margin)
        if _HOLDING.isdisjoint(map(type, entries.values())):
            yield flat(entries)[1:-1]
            return
        plain: dict[str, Any] = {}
        for key, item in entries.items():
            if type(item) not in _HOLDING:
                plain[key] = item
                continue
            if plain:
                yield flat(plain)[1:-1]
                plain = {}
            yield f"{self._plain(key)}: {self._text(item, margin)}"
        if plain:
            yield flat(plain)[1:-1]

    def _flat_encoder(self, margin: str) -> Callable[[Any], str]:
        return json.JSONEncoder(ensure_ascii=self._is_ascii, separators=(f",\n{margin}", ": ")).encode


_HOLDING = frozenset((dict, list, tuple))
