"""What a comparison finds: changes, each with the nodes before and after, and how we know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from opscope.ir import Graph, Node
from opscope.ir.columns import Int32, frozen
from opscope.ir.enumerations import CHANGE_CLASSES


@dataclass(frozen=True)
class Change:
    """One thing that is different. Nodes are numbered as in their graphs."""

    kind: str  # one of CHANGE_CLASSES
    before: tuple[int, ...]
    after: tuple[int, ...]
    evidence: str  # reported | name | structure
    detail: str = ""

    @property
    def sizes(self) -> str:
        return f"{len(self.before)}→{len(self.after)}"


@dataclass(frozen=True, eq=False)
class Diff:
    """Everything about two graphs that is different; every node of both is in a change, or is the same."""

    before: Graph
    after: Graph
    changes: tuple[Change, ...]
    pairs: Int32  # by node before: the node after that is its counterpart, or -1
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])  # modules that are only called otherwise
    evidence: str = "structure"

    @cached_property
    def same(self) -> Int32:
        """Nodes before that have not changed."""
        touched = np.zeros(self.before.n_nodes, dtype=bool)
        for change in self.changes:
            touched[list(change.before)] = True
        return frozen(np.flatnonzero(~touched & (self.pairs >= 0)))

    @property
    def is_empty(self) -> bool:
        return not self.changes

    def summary(self) -> dict[str, int]:
        """How many changes of each class; under `same`, how many nodes."""
        counts = Counter(change.kind for change in self.changes)
        return {kind: len(self.same) if kind == "same" else counts[kind] for kind in CHANGE_CLASSES}

    def links(self) -> tuple[Int32, Int32]:
        """Which nodes became which: counterparts, and all of a change with each other."""
        sources: list[int] = []
        targets: list[int] = []
        grouped = [c for c in self.changes if len(c.before) > 1 or len(c.after) > 1]
        inside = {node for change in grouped for node in change.before}
        for node, other in enumerate(self.pairs.tolist()):
            if other >= 0 and node not in inside:
                sources.append(node)
                targets.append(other)
        singles = [c for c in self.changes if len(c.before) == len(c.after) == 1 and self.pairs[c.before[0]] < 0]
        for change in [*grouped, *singles]:
            sources += [node for node in change.before for _ in change.after]
            targets += [node for _ in change.before for node in change.after]
        return frozen(sources), frozen(targets)

    def to_dict(self) -> dict[str, Any]:
        """For programs; `opscope diff --json` prints it."""
        return {
            "changes": [
                {
                    "class": change.kind,
                    "before": [described(self.before.node(i)) for i in change.before],
                    "after": [described(self.after.node(i)) for i in change.after],
                    "evidence": change.evidence,
                    "detail": change.detail,
                }
                for change in self.changes
            ],
            "summary": self.summary(),
        }

    def __str__(self) -> str:
        found = [f"{count} {kind}" for kind, count in self.summary().items() if count]
        return f"{self.before.n_nodes} → {self.after.n_nodes} operators: {', '.join(found) or 'nothing'}"

    __repr__ = __str__


def described(node: Node) -> dict[str, Any]:
    return {
        "node": node.index,
        "op": node.op,
        "name": node.name,
        "scope": node.path,
        "outputs": [str(value.type) for value in node.outputs],
    }
