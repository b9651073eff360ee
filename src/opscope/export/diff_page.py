"""What the page needs to show what changed: the changes of every stage, and two captures as the stages of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from opscope.analysis.diff import annotated
from opscope.ir import Capture, Graph, Groups, Origin, Pools, Stage
from opscope.ir.columns import Int32, frozen
from opscope.ir.graph import Body
from opscope.ir.pools import Scope, Stack

Row = TypeVar("Row", Scope, Stack)

# Comparing takes about a second for 100,000 operators: a page of graphs larger than this opens without.
MOST_NODES = 500_000


def with_changes(capture: Capture) -> Capture:
    """The capture with what each stage changed; the one that is given stays as it is."""
    derived = [stage for stage in capture.stages if stage.after is not None]
    if not derived or any(stage.graph.n_nodes > MOST_NODES for stage in capture.stages):
        return capture
    return annotated(replace(capture, stages=list(capture.stages), stage_links=list(capture.stage_links)))


def side_by_side(before: tuple[Capture, Stage, str], after: tuple[Capture, Stage, str]) -> Capture:
    """Two stages, of one capture or of two, as a capture of its own: the second was made from the first.

    Each is given with the name to show. `with_changes` adds what is different.
    """
    both = Capture(pools=Pools())
    for number, (capture, stage, name) in enumerate((before, after)):
        graph = Repooled(stage.graph.pools, both.pools).graph(stage.graph)
        made_from = number - 1 if number else None
        both.stages.append(
            Stage(_other_than(name, both.stages), graph, made_from, None, dict(stage.listings), stage.warnings)
        )
        both.sources.update(capture.sources)
        both.warnings += [text for text in capture.warnings if text not in both.warnings]
    for stage in both.stages:
        stage.listings.pop("changes", None)  # of what it was made from, which is not here
    first, second = before[0].origin, after[0].origin
    alike = first.framework == second.framework and first.version == second.version
    # The page begins such a capture at what is different.
    both.origin = Origin(first.format, first.framework, first.version if alike else "", "compared")
    return both


def _other_than(name: str, stages: list[Stage]) -> str:
    """Listings belong to a stage by its name: no two have the same."""
    return f"{name} (2)" if any(stage.name == name for stage in stages) else name


class Repooled:
    """Graphs with their ids translated from the pools of one capture to those of another."""

    def __init__(self, old: Pools, new: Pools) -> None:
        self.new = new
        self._strings = frozen(new.strings.add_many(old.strings.rows()))
        self._types = frozen(new.types.add_many(old.types.rows()))
        self._attrs = frozen(new.attr_texts.add_many(old.attr_texts.rows()))
        frames = new.frames.add_many(old.frames.rows()).tolist()
        self._scopes = _tree(old.scopes.rows(), lambda row, parent: new.scopes.add(Scope(parent, *row[1:])))
        self._stacks = _tree(old.stacks.rows(), lambda row, parent: new.stacks.add(Stack(parent, frames[row.frame])))
        self._done: dict[int, Graph] = {}

    def graph(self, graph: Graph) -> Graph:
        done = self._done.get(id(graph))
        if done is None:
            done = self._done[id(graph)] = replace(
                graph,
                pools=self.new,
                node_op=_taken(self._strings, graph.node_op),
                node_name=_taken(self._strings, graph.node_name),
                node_scope=_taken(self._scopes, graph.node_scope),
                node_stack=_taken(self._stacks, graph.node_stack),
                node_attrs=_taken(self._attrs, graph.node_attrs),
                use_arg=_taken(self._strings, graph.use_arg),
                value_type=_taken(self._types, graph.value_type),
                value_name=_taken(self._strings, graph.value_name),
                groups=MappingProxyType({kind: self._groups(groups) for kind, groups in graph.groups.items()}),
                bodies=tuple(Body(b.node, b.label, self.graph(b.graph), b.bindings) for b in graph.bodies),
            )
        return done

    def _groups(self, groups: Groups) -> Groups:
        return replace(
            groups,
            name=_taken(self._strings, groups.name),
            code=_taken(self._strings, groups.code),
            attrs=_taken(self._attrs, groups.attrs),
        )


def _taken(ids: Int32, column: Int32) -> Int32:
    return frozen(ids[column])


def _tree(rows: list[Row], add: Callable[[Row, int], int]) -> Int32:
    """New ids of rows that name their parent, which stands before them; the first is the root of both."""
    ids = np.zeros(len(rows), dtype=np.int32)
    for number, row in enumerate(rows[1:], start=1):
        ids[number] = add(row, int(ids[row.parent]))
    return frozen(ids)
