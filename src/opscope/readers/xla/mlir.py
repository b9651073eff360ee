"""StableHLO as text: what `lowered.as_text(debug_info=True)` gives, and JAX's export.

MLIR prints one operation a line, and a region between braces on the lines that follow. Operations are read by that
shape alone, so that operations which opscope does not know are read as well. The result is a module like one of HLO:
functions and regions are computations, and a region's values from outside become its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opscope.errors import BadInput

from .hlo import Array, Computation, Instruction, Module, Shape
from .locations import Locations
from .operations import attributes, types_in
from .scanning import end_of_brackets, last_group, split_top, type_start

_RESULTS = re.compile(r"(%[\w$.\-]+(?::\d+)?(?:, %[\w$.\-]+(?::\d+)?)*) = ")
_OPERATION = re.compile(r'"?([A-Za-z_][\w$.]*)"?')
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_ARGUMENT = re.compile(r"(%[\w$.\-]+)\s*:\s*")
_FUNCTION = re.compile(r"func\.func (?:\w+ )?@(\"[^\"]*\"|[\w$.\-]+)\(")
_MODULE = re.compile(r"(?:builtin\.)?module(?: @(\"[^\"]*\"|[\w$.\-]+))?")
_CALLEE = re.compile(r"@(\"[^\"]*\"|[\w$.\-]+)")
_RETURNS = ("return", "func.return", "stablehlo.return", "sdy.return", "mhlo.return")
_CALLS = ("call", "func.call")
_CONSTANTS = ("stablehlo.constant", "mhlo.constant", "arith.constant")
_DEEPEST = 200


def looks_like_module(head: bytes) -> bool:
    """A module of MLIR with operations of StableHLO (or MHLO) close to its beginning."""
    text = head.decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "//", "!"))]
    if not lines or not re.match(r"\s*(builtin\.)?module\b", lines[0]):
        return text.startswith("#loc") and "loc(" in text and not lines
    return any(word in text for word in ("stablehlo.", "mhlo.", "func.func", "sdy."))


def read_module(lines: Iterator[str], name: str) -> Module:
    return _Reader(name, lines).read()


@dataclass(slots=True)
class _Operation:
    results: list[tuple[str, int]]  # a name, and how many values it stands for
    name: str
    text: str  # what is written behind the name, without the location
    regions: list[_Region] = field(default_factory=list["_Region"])
    location: str = ""
    line: int = 0


@dataclass(slots=True)
class _Region:
    arguments: list[tuple[str, Shape]]
    operations: list[_Operation] = field(default_factory=list[_Operation])
    returns: list[str] = field(default_factory=list[str])


class _Reader:
    def __init__(self, name: str, lines: Iterator[str]) -> None:
        self.file = name
        self.lines = lines
        self.number = 0
        self.module = Module("", {}, "")
        self.locations = Locations()
        self._parts: dict[str, list[str]] = {}  # of the function that is read: names that stand for a part of a result
        self.functions: dict[str, tuple[_Region, bool]] = {}
        self.order: list[str] = []

    def read(self) -> Module:
        try:
            while (line := self._next()) is not None:
                self._top(line)
        except (ValueError, IndexError, KeyError) as error:
            raise BadInput(f"{self.file}: line {self.number:,}: {error}") from None
        if not self.functions:
            raise BadInput(f"{self.file}: a module of MLIR without a function")
        try:
            for function in self.functions:
                self._function(function)
        except (ValueError, IndexError, KeyError) as error:
            raise BadInput(f"{self.file}: {error}") from None
        entries = [name for name, (_, is_public) in self.functions.items() if is_public]
        self.module.entry = "main" if "main" in self.functions else (entries or list(self.functions))[0]
        self.module.computations[self.module.entry].is_entry = True
        return self.module

    def _next(self) -> str | None:
        for line in self.lines:
            self.number += 1
            stripped = line.strip()
            if stripped and not stripped.startswith("//"):
                return stripped
        return None

    def _top(self, line: str) -> None:
        if line.startswith("#"):
            self.locations.define(line)
        elif found := _MODULE.match(line):
            self.module.name = (found[1] or "").strip('"')
        elif found := _FUNCTION.match(line):
            opened = found.end() - 1
            closed = end_of_brackets(line, opened)
            region = _Region(_arguments(line[opened + 1 : closed - 1]))
            name = found[1].strip('"')
            if name in self.functions:
                raise ValueError(f"two functions are called {name!r}")
            self.functions[name] = (region, " private " not in line[: found.start(1)])
            if line.endswith("{"):
                self._block(region, 0)

    def _block(self, region: _Region, depth: int) -> str:
        """Read the operations of a region up to the brace that closes it: what stands behind the brace."""
        if depth > _DEEPEST:
            raise ValueError(f"regions more than {_DEEPEST} deep")
        last: _Operation | None = None
        while (line := self._next()) is not None:
            if line.startswith("}"):
                return line[1:].strip()
            if line.startswith("^"):
                opened = line.find("(")
                if opened >= 0:
                    region.arguments += _arguments(line[opened + 1 : end_of_brackets(line, opened) - 1])
                continue
            if line.startswith("reducer(") and last is not None:
                inner = _Region([])
                opened = line.find("(")
                while opened >= 0:  # a pair for each of what is reduced together
                    closed = end_of_brackets(line, opened)
                    inner.arguments += _arguments(line[opened + 1 : closed - 1])
                    opened = line.find("(", closed)
                last.regions.append(inner)
                self._tail(last, self._block(inner, depth + 1), depth)
                continue
            if line == "cond {" and last is not None:
                self._regions(last, _loop_arguments(last), depth)
                continue
            last = self._operation(line, depth)
            if last.name in _RETURNS:
                region.returns = _VALUE.findall(_without_types(last.text))
            else:
                region.operations.append(last)
        raise ValueError("it ends inside a region: the file is cut off")

    def _operation(self, line: str, depth: int) -> _Operation:
        results: list[tuple[str, int]] = []
        at = 0
        if found := _RESULTS.match(line):
            at = found.end()
            for part in found[1].split(", "):
                name, _, count = part.partition(":")
                results.append((name, int(count or 1)))
        named = _OPERATION.match(line, at)
        if not named:
            raise ValueError(f"not an operation of MLIR: {line[:60]!r}")
        operation = _Operation(results, named[1], line[named.end() :], line=self.number)
        if line.endswith("{"):
            opened = line.endswith("({")
            operation.text = operation.text[: -2 if opened else -1]
            arguments: list[tuple[str, Shape]] = []
            start = -1 if opened else last_group(operation.text)
            if start >= 0 and _ARGUMENT.match(operation.text, start + 1):
                arguments = _arguments(operation.text.rstrip()[start + 1 : -1])
                operation.text = operation.text[:start]
            self._regions(operation, arguments, depth)
        else:
            operation.text, operation.location = split_location(operation.text)
        return operation

    def _regions(self, operation: _Operation, arguments: list[tuple[str, Shape]], depth: int) -> None:
        """The regions of an operation, one after the other, and what is written behind the last."""
        own = operation.text
        while True:
            region = _Region(list(arguments))
            operation.regions.append(region)
            rest = self._block(region, depth + 1)
            if not rest.endswith("{"):
                break
        operation.text = own
        self._tail(operation, rest, depth)

    def _tail(self, operation: _Operation, rest: str, depth: int) -> None:
        text, location = split_location(rest.lstrip(") "))
        operation.text += f" {text}" if text else ""
        operation.location = location or operation.location

    # -- to computations --------------------------------------------------------------------------------

    def _function(self, name: str) -> None:
        if name in self.module.computations:
            return
        region, _ = self.functions[name]
        self.module.computations[name] = self._computation(name, region, {})

    def _computation(self, name: str, region: _Region, outside: dict[str, Shape]) -> Computation:
        made = Computation(name, [], "")
        shapes = dict(outside)
        inside: set[str] = set()
        for number, (argument, shape) in enumerate(region.arguments):
            shapes[argument] = shape
            inside.add(argument)
            made.instructions.append(Instruction(argument, "parameter", shape, number=number))
        captured: dict[str, Shape] = {}
        for operation in region.operations:
            self._instruction(operation, name, made, shapes, inside, captured)
        for value in region.returns:
            self._capture(value, shapes, inside, captured)
        count = len(region.arguments)
        for number, (value, shape) in enumerate(captured.items(), count):
            made.instructions.insert(number, Instruction(value, "parameter", shape, number=number))
        made.results = [self._resolved(value) for value in region.returns]
        return made

    def _resolved(self, value: str) -> str:
        name, _, index = value.partition("#")
        parts = self._parts.get(name)
        return parts[int(index or 0)] if parts is not None else value

    def _capture(self, value: str, shapes: dict[str, Shape], inside: set[str], captured: dict[str, Shape]) -> None:
        base = value.partition("#")[0]
        if base in inside or value in captured:
            return
        if value not in shapes and base not in shapes:
            raise ValueError(f"{value} is read, and nothing before it makes it")
        captured[value] = shapes[value] if value in shapes else _part(shapes[base], value)

    def _instruction(
        self,
        operation: _Operation,
        function: str,
        made: Computation,
        shapes: dict[str, Shape],
        inside: set[str],
        captured: dict[str, Shape],
    ) -> None:
        text = operation.text
        written = _operands(operation)
        for operand in written:
            self._capture(operand, shapes, inside, captured)
        operands = [self._resolved(operand) for operand in written]
        count = sum(number for _, number in operation.results)
        given, results = types_in(text)
        types = _result_types(operation, given, results, count)
        op_name, place = self.locations.at(operation.location)
        name = operation.results[0][0] if operation.results else f"line {operation.line}"
        shape: Shape = types[0] if count == 1 and types else tuple(types)
        instruction = Instruction(name, operation.name, shape, operands, op_name=op_name, place=place)
        if operation.name in _CONSTANTS:
            instruction.opcode = "constant"
        else:
            instruction.attrs = attributes(operation.name, text)
        if operation.name in _CALLS and (callee := _CALLEE.search(text)):
            callee_name = callee[1].strip('"')
            if callee_name not in self.functions:
                raise ValueError(f"the function {callee_name!r} is called, but it is not in the module")
            instruction.called.append(("calls", callee_name))
        for number, region in enumerate(operation.regions):
            inner = self._computation(f"{function}/{name}.{number}", region, shapes)
            extra = [i.name for i in inner.instructions if i.number >= len(region.arguments)]
            for value in extra:
                self._capture(value, shapes, inside, captured)
            own = operands if len(region.arguments) == len(operands) else []
            instruction.bound.append([*own, *map(self._resolved, extra)])
            self.module.computations[inner.name] = inner
            instruction.called.append((_way(operation, number), inner.name))
        made.instructions.append(instruction)
        at = 0
        for result, number in operation.results:
            parts = [types[i] if i < len(types) else Array("opaque", ()) for i in range(at, at + number)]
            shapes[result] = parts[0] if number == 1 else tuple(parts)
            inside.add(result)
            if len(operation.results) > 1:  # `%values, %indices = …`: parts of one result
                self._parts[result] = [f"{name}#{i}" for i in range(at, at + number)]
            at += number


def _way(operation: _Operation, number: int) -> str:
    bare = operation.name.rpartition(".")[2]
    if bare == "while":
        return ("condition", "body")[number] if number < 2 else f"region {number}"
    if bare in ("case", "if"):
        return f"branch {number}"
    if bare in ("manual_computation", "composite"):
        return "calls"
    return "to_apply"


def _operands(operation: _Operation) -> list[str]:
    text = _without_types(operation.text)
    if operation.name.endswith(".while"):
        bound = re.findall(r"%[\w$.\-]+ = (%[\w$.\-]+(?:#\d+)?)", text)
        if bound:
            return bound
    found = _VALUE.findall(text)
    if operation.name.endswith(".reduce"):
        starts = re.findall(r"init: (%[\w$.\-]+(?:#\d+)?)", text)
        if starts:  # written in pairs: what is reduced first, as in HLO
            return [*re.findall(r"\((%[\w$.\-]+(?:#\d+)?) init:", text), *starts]
    return found


def _result_types(operation: _Operation, given: list[Shape], results: list[Shape] | None, count: int) -> list[Any]:
    if results is not None:
        return results[:count]
    if len(given) >= count > 1:
        return given[-count:]
    return given[-1:] * count if given else [Array("opaque", ())] * count


def _loop_arguments(operation: _Operation) -> list[tuple[str, Shape]]:
    """`stablehlo.while(%iterArg = %0, …) : types`: the names that both regions use."""
    names = re.findall(r"(%[\w$.\-]+) = %", _without_types(operation.text))
    given, _ = types_in(operation.text)
    return list(zip(names, given, strict=False))


def _part(shape: Shape, value: str) -> Shape:
    index = value.partition("#")[2]
    if isinstance(shape, Array) or not index.isdecimal() or int(index) >= len(shape):
        return shape
    return shape[int(index)]


def _arguments(text: str) -> list[tuple[str, Shape]]:
    """`%arg0: tensor<4xf32> {attributes} loc("w"), …`."""
    found: list[tuple[str, Shape]] = []
    for part in split_top(text):
        named = _ARGUMENT.match(part.strip())
        if named:
            types, _ = types_in(" : " + split_location(part.strip()[named.end() :])[0].split(" {")[0])
            found.append((named[1], types[0] if types else Array("opaque", ())))
    return found


def _without_types(text: str) -> str:
    at = type_start(text)
    return text if at < 0 else text[:at]


def split_location(text: str) -> tuple[str, str]:
    """`… loc(#loc12)`: what comes before it, and what is in it."""
    text = text.rstrip()
    at = text.rfind(" loc(")
    start = text.find("loc(") if text.startswith("loc(") else at + 1
    if at < 0 and not text.startswith("loc("):
        return text, ""
    while True:
        if text.endswith(")") and end_of_brackets(text, start + 3) == len(text):
            return text[:start].rstrip(), text[start + 4 : -1]
        at = text.rfind(" loc(", 0, start)
        if at < 0:
            return text, ""
        start = at + 1
