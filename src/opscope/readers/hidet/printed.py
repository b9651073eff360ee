"""The text that `print(graph)` gives, in both dialects:

Graph(x: float32[1, 128, 768], x_1: int32[1, 128]){
  c = Constant(float32[768, 768])
  x_2: float32[1, 128, 768] = Matmul(x, c)
  return x_2
}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opscope.errors import BadInput

from .attributes import dimension, parsed, split
from .flow import NEW, OLD, Flow, Operator, Tensor

# The first line of a graph. A logger may have written something in front of it.
HEAD = re.compile(r"\s*(?:\S.*?[\s:>|\]])?(?P<graph>Graph\((?P<inputs>.*)\)\s*\{)\s*$")
_CONSTANT = re.compile(r"(\w+) = Constant\((.*?)\)\s*(?:#\s*hash:\s*(\w+))?\s*$")
_OPERATOR = re.compile(r"(\w+\s*:.*?) = (\w+)(\*?)\((.*)\)\s*(?:#\s*(.*?))?\s*$")
_TYPE = re.compile(r"(\w+)\[([^\[\]]*)\](?:\[(\w+)\])?$")
_SHARES = re.compile(r"share_map=\{([^}]*)\}")
_ATTRIBUTE = re.compile(r"(\w+)=(.*)$", re.DOTALL)


def parse(text: str) -> Flow:
    """The first graph in a text; BadInput says which line is not understood."""
    return parse_all(text.splitlines(), most=1)[0][0]


def parse_all(lines: Iterable[str], most: int = 1000) -> tuple[list[Flow], list[str]]:
    """Every graph in a text, line by line: what a script printed may hold several, and anything else around them. And
    why others could not be read; if there is no graph but those, it is an error."""
    found: list[Flow] = []
    problems: list[str] = []
    numbered = enumerate((line.rstrip("\r\n") for line in lines), start=1)
    head: tuple[int, str] | None = None
    while len(found) < most:
        if head is None:
            head = next((entry for entry in numbered if HEAD.match(entry[1])), None)
        if head is None:
            break
        kept = [head]
        try:
            found.append(_graph(kept, numbered))
            head = None
        except BadInput as error:
            problems.append(str(error))
            head = kept[-1] if len(kept) > 1 and HEAD.match(kept[-1][1]) else None
    if not found:
        raise BadInput(problems[0] if problems else "no line begins a graph with `Graph(…){`")
    return found, problems


def _graph(kept: list[tuple[int, str]], coming: Iterator[tuple[int, str]]) -> Flow:
    """The graph that begins on the line that is kept; the others are kept too as they come."""
    number, first = kept[0]
    head = HEAD.match(first)
    assert head is not None
    flow = Flow(inputs=[_tensor(item, number) for item in split(head["inputs"])])
    for entry in coming:
        kept.append(entry)
        number, line = entry[0], entry[1].strip()
        if line == "}":
            flow.dialect = OLD if _is_old(flow) else NEW
            flow.text = _text(first, head.start("graph"), [text for _, text in kept[1:]])
            return flow
        if line.startswith("return"):
            flow.outputs = split(line.removeprefix("return"))
        elif line:
            _line(flow, line, number)
    raise BadInput("the graph has no end: `}` is missing; the text may have been cut off")


def _text(first: str, start: int, rest: list[str]) -> str:
    """As Hidet printed it: without what stands in front of the first line, and as far to the left as the last."""
    margin = len(rest[-1]) - len(rest[-1].lstrip())
    return "\n".join([first[start:], *(line[min(margin, len(line) - len(line.lstrip())) :] for line in rest)])


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
