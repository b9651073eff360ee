"""Watches backward passes as they happen, and keeps what the last few of them showed: for who asks when they are over,
as the drop-in for paddleviz does."""

from __future__ import annotations

import importlib.util
from collections import deque
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from opscope.readers.paddle.backward import Edge, GradNode

from . import private
from .passes import Pass

_OF_GRADIENT = tuple(field.name for field in fields(Edge) if field.name != "target")
_KEPT = 4  # passes: their nodes are held, so that addresses stay theirs


class _Seen(NamedTuple):
    watched: Pass
    nodes: list[Any]


_seen: deque[_Seen] = deque(maxlen=_KEPT)
_replaced: list[tuple[Any, str, Any, Any]] = []
_others: set[int] = set()  # nodes that somebody else has a hook on; a node that is gone may leave its address here


def on() -> None:
    """Watch every backward pass from now on. Nothing happens where Paddle is not installed."""
    if _replaced or importlib.util.find_spec("paddle") is None:
        return
    engine = private.engine()
    private.counts_one_too_many()
    for name in ("run_backward", "run_partial_grad"):
        original = getattr(engine, name)
        stand_in = _stand_in(original)
        _replaced.append((engine, name, original, stand_in))
        setattr(engine, name, stand_in)
    _notice_others()


def _notice_others() -> None:
    kind = private.node_type()
    original = kind._register_post_hook

    def stand_in(node: Any, hook: Any) -> Any:
        _others.add(int(node.node_ptr()))
        return original(node, hook)

    _replaced.append((kind, "_register_post_hook", original, stand_in))
    kind._register_post_hook = stand_in


def _register(node: Any, hook: Any) -> Any:
    """Without being noticed as somebody else."""
    for kind, name, original, _ in _replaced:
        if name == "_register_post_hook" and isinstance(node, kind):
            return original(node, hook)
    return node._register_post_hook(hook)


def off() -> None:
    """Watch no longer, and forget what was seen."""
    while _replaced:
        engine, name, original, stand_in = _replaced.pop()
        if getattr(engine, name) is stand_in:
            setattr(engine, name, original)
    _seen.clear()
    _others.clear()


def _stand_in(run: Any) -> Any:
    def stand_in(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if not _replaced:
            return run(tensors, *args, **kwargs)
        # For as long as a training runs: so nothing is handed back where nobody else has changed it.
        watched = Pass([tensor for _, tensor in private.tensors_in(tensors)], others=_others)
        watched.register = _register
        nodes = watched.held()
        watched.watch()
        failed = True
        try:
            result = run(tensors, *args, **kwargs)
            failed = False
            return result
        finally:
            watched.close(failed)
            _seen.append(_Seen(watched, nodes))

    return stand_in


def recall(nodes: Sequence[GradNode]) -> None:
    """Fill in what was seen of the gradients between these nodes."""
    for node in nodes:
        seen = _edges_of(int(node.ptr, 16))
        if seen is not None and len(seen) == len(node.edges):
            for edge, known in zip(node.edges, seen, strict=True):
                if known.evidence and not edge.evidence:
                    for name in _OF_GRADIENT:
                        setattr(edge, name, getattr(known, name))


def _edges_of(pointer: int) -> list[Edge] | None:
    """What the newest pass that ran this node showed of its edges."""
    for seen in reversed(_seen):
        i = seen.watched.index.get(pointer)
        if i is not None and any(edge.evidence for edge in seen.watched.nodes[i].edges):
            return seen.watched.nodes[i].edges
    return None


def any_pass() -> bool:
    return bool(_seen)
