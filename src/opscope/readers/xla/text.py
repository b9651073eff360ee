"""HLO modules as text: what `*.txt` of XLA's dumps and `compiled.as_text()` have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from opscope.errors import BadInput
from opscope.ir import Frame

from .hlo import Array, Computation, Instruction, Module, Place, Shape
from .proto import Stacks, config
from .scanning import end_of_brackets, split_top, unescaped
from .written import padding_in_text, slices_in_text, window_in_text

_HEAD = re.compile(r"(ENTRY )?%?([\w.\-<>:$]+)\s*(?:\(.*\)\s*->.*)?\{\s*(?:$|,)")
_START = re.compile(r"\s*(ROOT )?%?([\w.\-<>:$]+) = ")
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})?")
_NAME = re.compile(r"%?([\w.\-<>:$]+(?:#\d+)*)\s*$")
_COMMENT = re.compile(r"/\*.*?\*/")
_TABLE_ROW = re.compile(r'(\d+) (?:"((?:[^"\\]|\\.)*)"|\{(.*)\})\s*$')
_PAIR = re.compile(r"(\w+)=(-?\d+)")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")
_METADATA = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s}]+))')
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

# Attributes that are lists of numbers, `{1,2}`; a number each; or other computations.
_LISTS = frozenset(
    (
        *("dimensions", "lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims"),
        *("dynamic_slice_sizes", "slice_sizes", "fft_length"),
    )
)
_NUMBERS = frozenset(("feature_group_count", "batch_group_count", "channel_id", "index", "iota_dimension"))
_TEXTS = frozenset(("kind", "custom_call_target", "direction", "dim_labels", "fft_type", "sharding"))
_CALLS = frozenset(("calls", "to_apply", "body", "condition", "select", "scatter"))
_BRANCHES = ("branch_computations", "true_computation", "false_computation", "called_computations")


def read_module(lines: Iterator[str], name: str) -> Module:
    return _Reader(name).read(lines)


class _Reader:
    def __init__(self, name: str) -> None:
        self.file = name
        self.module = Module("", {}, "")
        self.tables: dict[str, dict[int, str]] = {}
        self.stacks: Stacks | None = None
        self._places: dict[str, tuple[str, Place]] = {}
        self._made: dict[str, Instruction] = {}  # of the computation that is read

    def read(self, lines: Iterator[str]) -> Module:
        current: Computation | None = None
        table = ""
        for number, line in enumerate(lines, 1):
            stripped = line.strip()
            if current is not None:
                if stripped.startswith("}"):
                    self._close(current)
                    current = None
                elif stripped:
                    self._instruction(current, line, number)
            elif stripped.startswith("HloModule "):
                if self.module.name:
                    break  # a second module: the first is the one that is read
                self._header(stripped)
            elif stripped in _TABLES:
                table = stripped
                self.tables[table] = {}
            elif table and (row := _TABLE_ROW.match(stripped)):
                self.tables[table][int(row[1])] = unescaped(row[2], in_c=True) if row[2] is not None else row[3]
            elif stripped.endswith("{") or (stripped and "{" in stripped and _HEAD.match(_COMMENT.sub("", stripped))):
                table = ""
                head = _HEAD.match(_COMMENT.sub("", stripped))
                if head:
                    current = Computation(head[2], [], "", bool(head[1]))
                    self._made = {}
        if current is not None:
            raise BadInput(f"{self.file}: it ends inside the computation {current.name}: the file is cut off")
        if not self.module.computations:
            raise BadInput(f"{self.file}: HLO text without a computation")
        if not self.module.entry:
            self.module.entry = next(reversed(self.module.computations))  # a fragment: the last one calls the others
            self.module.computations[self.module.entry].is_entry = True
        return self.module

    def _header(self, line: str) -> None:
        self.module.name = line[len("HloModule ") :].split(",", 1)[0].strip()
        start = line.find("input_output_alias=")
        if start >= 0:
            written = line[start : end_of_brackets(line, start + len("input_output_alias="))]
            self.module.aliases = {int(m[1] or 0): int(m[2]) for m in _ALIAS.finditer(written)}

    def _close(self, current: Computation) -> None:
        if not current.instructions:
            raise BadInput(f"{self.file}: the computation {current.name} has no instruction")
        current.root = current.root or current.instructions[-1].name
        self.module.computations[current.name] = current
        if current.is_entry:
            self.module.entry = current.name

    # -- instructions -----------------------------------------------------------------------------

    def _instruction(self, current: Computation, line: str, number: int) -> None:
        start = _START.match(line)
        if not start:
            raise BadInput(f"{self.file}: line {number:,}: not an HLO instruction: {line.strip()[:80]!r}")
        try:
            made = self._parsed(current, start[2], line, start.end())
            current.instructions.append(made)
            self._made[made.name] = made
        except (ValueError, IndexError, KeyError) as error:
            raise BadInput(f"{self.file}: line {number:,}: {line.strip()[:60]!r}: {error}") from None
        if start[1]:
            current.root = start[2]

    def _element(self, current: Computation, name: str) -> None:
        """`%call.2#0` stands for a get-tuple-element that newer versions do not print."""
        if name in self._made:
            return
        whole, _, index = name.rpartition("#")
        if "#" in whole:
            self._element(current, whole)
        tuple_ = self._made[whole]
        if isinstance(tuple_.shape, Array):
            raise ValueError(f"{whole} is no tuple")
        made = Instruction(name, "get-tuple-element", tuple_.shape[int(index)], [whole], attrs={"index": int(index)})
        made.op_name, made.place = tuple_.op_name, tuple_.place
        current.instructions.append(made)
        self._made[name] = made

    def _parsed(self, current: Computation, name: str, line: str, at: int) -> Instruction:
        if "/*" in line:
            line = line[:at] + _COMMENT.sub("", line[at:])
        shape, at = _shape(line, at)
        opened = line.index("(", at)
        opcode = line[at:opened].strip()
        closed = end_of_brackets(line, opened)
        inside = line[opened + 1 : closed - 1]
        instruction = Instruction(name, opcode, shape)
        if opcode == "parameter":
            instruction.number = int(inside)
        elif opcode != "constant":
            for part in _split(inside):
                found = _NAME.search(part)
                if found is None:
                    raise ValueError(f"{part.strip()[:40]!r} is not an operand")
                instruction.operands.append(found[1])
                if "#" in found[1]:
                    self._element(current, found[1])
        for part in _split(line[closed:]):
            key, equals, value = part.strip().partition("=")
            if equals:
                self._attribute(instruction, key, value)
        if opcode in ("broadcast", "reduce", "transpose", "reverse"):
            instruction.attrs.setdefault("dimensions", [])
        return instruction

    def _attribute(self, instruction: Instruction, key: str, value: str) -> None:
        attrs = instruction.attrs
        if key == "metadata":
            instruction.op_name, instruction.place = self._metadata(value)
        elif key in _LISTS:
            attrs[key] = [int(n) for n in value.strip("{} ").split(",") if n.strip()]
        elif key in _NUMBERS:
            attrs[key] = int(value)
        elif key in _CALLS:
            instruction.called += [(key, name) for name in _names(value)]
        elif key in _BRANCHES:
            count = len(instruction.called)
            way = "calls" if key == "called_computations" else ""
            instruction.called += [(way or f"branch {count + i}", name) for i, name in enumerate(_names(value))]
        elif key == "window":
            attrs |= window_in_text(value)
        elif key == "slice":
            attrs["slice"] = slices_in_text(value)
        elif key == "padding":
            attrs["padding"] = padding_in_text(value)
        elif key in _TEXTS:
            attrs[key] = value.strip('"')
        elif key == "backend_config":
            if len(value) <= 4096:
                attrs |= config(_unquoted(value))
        elif key in ("replica_groups", "source_target_pairs"):
            attrs[key] = _groups(value)
        elif key == "control-predecessors":
            instruction.control = _names(value)

    def _metadata(self, written: str) -> tuple[str, Place]:
        if written not in self._places:
            found = {m[1]: m[2] if m[2] is not None else m[3] for m in _METADATA.finditer(written)}
            place = Place()
            frame = found.get("stack_frame_id", "")
            if frame.isdecimal() and int(frame):
                place = self._frames().at(int(frame))
            elif found.get("source_file"):
                line = found.get("source_line", "0")
                place = Place((Frame(found["source_file"], int(line) if line.isdecimal() else 0, ""),))
            self._places[written] = (unescaped(found.get("op_name", ""), in_c=True), place)
        return self._places[written]

    def _frames(self) -> Stacks:
        if self.stacks is None:
            files, functions = self.tables.get("FileNames", {}), self.tables.get("FunctionNames", {})
            locations: list[tuple[Frame, int]] = []
            for _, row in sorted(self.tables.get("FileLocations", {}).items()):
                found = {key: int(value) for key, value in _PAIR.findall(row)}
                file, function = (
                    files.get(found.get("file_name_id", 0), ""),
                    functions.get(found.get("function_name_id", 0), ""),
                )
                locations.append((Frame(file, found.get("line", 0), function), found.get("column", 0)))
            frames: list[tuple[int, int]] = []
            for _, row in sorted(self.tables.get("StackFrames", {}).items()):
                found = {key: int(value) for key, value in _PAIR.findall(row)}
                # The text counts the frames above from 1 too, so that 1 is none: frame 1 would call itself.
                frames.append((found.get("file_location_id", 0), max(found.get("parent_frame_id", 0) - 1, 0)))
            self.stacks = Stacks(frames, locations)
        return self.stacks


def _shape(line: str, at: int) -> tuple[Shape, int]:
    """The shape that begins here, and where it ends; layouts are passed over."""
    if line[at] != "(":
        found = _ARRAY.match(line, at)
        if not found:
            raise ValueError(f"no shape where one belongs: {line[at : at + 30]!r}")
        return Array(found[1], _sizes(found[2])), found.end()
    stack: list[list[Shape]] = [[]]
    at += 1
    while stack:
        mark = line[at]
        if mark == "(":
            stack.append([])
            at += 1
        elif mark == ")":
            made = tuple(stack.pop())
            at += 1
            if not stack:
                return made, at
            stack[-1].append(made)
        elif mark in ", ":
            at += 1
        else:
            found = _ARRAY.match(line, at)
            if not found:
                raise ValueError(f"no shape where one belongs: {line[at : at + 30]!r}")
            stack[-1].append(Array(found[1], _sizes(found[2])))
            at = found.end()
    raise ValueError("a tuple that does not end")


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part.strip().removeprefix("<=").replace("?", "-1")) for part in text.split(",") if part.strip())


def _split(text: str) -> list[str]:
    """The parts between commas that are in no brackets and no quotes."""
    if "{" in text or '"' in text or "[" in text or "(" in text:
        return [part for part in split_top(text, angles=False) if part.strip()]
    return [part for part in text.split(",") if part.strip()]


def _names(value: str) -> list[str]:
    return [part.strip().lstrip("%") for part in value.strip("{} ").split(",") if part.strip()]


def _groups(value: str) -> Any:
    """`{{0,1},{2,3}}`; the short form `[2,4]<=[8]` stays as it is."""
    if not value.startswith("{"):
        return value
    return [[int(n) for n in part.split(",") if n.strip()] for part in re.findall(r"\{([\d, ]*)\}", value[1:-1])]


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return unescaped(value[1:-1], in_c=True)
