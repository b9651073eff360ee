"""Graphs and their facts with the pools of another capture, so that several captures can be one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from .capture import Table
from .columns import Int32, frozen
from .graph import Body, Graph
from .pools import Pools, Scope, Stack
from .relations import Groups

Row = TypeVar("Row", Scope, Stack)


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

    def table(self, table: Table, stage: int) -> Table:
        """A table of one of these graphs, which is `stage` of the other capture."""
        moved = {"scope": self._scopes, "op": self._strings}.get(table.by)
        return replace(table, stage=stage, index=table.index if moved is None else _taken(moved, table.index))

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
    """New ids of rows that name their parent, which comes before them; the first is the root of both."""
    ids = np.zeros(len(rows), dtype=np.int32)
    for number, row in enumerate(rows[1:], start=1):
        ids[number] = add(row, int(ids[row.parent]))
    return frozen(ids)
