"""Who an operator communicates with: its group of ranks, as every process of a run would write it.

Operators are given a group as an object, or by a name that torch counts up; neither means anything elsewhere. What is
recorded instead is what the program calls the group, its size, its ranks, and which of them this one is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from opscope.ir.attributes import GROUP
from opscope.ir.ranks import ranks_text
from opscope.tracers.torch import private

from .schemas import GROUPS, Schema

_REDUCES = ("reduce_op", "reduceOp")
_NO_NAMES = ("", "undefined")
_MESH = "mesh_"  # how DeviceMesh calls the groups of a dimension


class Peers:
    """The groups of one recording. They are read when they are used: a script may end them before it ends."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._known: dict[str, dict[str, Any]] = {}
        self.rank: tuple[int, int] | None = None  # which of how many this is

    @property
    def groups(self) -> list[tuple[str, str]]:
        """Dimension and ranks of every group that was met."""
        return list(dict.fromkeys((one["dimension"], one["ranks"]) for one in self._known.values()))

    def look(self) -> None:
        """Take note of all groups that there are now."""
        for group in private.process_groups(self._torch):
            self._note(group)

    def named(self, schema: Schema, args: Any, kwargs: Any, constants: list[Any]) -> list[Any]:
        """The arguments of an operator that are not tensors, with its group in words."""
        told = [constants[0]]
        for name, value in zip(constants[1::2], constants[2::2], strict=True):
            if name in GROUPS:
                continue
            if name in _REDUCES:
                value = private.reduction(value)
                if value is None:
                    continue
            told += [name, value]
        name = next(name for name in GROUPS if name in schema.by_name)
        group = self._group(schema.argument(name, args, kwargs))
        return [*told, GROUP, group] if group is not None else told

    def _group(self, given: Any) -> dict[str, Any] | None:
        group = private.process_group(self._torch, given)
        if group is None:
            return None
        if str(group.group_name) not in self._known:
            self.look()
        return self._note(group)

    def _note(self, group: Any) -> dict[str, Any]:
        name = str(group.group_name)
        if name not in self._known:
            if self.rank is None:
                self.rank = private.rank_and_world(self._torch)
            self._known[name] = self._described(group)
        return self._known[name]

    def _described(self, group: Any) -> dict[str, Any]:
        ranks: list[int] = list(self._torch.distributed.get_process_group_ranks(group))
        called = str(getattr(group, "group_desc", "") or "")
        if called == "default_pg":
            called = "world"
        same = next((one["dimension"] for one in self._known.values() if one["ranks"] == ranks_text(ranks)), "")
        if called in _NO_NAMES:
            called = same or _by_stride(ranks)
        return {
            "dimension": called.removeprefix(_MESH),
            "size": len(ranks),
            "index": int(group.rank()),
            "ranks": ranks_text(ranks),
        }


def _by_stride(ranks: list[int]) -> str:
    """A name for a group that has none: how far its ranks are apart, which is the same for all of its kind."""
    if len(ranks) < 2:
        return "alone"
    apart = {after - before for before, after in pairwise(ranks)}
    return f"every {min(apart)}" if apart != {1} else f"next {len(ranks)}"
