"""Compiled autograd: the backward pass of a whole step in one graph, with the backward graphs compiled before put in
operator by operator. They are called there as they were, with the number of their graph before: `aot3_mul_4`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from opscope.readers.torch.names import base_name, op_name

from .printed import Node, Printed
from .runs import Path

if TYPE_CHECKING:
    from .stages import Made

_INLINED = re.compile(r"^aot(\d{1,9})_(\w+)$")
_MOST = 20_000  # operators that are compared


class Origin(NamedTuple):
    """An operator of a backward graph."""

    made: Made
    name: str
    owner: Path


def inlined(graph: Printed, backward: Mapping[str, Made]) -> dict[str, Origin]:
    """By name of an operator: what it was in its own graph. It gets the line that it had there."""
    found: dict[str, Origin] = {}
    nodes = {number: {node.name: node for node in made.printed.nodes} for number, made in backward.items()}
    for node in graph.nodes:
        named = _INLINED.match(node.name)
        made = backward.get(named[1]) if named else None
        if named is None or made is None or named[2] not in nodes[named[1]]:
            continue
        node.place = nodes[named[1]][named[2]].place or node.place
        if owner := made.owners.get(named[2]):
            found[node.name] = Origin(made, named[2], owner)
    return found


def links(origins: Mapping[str, Origin], nodes: Mapping[str, int]) -> dict[int, list[tuple[int, int]]]:
    """By stage of a backward graph: which of its operators became which."""
    found: dict[int, list[tuple[int, int]]] = {}
    for name, origin in origins.items():
        if name in nodes and origin.name in origin.made.built.nodes:
            found.setdefault(origin.made.index, []).append((origin.made.built.nodes[origin.name], nodes[name]))
    return found


def same(above: Printed, below: Printed) -> Iterable[tuple[Node, Node]]:
    """The operators of two graphs of which the second is the first run once more: they are called anew, but come in the
    same order."""
    new, old = below.nodes[:_MOST], above.nodes[:_MOST]
    matcher = SequenceMatcher(None, [_key(node) for node in old], [_key(node) for node in new], autojunk=False)
    for block in matcher.get_matching_blocks():
        for i in range(block.size):
            yield new[block.b + i], old[block.a + i]


def _key(node: Node) -> tuple[str, str]:
    return base_name(op_name(node.target)).replace("reshape", "view"), node.annotation.partition("]")[0]
