"""What ranks send each other. `wire` is what one rank hands to the wire; what it gets is the same over all ranks.

B are the bytes that one rank brings, n the ranks of the group. All-gather: (n − 1) B. Reduce-scatter, all-to-all,
broadcast, reduce, gather, scatter: (n − 1)/n B. All-reduce, which is a reduce-scatter and an all-gather: 2 (n − 1)/n B.
No algorithm sends less, and rings and trees send no more; which of them runs changes the time, not these figures. Of
broadcast, reduce, gather and scatter it is the mean over the ranks: the root sends another share than the others. A
sender sends B, a receiver nothing. Where a capture does not say how large the group is, `wire` is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from opscope.ir.attributes import GROUP
from opscope.ops.call import Call, NotKnown, bits_of, bytes_of, size_of
from opscope.ops.cost import NOT_TOLD, ZERO, Cost
from opscope.ops.kinds import VIEW, kind

# How many times the bytes that a rank brings it sends, as a fraction of whole numbers.
SHARES: Mapping[str, Callable[[int], tuple[int, int]]] = {
    "all_reduce": lambda n: (2 * (n - 1), n),
    "all_gather": lambda n: (n - 1, 1),
    "reduce_scatter": lambda n: (n - 1, n),
    "all_to_all": lambda n: (n - 1, n),
    "broadcast_ranks": lambda n: (n - 1, n),
    "reduce_ranks": lambda n: (n - 1, n),
    "gather_ranks": lambda n: (n - 1, n),
    "scatter_ranks": lambda n: (n - 1, n),
    "send": lambda n: (1, 1),
    "receive": lambda n: (0, 1),
}
_REDUCES = ("all_reduce", "reduce_scatter", "reduce_ranks")


def group_of(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is recorded of the group that an operator communicates in; empty where nothing is."""
    found = attrs.get(GROUP)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _size(call: Call) -> int | None:
    size = group_of(call.attrs).get("size", call.attr("group_size"))
    return size if isinstance(size, int) and size > 0 else None


def _sent(call: Call, kind: str, brought: int) -> int:
    if kind == "receive":
        return 0
    size = 2 if kind == "send" else _size(call)
    if size is None:
        return NOT_TOLD
    times, parts = SHARES[kind](size)
    return -(-brought * times // parts)  # what cannot be divided is padded


def _held(call: Call, role: str) -> list[Any]:
    """A tensor, or those of a list, or of a list of lists."""
    one = call.given(role)
    if one is not None:
        return [one]
    heads = tuple(f"{name}[" for name in call.names(role))
    found = [a.type for a in call.inputs if a.type is not None and a.name.startswith(heads)]
    if not found:
        raise NotKnown(role)
    return found


def _communicates(name: str) -> None:
    @kind(name)
    def rule(call: Call) -> Cost:
        brought = _held(call, "brings")
        moved = sum(map(bytes_of, brought))
        other = sum(map(size_of, brought)) if name in _REDUCES else 0
        got = sum(map(bytes_of, call.listed("gets"))) or bytes_of(call.given("gets"))
        got = got or sum(map(bytes_of, call.outputs[: len(brought)])) or moved
        sent = _by_splits(call, moved) if name == "all_to_all" else None
        return Cost(
            other=other,
            read=0 if name == "receive" else moved,
            written=0 if name == "send" else got,
            how=ZERO if not other else "exact",
            wire=_sent(call, name, moved) if sent is None else sent,
        )


def _by_splits(call: Call, moved: int) -> int | None:
    """Of an all-to-all that says how many rows go to whom: all but those that stay."""
    group, splits = group_of(call.attrs), call.attr("splits")
    own = group.get("index")
    if not isinstance(splits, list | tuple) or not isinstance(own, int):
        return None
    rows = cast("Sequence[Any]", splits)
    if len(rows) != group.get("size") or not all(isinstance(row, int) for row in rows) or not sum(rows):
        return None
    return moved - moved * int(rows[own]) // sum(rows)


for _name in SHARES:
    _communicates(_name)


@kind("send_receive")
def send_receive(call: Call) -> Cost:
    """Several of both at once: `ops` says which is which."""
    tensors, ops = call.listed("tensors"), call.attr("ops", ())
    if not isinstance(ops, list | tuple) or len(cast("Sequence[Any]", ops)) != len(tensors):
        raise NotKnown("which are sent")
    sent = sum(bytes_of(t) for t, op in zip(tensors, cast("Sequence[Any]", ops), strict=True) if "send" in str(op))
    whole = sum(map(bytes_of, tensors))
    return Cost(read=sent, written=whole - sent, how=ZERO, wire=sent)


@kind("barrier")
def barrier(call: Call) -> Cost:
    """Ranks wait for each other: a few bytes, which are not counted."""
    return VIEW


@kind("copy/into")
def copy_into(call: Call) -> Cost:
    """Tensors are copied into others that are given: those are not read."""
    moved = sum(size_of(t) * bits_of(t.dtype) // 8 for t in _held(call, "from"))
    return Cost(read=moved, written=moved, how=ZERO)
