"""The phase of every operator: init, forward, backward, optimizer or other."""

from __future__ import annotations

from collections.abc import Sequence

from .dump import Dump, Op
from .places import Place


def phases(dump: Dump, order: Sequence[Op], places: dict[int, Place]) -> dict[int, str]:
    """By stack where the stack tells; operators outside every module by what they read.

    A loss is written outside the modules, and so are a metric, the clipping of gradients and the input
    data. What a gradient was taken of is forward. What reads results of the forward pass, and nothing
    that comes after it, is forward. The rest is other.
    """
    made_by = {out: op.id for op in order for out in op.outputs}
    differentiated = {op.grad_of for op in order if op.grad_of is not None}
    found: dict[int, str] = {}
    late: set[int] = set()  # what depends on a gradient or an update
    stepping: set[Place] = set()
    for op in order:
        place = places[op.id]
        sources = [made_by[i] for i in op.inputs if i in made_by]
        if op.grad_of is not None or place.order:
            phase = "backward"
        elif place.is_init:
            phase = "init"
            if place.in_optimizer and any(s in late for s in sources):
                stepping.add(place)
                late.add(op.id)
        elif place.in_optimizer:
            phase = "optimizer"
        elif place.in_module or op.id in differentiated:
            phase = "forward"
        elif any(s in late for s in sources):
            phase = "other"
        elif any(found.get(s) == "forward" for s in sources):
            phase = "forward"
        else:
            phase = "other"
        found[op.id] = phase
        if phase in ("backward", "optimizer") or (phase == "other" and any(s in late for s in sources)):
            late.add(op.id)
    # In a script without functions Jittor calls a step of the optimizer `Adam_init` too. All operators of one
    # line belong together: where some of them read gradients, it is the line of the step.
    found.update((op.id, "optimizer") for op in order if places[op.id] in stepping and found[op.id] == "init")
    for op_id in _own_optimizers(dump, order, places, found, made_by):
        found[op_id] = "optimizer"
    return found


def _own_optimizers(
    dump: Dump, order: Sequence[Op], places: dict[int, Place], found: dict[int, str], made_by: dict[int, int]
) -> list[int]:
    """Operators of an optimizer that jittor.optim does not have: its outermost scope reads gradients and
    makes a variable that has the name of one it reads."""
    by_scope: dict[tuple[tuple[str, str], ...], list[Op]] = {}
    for op in order:
        if found[op.id] == "forward" and places[op.id].level == 2 and len(places[op.id].modules) == 1:
            by_scope.setdefault(places[op.id].modules, []).append(op)
    result: list[int] = []
    for ops in by_scope.values():
        reads_gradients = any(found.get(made_by.get(i, -1)) == "backward" for op in ops for i in op.inputs)
        if reads_gradients and any(updated_from(dump, op) for op in ops):
            result += [op.id for op in ops]
    return result


def updated_from(dump: Dump, op: Op) -> list[tuple[int, int]]:
    """(new, old) for each named variable that the operator makes out of one with the same name."""
    pairs: list[tuple[int, int]] = []
    for out in op.outputs:
        name = dump.vars[out].name if out in dump.vars else ""
        old = [i for i in op.inputs if name and i in dump.vars and dump.vars[i].name == name]
        if old:
            pairs.append((out, old[0]))
    return pairs
