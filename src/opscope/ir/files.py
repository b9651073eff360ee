"""Which files a capture names: the Python files of its stacks, and the generated code of its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from .capture import Capture, Table
from .facts import FILES
from .graph import Graph


def all_graphs(capture: Capture) -> list[Graph]:
    """Every graph once, those inside a node before the graph around them."""
    found: dict[int, Graph] = {}

    def visit(graph: Graph) -> None:
        if id(graph) not in found:
            for body in graph.bodies:
                visit(body.graph)
            found[id(graph)] = graph

    for stage in capture.stages:
        visit(stage.graph)
    return list(found.values())


def named_files(capture: Capture) -> dict[str, int]:
    """Every file that frames name -> the last line that is named."""
    named: dict[str, int] = {}
    for frame in capture.pools.frames:
        if frame.file:
            named[frame.file] = max(named.get(frame.file, 0), frame.line)
    return named


def code_files(capture: Capture) -> dict[str, int]:
    """Every file of generated code that a kernel names -> its text, as a string id (0: not in the capture)."""
    files: dict[str, int] = {}
    for table in capture.tables.values():
        if table.fact == FILES.name:
            code = capture.stages[table.stage].graph.groups[table.by.partition(":")[2]].code
            for group, file in files_by_group(table):
                files[file] = int(code[group]) or files.get(file, 0)
    return files


def files_by_group(table: Table) -> Iterator[tuple[int, str]]:
    """The file of each group that a table of this fact names."""
    column = table.columns["file"]
    files = cast("Sequence[str]", column.values)
    for group, file, known in zip(table.index.tolist(), files, column.known.tolist(), strict=True):
        if known and file:
            yield group, file
