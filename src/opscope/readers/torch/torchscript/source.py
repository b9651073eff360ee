"""The code in a TorchScript archive: classes, methods and functions by their full names, and where each line is from.

The code is a small part of Python, so `ast` reads it. Beside each file lies a `.debug_pkl` that leads from places in it
to the lines that the user wrote, or, for a traced model, to the whole call stack.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from opscope.errors import BadInput
from opscope.ir import Frame

from .objects import Pickle

_TRACED = re.compile(r"^(.+?)\((\d{1,9})\): (.*)$", re.MULTILINE)
# Frames of torch itself that are around every module and every traced model.
_MACHINERY = ("torch/jit/_trace.py", "torch/nn/modules/module.py", "torch/_dynamo/eval_frame.py")
_DEF = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")
_MOST_LINES = 200_000  # of a file that we put together from its functions
_LONGEST_CHAIN = 4000


class Function(NamedTuple):
    node: ast.FunctionDef
    file: CodeFile
    name: str  # full


@dataclass
class Class:
    name: str
    base: str = ""
    methods: dict[str, Function] = field(default_factory=dict[str, Function])
    fields: list[str] = field(default_factory=list[str])  # in order; of a NamedTuple its parts
    parameters: frozenset[str] = frozenset()
    buffers: frozenset[str] = frozenset()


class CodeFile:
    """One file of code, with the places that its lines come from."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        raw = text.encode("utf-8", "replace")
        self._line_starts = [0]
        for part in raw.split(b"\n"):
            self._line_starts.append(self._line_starts[-1] + len(part) + 1)
        self._offsets: list[int] = []
        self._ranges: list[tuple[Any, int]] = []  # (source, start in its text)
        self._frames: dict[tuple[int, int], tuple[Frame, ...]] = {}
        self.sources: dict[int, _Original] = {}

    def add_ranges(self, data: bytes, name: str) -> None:
        entries = _entries(Pickle(data, name).value, self.sources)
        entries.sort(key=lambda entry: entry[0])
        self._offsets = [offset for offset, _, _ in entries]
        self._ranges = [(source, start) for _, source, start in entries]

    def frames(self, node: ast.AST, function: str) -> tuple[tuple[Frame, ...], bool]:
        """Where this code comes from, outermost first; and whether that is the whole call stack already."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        if self._offsets and 0 < line < len(self._line_starts):
            start = self._line_starts[line - 1] + column
            last = getattr(node, "end_lineno", line) or line
            end = self._line_starts[min(last, len(self._line_starts) - 1) - 1] + (
                getattr(node, "end_col_offset", 0) or 0
            )
            # The place itself, or where nothing is known of it, the first place inside of the expression.
            for at in range(max(bisect_right(self._offsets, start) - 1, 0), len(self._offsets)):
                if self._offsets[at] >= end:
                    break
                source, offset = self._ranges[at]
                original = self.sources[source]
                if original.traced or original.file:
                    key = (source, 0 if original.traced else offset)
                    if key not in self._frames:
                        self._frames[key] = original.frames(offset)
                    return self._frames[key], bool(original.traced)
        return (Frame(self.path, line, function),), False


class _Original:
    """A piece of the user's source, or the call stack of a traced operator."""

    def __init__(self, text: str, file: str, line: int) -> None:
        self.text, self.file, self.line = text, file, line
        # A traced operator has its call stack instead of a source, innermost call first.
        found = _TRACED.findall(text) if _TRACED.match(text) else []
        calls = [Frame(path, int(number), name) for path, number, name in reversed(found)]
        self.traced = tuple(frame for frame in calls if not frame.file.endswith(_MACHINERY)) or tuple(calls)
        named = _DEF.match(text)
        self.function = named[1] if named else ""

    def frames(self, start: int) -> tuple[Frame, ...]:
        if self.traced:
            return self.traced
        return (Frame(self.file, self.line + self.text.count("\n", 0, max(start, 0)), self.function),)


def _entries(value: Any, sources: dict[int, _Original]) -> list[tuple[int, int, int]]:
    """(place in the code, source, start in its text) of every range. Newer files keep all texts in one table."""
    table: Sequence[Any] = ()
    rows = value
    if isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == 3 and value[0] == "FORMAT_WITH_STRING_TABLE":
        table, rows = cast("tuple[Any, Sequence[Any], Any]", value)[1:]
    if not isinstance(rows, list | tuple) or not isinstance(table, list | tuple):
        return []
    found: list[tuple[int, int, int]] = []
    known: dict[int, int] = {}
    for row in cast("Sequence[Any]", rows):
        if not isinstance(row, tuple) or len(cast("tuple[Any, ...]", row)) < 2:
            continue
        offset, place = cast("tuple[Any, ...]", row)[:2]
        if not isinstance(offset, int) or not isinstance(place, tuple) or len(cast("tuple[Any, ...]", place)) < 2:
            continue
        source, start = cast("tuple[Any, ...]", place)[:2]
        if not isinstance(start, int):
            continue
        if id(source) not in known:  # the pickle keeps each source once, and `value` keeps it alive
            known[id(source)] = len(sources)
            sources[len(sources)] = _original(source, table)
        found.append((offset, known[id(source)], start))
    return found


def _original(source: Any, table: Sequence[Any]) -> _Original:
    if not isinstance(source, tuple) or len(cast("tuple[Any, ...]", source)) < 3:
        return _Original("", "", 0)
    text, file, line = cast("tuple[Any, ...]", source)[:3]

    def at(index: Any) -> str:
        entry = table[index] if isinstance(index, int) and 0 <= index < len(table) else index
        return entry if isinstance(entry, str) else ""

    whole = "".join(map(at, cast("list[Any]", text))) if isinstance(text, list) else at(text)
    return _Original(whole, at(file), line if isinstance(line, int) and 0 <= line < 1 << 30 else 0)


def originals(files: Sequence[CodeFile]) -> dict[str, str]:
    """The user's files as far as the archive has them: functions at their lines, the rest left empty."""
    lines: dict[str, dict[int, str]] = {}
    for file in files:
        for source in file.sources.values():
            if source.file and source.line > 0 and not source.traced:
                into = lines.setdefault(source.file, {})
                for i, text in enumerate(source.text.split("\n")):
                    if text:
                        into.setdefault(source.line + i, text)
    return {
        path: "\n".join(found.get(i, "") for i in range(1, max(found) + 1)) + "\n"
        for path, found in lines.items()
        if found and max(found) < _MOST_LINES
    }


class Code:
    """All classes and functions of an archive."""

    def __init__(self) -> None:
        self.files: list[CodeFile] = []
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Function] = {}

    def add(self, path: str, file: CodeFile) -> None:
        """`path` is that of the file below `code/`: `__torch__/torch/nn/modules/linear.py`."""
        self.files.append(file)
        qualifier = path.removesuffix(".py").replace("/", ".")
        for statement in parsed(file.text, file.path).body:
            if isinstance(statement, ast.FunctionDef):
                name = f"{qualifier}.{statement.name}"
                self.functions[name] = Function(statement, file, name)
            elif isinstance(statement, ast.ClassDef):
                self._class(f"{qualifier}.{statement.name}", statement, file)

    def _class(self, name: str, node: ast.ClassDef, file: CodeFile) -> None:
        found = self.classes[name] = Class(name)
        found.base = next((base.id for base in node.bases if isinstance(base, ast.Name)), "")
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                found.methods[statement.name] = Function(statement, file, f"{name}.{statement.name}")
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found.fields.append(statement.target.id)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                listed = _strings(statement.value)
                if statement.targets[0].id == "__parameters__":
                    found.parameters = listed
                elif statement.targets[0].id == "__buffers__":
                    found.buffers = listed


def _strings(node: ast.expr) -> frozenset[str]:
    items = node.elts if isinstance(node, ast.List) else []
    return frozenset(i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str))


def parsed(text: str, path: str) -> ast.Module:
    try:
        if sys.version_info < (3, 11):
            _refuse_chains(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of the style of the code is no news to the user
            return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"{path} is not code ({error}); the file is damaged: save it again") from None
    except (RecursionError, MemoryError):
        raise BadInput(f"{path}: its expressions are nested too deep to be honest") from None


_TOKENS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*|\w+|\s+|.', re.DOTALL)


def _refuse_chains(text: str) -> None:
    """Python 3.10 crashes on chains such as `a.b.b.b…` with thousands of links; later ones raise RecursionError."""
    counts, total = [0], 0  # tokens since the last comma, at each level of brackets; and in all that are open
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in "([{":
            counts.append(0)
        elif token in ")]}":
            if len(counts) > 1:
                total -= counts.pop()
            counts[-1] += 1
            total += 1
        elif token == "," or ("\n" in token and len(counts) == 1):
            total -= counts[-1]
            counts[-1] = 0
        elif not token.isspace():
            counts[-1] += 1
            total += 1
        if total > _LONGEST_CHAIN or len(counts) > 200:
            raise RecursionError
