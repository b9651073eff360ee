"""Why XLA did not fuse two instructions, in its own words: `*.priority_fusion_dump.txt` of a dump for GPUs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from opscope.ir import Capture, Graph, Table, column
from opscope.readers.source import Source

_STEP = re.compile(r'\s*(producer_ineligible|producer_name|consumer_name|reason)(?: \{|: "((?:[^"\\]|\\.)*)")')
_LARGEST = 256 << 20
_MOST = 100_000


def not_fused(capture: Capture, module: str, folder: Path) -> None:
    """Add the reasons to the stage that the fusion made, by the names that its instructions have there."""
    path = next((p for p in sorted(folder.glob(f"{module}.*priority_fusion_dump.txt*")) if p.is_file()), None)
    stage = next((i for i, s in enumerate(capture.stages) if s.name.endswith(": priority-fusion")), None)
    if path is None or stage is None:
        return
    told = _told(path)
    graph = capture.stages[stage].graph
    strings = capture.pools.strings
    nodes = {strings[int(name)]: i for i, name in enumerate(graph.node_name.tolist())}
    rows: list[tuple[int, int, str]] = []
    for producer, reason in told.items():
        node = nodes.get(producer)
        for reader in _readers(graph, node) if node is not None else ():
            assert node is not None
            rows.append((node, reader, reason))
    if rows:
        rows = rows[:_MOST]
        kernel, other, reason = zip(*rows, strict=True)
        capture.add(
            Table(
                stage,
                "row",
                np.arange(len(rows), dtype=np.int32),
                {
                    "kernel": column(np.array(kernel, dtype=np.int32)),
                    "other": column(np.array(other, dtype=np.int32)),
                    "reason": column(list(reason)),
                },
                fact="not_fused",
            )
        )


def _told(path: Path) -> dict[str, str]:
    """The last reason that was given, by the instruction that could not be fused into those that read it."""
    found: dict[str, str] = {}
    producer, inside = "", False
    for line in Source.of(path).unpacked().lines(_LARGEST):
        step = _STEP.match(line)
        if step is None:
            inside = inside and line.strip() != "}"
        elif step[1] == "producer_ineligible":
            inside, producer = True, ""
        elif inside and step[1] == "producer_name":
            producer = step[2] or ""
        elif inside and step[1] == "reason" and producer:
            found[producer] = step[2] or ""
    return found


def _readers(graph: Graph, node: int) -> list[int]:
    made, uses, use_node = graph.node_outputs.row(node).tolist(), graph.value_uses, graph.use_node
    return sorted({int(use_node[use]) for value in made for use in uses.row(value).tolist()})
