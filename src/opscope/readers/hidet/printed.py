"""The text that `print(graph)` gives, in both dialects:

Graph(x: float32[1, 128, 768], x_1: int32[1, 128]){
  c = Constant(float32[768, 768])
  x_2: float32[1, 128, 768] = Matmul(x, c)
  return x_2
}
"""

from __future__ import annotations

import re

from opscope.errors import BadInput

from .attributes import dimension, parsed, split
from .flow import NEW, OLD, Flow, Operator, Tensor

HEAD = re.compile(r"\s*Graph\((.*)\)\s*\{\s*$")
_CONSTANT = re.compile(r"(\w+) = Constant\((.*?)\)\s*(?:#\s*hash:\s*(\w+))?\s*$")
_OPERATOR = re.compile(r"(\w+\s*:.*?) = (\w+)(\*?)\((.*)\)\s*(?:#\s*(.*?))?\s*$")
_TYPE = re.compile(r"(\w+)\[([^\[\]]*)\](?:\[(\w+)\])?$")
_SHARES = re.compile(r"share_map=\{([^}]*)\}")
_ATTRIBUTE = re.compile(r"(\w+)=(.*)$", re.DOTALL)


def parse(text: str) -> Flow:
    """The first graph in a text; BadInput says which line is not understood."""
    return parse_all(text, most=1)[0]


def parse_all(text: str, most: int = 1000) -> list[Flow]:
    """Every graph in a text: what a script printed may hold several, and other lines between them."""
    lines = text.splitlines()
    found: list[Flow] = []
    at = 0
    while at < len(lines) and len(found) < most:
        head = HEAD.match(lines[at])
        if head:
            flow, end = _graph(lines, at, head[1])
            flow.text = "\n".join(lines[at:end])
            found.append(flow)
            at = end
        else:
            at += 1
    if not found:
        raise BadInput("no line begins a graph with `Graph(…){`")
    return found


def _graph(lines: list[str], start: int, inputs: str) -> tuple[Flow, int]:
    """The graph that begins on a line, and the line behind its end."""
    flow = Flow(inputs=[_tensor(item, start + 1) for item in split(inputs)])
    for number, line in enumerate(lines[start + 1 :], start=start + 2):
        line = line.strip()
        if line == "}":
            flow.dialect = OLD if _is_old(flow) else NEW
            return flow, number
        if line.startswith("return"):
            flow.outputs = split(line.removeprefix("return"))
        elif line:
            _line(flow, line, number)
    raise BadInput("the graph has no end: `}` is missing; the text may have been cut off")


def _line(flow: Flow, line: str, number: int) -> None:
    constant = _CONSTANT.match(line)
    if constant:
        tensor = _typed(constant[1], constant[2], number)
        tensor.digest = constant[3] or ""
        flow.constants.append(tensor)
        return
    call = _OPERATOR.match(line)
    if not call:
        raise BadInput(f"line {number} is neither a constant nor an operator: {line[:60]!r}")
    outputs = [_tensor(item, number) for item in split(call[1])]
    operator = Operator(f"{len(flow.operators)}_{call[2]}", call[2], [], outputs)
    for item in split(call[4]):
        attribute = _ATTRIBUTE.match(item)
        if attribute:
            operator.attrs[attribute[1]] = parsed(attribute[2], quoted=True)
            operator.printed.append(item)
        else:
            operator.inputs.append(item)
    shares = _SHARES.search(call[5] or "")
    if shares:
        operator.shares = shared(shares[1])
    if call[3]:
        operator.attrs.setdefault("fusion", "")
    flow.operators.append(operator)


def shared(text: str) -> dict[int, int]:
    """`0: 0, 1: 2`"""
    found: dict[int, int] = {}
    for item in text.split(","):
        output, colon, source = item.partition(":")
        if colon and output.strip().isdecimal() and source.strip().isdecimal():
            found[int(output.strip()[:9])] = int(source.strip()[:9])
    return found


def _tensor(item: str, number: int) -> Tensor:
    name, colon, type_ = item.partition(":")
    if not colon or not name.strip().isidentifier():
        raise BadInput(f"line {number}: {item[:60]!r} is not `name: type`")
    return _typed(name.strip(), type_.strip(), number)


def _typed(name: str, text: str, number: int) -> Tensor:
    found = _TYPE.match(text)
    if not found:
        raise BadInput(f"line {number}: {text[:60]!r} is not a type such as float32[1, 128]")
    shape = tuple(dimension(item) for item in split(found[2]))
    return Tensor(name, found[1], shape, found[3] or "", name=name)


def _is_old(flow: Flow) -> bool:
    tensors = [*flow.inputs, *flow.constants, *(t for operator in flow.operators for t in operator.outputs)]
    return not any(tensor.device for tensor in tensors)
