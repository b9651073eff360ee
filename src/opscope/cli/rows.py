"""Rows as JSON, printed as they are made: as `json.dumps(…, indent=2)` prints them, for any number of them.

Python's own writer of indented JSON is slow and keeps all of the text; only the outer two levels are indented here by
hand, and rows that hold lists or objects are left to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from json.encoder import encode_basestring, encode_basestring_ascii
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


class _Indented:
    """Objects and what is in them, as `json.dumps` with `indent=2` has them inside of something that is indented so."""

    def __init__(self, margin: str) -> None:
        self._margin = margin
        is_ascii = not takes_every_text()
        self._plain = json.JSONEncoder(ensure_ascii=is_ascii).encode
        self._string = encode_basestring_ascii if is_ascii else encode_basestring
        self._spell: dict[type, Callable[[Any], str]] = {
            str: self._string,
            int: int.__repr__,
            bool: lambda value: "true" if value else "false",
            type(None): lambda value: "null",
        }

    def text(self, value: Any) -> str:
        return self._text(value, self._margin)

    def _text(self, value: Any, margin: str) -> str:
        kind = cast("type[object]", type(value))
        spell = self._spell.get(kind)
        if spell is not None:
            return spell(value)
        inner = margin + "  "
        if isinstance(value, dict) and value:
            entries = cast("dict[str, Any]", value)
            lines = [f"{self._string(key)}: {self._text(item, inner)}" for key, item in entries.items()]
            return "{\n" + inner + f",\n{inner}".join(lines) + f"\n{margin}}}"
        if isinstance(value, list | tuple) and value:
            lines = [self._text(item, inner) for item in cast("Sequence[Any]", value)]
            return "[\n" + inner + f",\n{inner}".join(lines) + f"\n{margin}]"
        return self._plain(cast("object", value))
