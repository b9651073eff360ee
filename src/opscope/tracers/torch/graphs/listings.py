"""The framework's own texts beside a graph: table, generated code and IR, and which line belongs to which node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opscope.ir import Listing
from opscope.ir.widths import left, width

from .fxgraph import target_text

_MADE = re.compile(r"^\s*(\w+)(?:\s*:\s*[^=]+?)? = ")
_PRINTED = re.compile(r"^\s*%(\w+) ")
_LONGEST_CELL = 120


def of_fx(graph: Any, code: str, native: str, nodes: Mapping[str, int]) -> dict[str, Listing]:
    """The three listings of an fx.Graph. `nodes` says which node each fx name is."""
    code = code.strip()
    rows = [(node.op, node.name, target_text(node), str(node.args), str(node.kwargs)) for node in graph.nodes]
    lines = [(at, nodes[node.name]) for at, node in enumerate(graph.nodes, start=3) if node.name in nodes]
    return {
        "table": Listing(aligned(("opcode", "name", "target", "args", "kwargs"), rows), lines),
        "code": Listing(code, _lines(code, _MADE, nodes)),
        "native": Listing(native, _lines(native, _MADE, nodes) or _lines(native, _PRINTED, nodes)),
    }


def _lines(text: str, made: re.Pattern[str], nodes: Mapping[str, int]) -> list[tuple[int, int]]:
    """Lines that assign a name. Graphs inside come after the outer one and may use its names again: the first
    line of a name counts."""
    found: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = made.match(line)
        if match and match[1] in nodes:
            found.setdefault(match[1], (number, nodes[match[1]]))
    return list(found.values())


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns of text as torch's print_tabular has them, which needs a package that few have."""
    cells = [[_cell(text) for text in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(header, *cells, strict=True)]
    table = [header, ["-" * width for width in widths], *cells]
    return "\n".join("  ".join(map(left, row, widths)).rstrip() for row in table)


def _cell(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
