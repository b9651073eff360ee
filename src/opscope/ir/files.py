"""Which files a capture names: the Python files of its stacks, and the generated code of its kernels."""

from __future__ import annotations

from .attributes import FILE
from .capture import Capture
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
    """Every file of generated code that a group names -> its text, as a string id (0: not in the capture)."""
    files: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    for graph in all_graphs(capture):
        for groups in graph.groups.values():
            pairs = set(zip(groups.attrs.tolist(), groups.code.tolist(), strict=True)) - seen
            seen |= pairs
            for attrs, code in pairs:
                file = capture.pools.attrs_of(attrs).get(FILE)
                if isinstance(file, str) and file:
                    files[file] = code or files.get(file, 0)
    return files
