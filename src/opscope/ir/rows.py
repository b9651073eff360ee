"""A graph read row by row, for what prints or writes every operator.

Handles (`Node`, `Value`) are for a few operators; a million times they take ten times as long as this: columns as
memoryviews, which give Python numbers at once and copy nothing, and what many nodes share spelled once.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from .columns import view
from .enumerations import PHASES, ROLES
from .graph import Graph
from .places import users_frames
from .pools import Frame

_KEPT = 1 << 14  # spelled texts that are kept of each kind


class Rows:
    """The columns of a graph by name, and what their numbers mean. `path`, `frame` and `type_text` take ids."""

    def __init__(self, graph: Graph) -> None:
        pools = graph.pools
        self.graph, self.strings = graph, pools.strings.rows()
        self.op, self.name = view(graph.node_op), view(graph.node_name)
        self.scope, self.stack = view(graph.node_scope), view(graph.node_stack)
        self.attrs, self._phase = view(graph.node_attrs), view(graph.node_phase)
        self._use_start, self._use_value = view(graph.use_start), view(graph.use_value)
        self._use_arg = view(graph.use_arg)
        self._made_start, self._made = map(view, graph.node_outputs)
        self.value_name, self.value_type = view(graph.value_name), view(graph.value_type)
        self.producer, self.slot = view(graph.value_producer), view(graph.value_slot)
        self.storage, self._role = view(graph.value_storage), view(graph.value_role)
        self.path = lru_cache(_KEPT)(pools.scope_path)

        @lru_cache(_KEPT)
        def type_text(type_: int) -> str:
            return str(pools.types[type_])

        self.type_text = type_text

    def phase(self, node: int) -> str:
        return PHASES[self._phase[node]]

    def role(self, value: int) -> str:
        return ROLES[self._role[value]]

    def frame(self, node: int) -> Frame | None:
        """The line that ran it, which may be in the framework."""
        return self.graph.pools.innermost(self.stack[node])

    def users_frame(self, node: int) -> Frame | None:
        """The user's line that it comes from."""
        return self._users_frames[self.stack[node]]

    @cached_property
    def _users_frames(self) -> list[Frame | None]:
        return users_frames(self.graph.pools)

    def used(self, node: int) -> list[int]:
        """The values that it reads, −1 for none."""
        return self._use_value[self._use_start[node] : self._use_start[node + 1]].tolist()

    def arguments(self, node: int) -> list[int]:
        """What these are called, as strings' ids."""
        return self._use_arg[self._use_start[node] : self._use_start[node + 1]].tolist()

    def made(self, node: int) -> list[int]:
        """The values that it makes, by output slot."""
        return self._made[self._made_start[node] : self._made_start[node + 1]].tolist()
