"""What is different about two operators that belong together, in words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from opscope.ir import Graph, Node, Use
from opscope.ops import canonical

from .fingerprints import attributes

_LONGEST = 60
_MISSING = object()


def differences(x: Node, y: Node) -> list[str]:
    """Operator, attributes, types of outputs and of weights, phase, and what is inside."""
    found: list[str] = []
    if x.op != y.op:
        found.append(f"operator: {x.op} → {y.op}")
    found += _attributes(attributes(x.graph, x.index), attributes(y.graph, y.index))
    found += _outputs(x, y)
    found += _weights(x.uses, y.uses)
    if x.phase != y.phase:
        found.append(f"phase: {x.phase} → {y.phase}")
    return found


def translated(x: Node, y: Node, framework_x: str, framework_y: str, *, turned: bool) -> list[str]:
    """The same of operators of two frameworks: another kind of operation, and other types of what it makes."""
    found: list[str] = []
    if canonical(framework_x, x.op) != canonical(framework_y, y.op):
        found.append(f"operator: {y.op} → {x.op}" if turned else f"operator: {x.op} → {y.op}")
    return found + (_outputs(y, x) if turned else _outputs(x, y))


def _attributes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name, _MISSING), after.get(name, _MISSING)
        if old != new:
            found.append(f"{name}: {_text(old)} → {_text(new)}")
    return found


def _text(value: Any) -> str:
    if value is _MISSING:
        return "none"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _outputs(x: Node, y: Node) -> list[str]:
    made_x, made_y = [str(v.type) for v in x.outputs], [str(v.type) for v in y.outputs]
    if len(made_x) != len(made_y):
        return [f"outputs: {len(made_x)} → {len(made_y)}"]
    return [
        f"{'output' if len(made_x) == 1 else f'output {k}'}: {old} → {new}"
        for k, (old, new) in enumerate(zip(made_x, made_y, strict=True))
        if old != new
    ]


def _weights(before: Sequence[Use], after: Sequence[Use]) -> list[str]:
    """Types of what no node makes: inputs, weights, constants. Other types change where they are made."""
    if [use.arg for use in before] != [use.arg for use in after]:
        return [f"arguments: {_arguments(before)} → {_arguments(after)}"]
    found: list[str] = []
    for old, new in zip(before, after, strict=True):
        if old.value is None or new.value is None:
            if old.value is not new.value:
                found.append(f"argument {old.arg}: {_used(old)} → {_used(new)}")
        elif old.value.producer is None and new.value.producer is None:
            types = str(old.value.type), str(new.value.type)
            if types[0] != types[1]:
                found.append(f"{_called(old)}: {types[0]} → {types[1]}")
            elif old.value.role != new.value.role:
                found.append(f"{_called(old)}: {old.value.role} → {new.value.role}")
    return found


def _arguments(uses: Sequence[Use]) -> str:
    names = ", ".join(use.arg for use in uses[:8])
    return f"({names}{', …' if len(uses) > 8 else ''})"


def _called(use: Use) -> str:
    return f"argument {use.arg}" if use.arg.isdigit() else use.arg


def _used(use: Use) -> str:
    return "nothing" if use.value is None else str(use.value.type)


def counted(graph: Graph, nodes: Iterable[int]) -> str:
    """`3 Matmul + 3 Add`, in the order of appearance."""
    counts = Counter(graph.node(node).op for node in nodes)
    return " + ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items())


def listed(graph: Graph, nodes: Iterable[int]) -> str:
    """`Reshape Matmul Add`, as compilers name what they fused."""
    return " ".join(graph.node(node).op for node in nodes)
