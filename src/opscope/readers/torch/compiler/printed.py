"""Graphs as torch prints them (`GraphModule.print_readable`): the source of a module with types and places in comments.

    # File: model.py:7 in forward, code: return x + self.fc(h)
    addmm: "f32[32, 64][64, 1]cpu" = torch.ops.aten.addmm.default(primals_6, view, permute);  primals_6 = None

Every operator is one line, so lines are taken apart one by one. Nothing of the text is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

_CLASS = re.compile(r"^( *)class (\w+)\(")
_FORWARD = re.compile(r"^( *)def forward\(")
_PARAMETER = re.compile(r'\*{0,2}(\w+)(?: ?: ?"([^"]*)")?(?:=[^,]*)?,?\s*(?:#\s*(.*))?')
_PLACE = re.compile(r"^ *#(?P<about> .{1,2000}?)? File: (.+):(\d{1,9}) in ([^,]*), code: ?(.*)$")
_NO_PLACE = re.compile(r"^ *#(?P<about> .{1,2000}?)? No stacktrace found")
# What torch writes before the line: `Annotation: {'module_fqn': 'layers.0'} ac_graph_id: 4 - PREFER_RECOMPUTE File: …`
_POLICY = re.compile(r" (?:ac_graph_id: (\d{1,9})(?: - )?|recompute: )([A-Z_]{1,40})?$")
_MODULE = re.compile(r"'module_fqn': '([\w.]{1,40})'")
_DECLARED = re.compile(r'^ *(\w+): "([^"]*)"(?:  # (.*))?$')
_ASSIGNED = re.compile(r'^ *(\w+)(?:: "([^"]*)")? = (.*)$')
_STORED = re.compile(r'^ *(\w+)\[(.*?)\] = (.*?);  (\w+)(?:: "([^"]*)")? = \1$')
_IN_PLACE = re.compile(r'^ *(\w+) ([-+*/@%&|^]|//|\*\*|<<|>>)= (.*?);  (\w+)(?:: "([^"]*)")? = \1$')
_FORGOTTEN = re.compile(r";  (?:\w+ = )+None$")
_COMMENT = re.compile(r"  # [^'\"]*$")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"^([A-Za-z_][\w.]*)\((.*)\)$", re.DOTALL)
_PICK = re.compile(r"^([A-Za-z_]\w*)\[(.*)\]$", re.DOTALL)
_DOTTED = re.compile(r"^[A-Za-z_][\w.]*$")
_FLAT = re.compile(r"[\[\](){}'\"]")
_PIECE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[\[({]|[\])}]|,|=(?!=)")
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
    ast.Not: "not_", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.Is: "is_", ast.IsNot: "is_not", ast.In: "contains",
}  # fmt: skip
_SIGNS = {
    "+": "iadd", "-": "isub", "*": "imul", "/": "itruediv", "@": "imatmul", "%": "imod", "&": "iand", "|": "ior",
    "^": "ixor", "//": "ifloordiv", "**": "ipow", "<<": "ilshift", ">>": "irshift",
}  # fmt: skip
_LONGEST_EXPRESSION = 20_000


class Place(NamedTuple):
    file: str
    line: int
    function: str
    code: str


class Argument(NamedTuple):
    name: str  # "" for one by position
    text: str


@dataclass
class Node:
    """One line that calls something."""

    name: str
    target: str  # "torch.ops.aten.mm.default", "Tensor.float", "operator.getitem", "self.cond_true_0"
    arguments: list[Argument]
    annotation: str
    line: int  # in the text, from 1
    place: Place | None
    borrowed: str = ""  # whose place it is, where the compiler made the operator and gives it none
    policy: str = ""  # of activation checkpointing: whether backward is to have it kept or computed again
    module: str = ""  # that the user's own annotation names


@dataclass
class Input:
    name: str
    annotation: str
    comment: str  # "PlainAOTInput(idx=3)"


@dataclass
class Printed:
    """One graph, with the graphs inside it by the name of their class."""

    name: str
    inputs: list[Input] = field(default_factory=list[Input])
    nodes: list[Node] = field(default_factory=list[Node])
    aliases: dict[str, str] = field(default_factory=dict[str, str])  # `x = L_x_`
    outputs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # (text, comment)
    inner: dict[str, Printed] = field(default_factory=dict[str, "Printed"])
    not_understood: list[int] = field(default_factory=list[int])  # lines
    flow: object = field(default=None, repr=False, compare=False)  # see `flow.flow_of`


def parse(text: str) -> Printed | None:
    """The graph that a text prints; None if it prints none."""
    found = list(_graphs(text.split("\n")))
    if not found:
        return None
    outermost, depth = found[0]
    stack: list[tuple[int, Printed]] = [(depth, outermost)]
    for graph, depth in found[1:]:
        while len(stack) > 1 and stack[-1][0] >= depth:
            stack.pop()
        stack[-1][1].inner[graph.name] = graph
        stack.append((depth, graph))
    return outermost


def _graphs(lines: Sequence[str]) -> Iterator[tuple[Printed, int]]:
    """Every forward in the text, with the column where its class begins."""
    names: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        opened = _CLASS.match(lines[at])
        if opened:
            names.append((len(opened[1]), opened[2]))
        forward = _FORWARD.match(lines[at])
        if not forward:
            at += 1
            continue
        column = len(forward[1])
        name = next((name for depth, name in reversed(names) if depth < column), "")
        graph = Printed(name)
        at = _signature(lines, at, graph)
        at = _body(lines, at, column + 4, graph)
        yield graph, column


def _signature(lines: Sequence[str], at: int, graph: Printed) -> int:
    """Read the parameters; gives the line after them."""
    first = _FORWARD.sub("", lines[at])
    if first.rstrip().endswith("):") or "):" in first:
        texts = [first[: first.rindex("):")]]
        at += 1
    else:
        texts, at = [first], at + 1
        while at < len(lines) and not re.match(r"^ *\)(?: -> .*)?:", lines[at]):
            texts.append(lines[at].strip())
            at += 1
        at += 1
    for text in texts:
        for match in _PARAMETER.finditer(text):
            if match[1] != "self":
                graph.inputs.append(Input(match[1], match[2] or "", (match[3] or "").strip()))
    return at


def _body(lines: Sequence[str], at: int, column: int, graph: Printed) -> int:
    """Read the statements of one forward, up to and with its return; gives the line after them."""
    indent = " " * column
    place: Place | None = None
    policy = module = ""
    names = {entry.name for entry in graph.inputs}
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        if not line.startswith(indent):
            return at
        at += 1
        stripped = line.lstrip()
        if stripped.startswith("#"):
            found = _PLACE.match(line)
            if found:
                place = Place(found[2], int(found[3]), found[4], found[5])
            else:
                found = _NO_PLACE.match(line)
                place = None if found else place
            if found:
                policy, module = _about(found["about"] or "")
            continue
        if stripped.startswith("return"):
            return _outputs(lines, at - 1, column, graph)
        declared = _DECLARED.match(line)
        if declared:  # an input of a graph that is called with lists
            graph.inputs.append(Input(declared[1], declared[2], declared[3] or ""))
            names.add(declared[1])
            continue
        if "= fx_pytree.tree_flatten_spec(" in line:
            given = {entry.name for entry in graph.inputs if entry.annotation}
            unpacked = [name.strip() for name in stripped.split("=")[0].split(",") if name.strip()]
            if given & set(unpacked):  # what came in lists is there one by one now
                graph.inputs = [entry for entry in graph.inputs if entry.name in unpacked]
            continue
        node = _statement(line, at, place, names, graph.aliases)
        if node is not None:
            node.policy, node.module = policy, module
            graph.nodes.append(node)
            names.add(node.name)
        elif not _harmless(line, graph.aliases, names):
            graph.not_understood.append(at)
    return at


def _about(text: str) -> tuple[str, str]:
    """Policy and module of the operators below a comment."""
    policy, module = _POLICY.search(text), _MODULE.search(text)
    words = policy[2].replace("_", " ").lower() if policy and policy[2] else ""
    region = f" (checkpoint {policy[1]})" if policy and policy[1] else ""
    return f"{words}{region}".strip(), module[1] if module else ""


def _harmless(line: str, aliases: dict[str, str], names: set[str]) -> bool:
    assigned = _ASSIGNED.match(_FORGOTTEN.sub("", line))
    if assigned and assigned[3] in names:
        aliases[assigned[1]] = assigned[3]
        names.add(assigned[1])
        return True
    return bool(re.match(r"^ *(?:\w+ = )+None$", line)) or line.strip() in ("pass", "...")


def _outputs(lines: Sequence[str], at: int, column: int, graph: Printed) -> int:
    text = lines[at].strip()
    if text.endswith(("(", "[")):  # one result a line
        at += 1
        end = " " * column + (")" if text.endswith("(") else "]")
        while at < len(lines) and not lines[at].startswith(end):
            entry, _, comment = lines[at].strip().partition(",  # ")
            graph.outputs.append((entry.removesuffix(","), comment.strip()))
            at += 1
        return at + 1
    text = _COMMENT.sub("", text).removeprefix("return").strip()
    graph.outputs += [(argument.text, "") for argument in split(text.strip("()[]") if text[:1] in "([" else text)]
    return at + 1


def _statement(line: str, number: int, place: Place | None, names: set[str], aliases: dict[str, str]) -> Node | None:
    stored = _STORED.match(_FORGOTTEN.sub("", line))
    if stored and stored[1] in names:
        arguments = [Argument("", text) for text in (stored[1], stored[2], stored[3])]
        return Node(stored[4], "operator.setitem", arguments, stored[5] or "", number, place)
    in_place = _IN_PLACE.match(_FORGOTTEN.sub("", line))
    if in_place and in_place[1] in names:
        arguments = [Argument("", in_place[1]), Argument("", in_place[3])]
        return Node(in_place[4], f"operator.{_SIGNS[in_place[2]]}", arguments, in_place[5] or "", number, place)
    assigned = _ASSIGNED.match(line)
    if not assigned:
        return None
    name, annotation, right = assigned[1], assigned[2] or "", _FORGOTTEN.sub("", assigned[3])
    right = _COMMENT.sub("", right) if "  # " in right else right
    if right == "None" or right in names:
        return None
    call = _CALL.match(right)
    if call:
        target, arguments = call[1], split(call[2])
        owner, _, method = target.partition(".")
        if owner in names and method and "." not in method:
            return Node(name, f"Tensor.{method}", [Argument("", owner), *arguments], annotation, number, place)
        return Node(name, target, arguments, annotation, number, place)
    pick = _PICK.match(right)
    if pick and pick[1] in names:
        arguments = [Argument("", pick[1]), Argument("", pick[2])]
        return Node(name, "operator.getitem", arguments, annotation, number, place)
    if _DOTTED.match(right) and right.startswith("self."):
        return Node(name, "get_attr", [Argument("", right.removeprefix("self."))], annotation, number, place)
    return _expression(name, annotation, right, number, place, names)


def _expression(
    name: str, annotation: str, right: str, number: int, place: Place | None, names: set[str]
) -> Node | None:
    """`a + b`, `-a`, `a < b`, `x.shape`."""
    if len(right) > _LONGEST_EXPRESSION:
        return None
    try:
        tree = ast.parse(right, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match tree:
        case ast.BinOp(left=left, op=op, right=other):
            parts: list[ast.expr] = [left, other]
        case ast.UnaryOp(op=op, operand=operand):
            parts = [operand]
        case ast.Compare(left=left, ops=[op], comparators=[other]):
            parts = [left, other]
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if owner in names:
            arguments = [Argument("", owner), Argument("", repr(attribute))]
            return Node(name, "builtins.getattr", arguments, annotation, number, place)
        case _:
            return None
    arguments = [Argument("", ast.get_source_segment(right, part) or "") for part in parts]
    return Node(name, f"operator.{_OPERATORS[type(op)]}", arguments, annotation, number, place)


def split(text: str) -> list[Argument]:
    """The arguments of a call, at the commas that are in no bracket and no string."""
    if not text.strip():
        return []
    if not _FLAT.search(text):
        return [_argument(part.strip()) for part in text.split(",") if part.strip()]
    found: list[Argument] = []
    depth, start, equals = 0, 0, -1
    for piece in _PIECE.finditer(text):
        sign = piece[0]
        if sign in "[({":
            depth += 1
        elif sign in "])}":
            depth -= 1
        elif depth == 0 and sign == ",":
            _add(found, text, start, piece.start(), equals)
            start, equals = piece.end(), -1
        elif depth == 0 and sign == "=" and equals < 0:
            equals = piece.start()
    _add(found, text, start, len(text), equals)
    return found


def _add(found: list[Argument], text: str, start: int, end: int, equals: int) -> None:
    if equals >= 0 and text[start:equals].strip().isidentifier():
        found.append(Argument(text[start:equals].strip(), text[equals + 1 : end].strip()))
    elif text[start:end].strip():
        found.append(Argument("", text[start:end].strip()))


def _argument(text: str) -> Argument:
    name, equals, value = text.partition("=")
    if equals and not value.startswith("=") and name.strip().isidentifier():
        return Argument(name.strip(), value.strip())
    return Argument("", text)


@lru_cache(maxsize=50_000)
def names_in(text: str) -> tuple[str, ...]:
    """Every identifier in an argument that is no attribute and in no string."""
    if text.isidentifier():
        return (text,)
    if "'" in text or '"' in text:
        text = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", text)
    return tuple(m[0] for m in _NAME.finditer(text) if not (m.start() and text[m.start() - 1] == "."))
