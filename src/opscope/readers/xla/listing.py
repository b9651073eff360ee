"""HLO text beside its graph: which line is which operator."""

from __future__ import annotations

import re

from opscope.ir import Graph, Listing
from opscope.readers.source import Source

_INSTRUCTION = re.compile(r"  (?:ROOT )?%?([\w.\-<>:$]+) = ")


def listing(source: Source, graph: Graph) -> Listing:
    """The text, with the lines of the entry computation's instructions."""
    text = source.read().decode("utf-8", "replace")
    strings = graph.pools.strings
    nodes = {strings[int(name)]: i for i, name in enumerate(graph.node_name.tolist())}
    lines: list[tuple[int, int]] = []
    is_entry = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("ENTRY "):
            is_entry = True
        elif line.startswith("}"):
            is_entry = False
        elif is_entry and (found := _INSTRUCTION.match(line)) and found[1] in nodes:
            lines.append((number, nodes[found[1]]))
    return Listing(text, lines)
