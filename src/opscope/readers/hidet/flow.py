"""A flow graph as Hidet's files and objects describe it, before it becomes a Graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from opscope.ir.pools import Dim

# Hidet's two ways of writing: dims as numbers and `fusion=`, or dims as text and `fused_graph=`.
OLD, NEW = "0.2", "0.6"


@dataclass
class Tensor:
    """`key` joins producers and readers: `input:0`, `const:1`, `0_Matmul:0`, or the printed name."""

    key: str
    dtype: str = ""
    shape: tuple[Dim, ...] | None = None
    device: str = ""
    value: str = ""  # of a scalar constant
    digest: str = ""  # of a constant's bytes
    name: str = ""
    role: str = ""


@dataclass
class Operator:
    name: str
    op: str
    inputs: list[str]
    outputs: list[Tensor]
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    printed: list[str] = field(default_factory=list[str])  # attributes as Hidet prints them: `axis=2`
    task: str = ""
    shares: dict[int, int] = field(default_factory=dict[int, int])  # output -> the input whose memory it has
    fused: Flow | None = None
    fused_label: str = "fused"
    scope: int = 0
    stack: int = 0


@dataclass
class Flow:
    inputs: list[Tensor] = field(default_factory=list[Tensor])
    constants: list[Tensor] = field(default_factory=list[Tensor])
    operators: list[Operator] = field(default_factory=list[Operator])
    outputs: list[str] = field(default_factory=list[str])
    dialect: str = NEW
    text: str = ""  # as Hidet itself printed it


def fused_names(operator: Operator) -> list[str]:
    """The operators inside of a fused one, where only their names are given."""
    told = operator.attrs.get("fusion")
    if isinstance(told, str):
        return told.split()
    inside = operator.attrs.get("fused_graph")
    if isinstance(inside, str) and inside.startswith("FlowGraph(") and inside.endswith(")"):
        return [name.strip() for name in inside[len("FlowGraph(") : -1].split(",") if name.strip()]
    return []


def type_text(tensor: Tensor) -> str:
    dims = ", ".join("?" if d is None else str(d) for d in tensor.shape or ())
    return f"{tensor.dtype}[{dims}]{f'[{tensor.device}]' if tensor.device else ''}"


def printed(flow: Flow) -> tuple[str, list[int]]:
    """The graph as Hidet prints it, and the line (from 1) of each operator."""
    names: dict[str, str] = {}
    count = 0

    def name(key: str) -> str:
        nonlocal count
        if key not in names:
            names[key] = f"x_{count}" if count else "x"
            count += 1
        return names[key]

    head = ", ".join(f"{name(tensor.key)}: {type_text(tensor)}" for tensor in flow.inputs)
    for i, tensor in enumerate(flow.constants):
        names[tensor.key] = f"c_{i}" if i else "c"
    lines = [f"Graph({head}){{"]
    for tensor in flow.constants:
        digest = f" # hash: {tensor.digest}" if tensor.digest else ""
        lines.append(f"  {names[tensor.key]} = Constant({type_text(tensor)}){digest}")
    places: list[int] = []
    for operator in flow.operators:
        made = ", ".join(f"{name(tensor.key)}: {type_text(tensor)}" for tensor in operator.outputs)
        star = "*" if flow.dialect == OLD and "fusion" in operator.attrs else ""
        items = ", ".join([*map(name, operator.inputs), *operator.printed])
        comment = f"# share_map={operator.shares}" if operator.shares else ""
        lines.append(f"  {made} = {operator.op}{star}({items})  {comment}")
        places.append(len(lines))
    lines += [f"  return {', '.join(map(name, flow.outputs))}", "}"]
    return "\n".join(lines), places


def line_places(text: str, operators: Sequence[Operator]) -> list[int]:
    """The line of each operator in a text of Hidet's own: operators are in order, one on a line."""
    places: list[int] = []
    wanted = iter(operators)
    operator = next(wanted, None)
    for number, line in enumerate(text.splitlines(), start=1):
        if operator is None:
            break
        _, equals, call = line.partition(" = ")
        if equals and call.startswith((f"{operator.op}(", f"{operator.op}*(")):
            places.append(number)
            operator = next(wanted, None)
    return places if operator is None else []
