"""Which node of the trace is which tensor of the user's.

Jittor's dump leaves out every tensor that was computed before the recording, although operators read it:
the parameters of a model in the middle of its training. Tensor objects do know the number of their node,
but a dump gives those tensors another number and no description. So before the recording begins, each
known tensor is read once by a `clone` (it shares the memory, copies nothing, and is gone at once): the
dump then says under which number it refers to the tensor. The clones are taken out of the dump again.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FrameType
from typing import Any

from opscope.tracers.arguments import tensors_in
from opscope.tracers.frames import tensors_held_in

from .names import Named, Variable, describe, module_variables, optimizer_variables, submodules
from .watch import Rebound

_FINISHED = 1 << 1  # NodeFlags::_finished in Jittor's node.h


def named_tensors(
    jt: Any,
    roots: list[tuple[str, Any]],
    model: Any = None,
    arguments: Iterable[tuple[str, Any]] = (),
    frame: FrameType | None = None,
) -> list[Named]:
    """The tensors of modules and optimizers, of arguments, and of the user's own variables; each once.

    Those of `model`, or of the only module that has any, are named as Jittor names them (`fc1.weight`); where
    there are several models, the others' begin with the name of theirs (`teacher.fc1.weight`).
    """
    found: dict[int, Named] = {}
    held: list[tuple[str, Any, list[Named]]] = []
    for name, module in _outermost([root for root in roots if isinstance(root[1], jt.Module)]):
        tensors = list(module_variables(jt, module))
        if tensors:
            held.append((name, module, tensors))
    for name, module, tensors in held:
        prefix = "" if module is model or len(held) == 1 else f"{name}."
        for named in tensors:
            found.setdefault(id(named.var), named._replace(name=prefix + named.name))
    parameters = {key: named.name for key, named in found.items()}
    for name, root in roots:
        if isinstance(root, jt.optim.Optimizer):
            for named in optimizer_variables(jt, root, name, parameters):
                found.setdefault(id(named.var), named)
    given = [found for name, value in arguments for found in tensors_in(jt.Var, value, name)]
    for name, var in [*given, *(tensors_held_in(frame, jt.Var, depth=2) if frame is not None else ())]:
        found.setdefault(id(var), Named(name, var, "input"))
    return list(found.values())


def _outermost(modules: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    inner = {key for _, module in modules for key, way in submodules(module).items() if way}
    return [(name, module) for name, module in modules if id(module) not in inner]


def by_node(tensors: Iterable[Named]) -> dict[int, Variable]:
    """The number of the node that each tensor is now -> the tensor in words."""
    found: dict[int, Variable] = {}
    for name, var, role in tensors:
        found.setdefault(var.id, describe(var, name, role))
    return found


def probe(jt: Any, tensors: Iterable[Named]) -> tuple[dict[int, int], set[int]]:
    """Number in the dump -> number of the node, for each tensor that is already computed; and the numbers
    of the nodes that the probing itself left in the dump."""
    # A tensor that is still to be computed will be in the dump by itself; reading it would compute it early.
    ready = [named.var for named in tensors if named.var.flags & _FINISHED]
    if not ready:
        return {}, set()
    level: int = jt.flags.trace_py_var
    jt.flags.trace_py_var = 3
    try:
        clones = [var.detach() for var in ready]
        # Not a weak sync: that would also run whatever else is pending.
        jt.sync(clones, False, False)
        read = {clone.id: var.id for clone, var in zip(clones, ready, strict=True)}
        nodes: dict[int, Any] = jt.dump_trace_data()["node_data"]
        del clones
    finally:
        jt.flags.trace_py_var = level
    places: dict[int, int] = {}
    own: set[int] = set()
    for key, node in nodes.items():
        number = read.get(int(node["attrs"]["__id"]))
        if number is not None:
            (operator,) = node["inputs"]
            places[nodes[operator]["inputs"][0]] = number
            own |= {key, operator}
    return places, own


def follow(start: dict[int, Variable], end: dict[int, Variable], rebound: list[Rebound]) -> dict[int, Variable]:
    """What is known of nodes, carried along in-place writes: forwards from what was known at the start, then
    backwards from what was found at the end (a model that was made in between)."""
    known = dict(start)
    for write in rebound:
        if write.before in known:
            known.setdefault(write.after, known[write.before])
    for node, variable in end.items():
        known.setdefault(node, variable)
    for write in reversed(rebound):
        if write.after in known:
            known.setdefault(write.before, known[write.after])
    return known
