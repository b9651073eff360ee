"""XLA's buffer assignment: which memory every value of the compiled module really has."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from opscope.ir import Capture, Table, column
from opscope.readers.source import Source

TITLE = "buffer assignment"
_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)")
_VALUE = re.compile(r"\s*value: <\d+ (.+?)(\{[\d,]*\})? @\d+> \(size=(\d+),offset=(\d+)\)")
_LARGEST = 256 << 20


def buffer_table(capture: Capture, stage: int, module: str, folder: Path) -> None:
    """Add the table of the module's values, where the dump has it."""
    path = next((p for p in sorted(folder.glob(f"{module}.*buffer-assignment.txt*")) if p.is_file()), None)
    if path is None:
        return
    graph = capture.stages[stage].graph
    strings = capture.pools.strings
    nodes = {strings[int(name)]: i for i, name in enumerate(graph.node_name.tolist())}
    named = {strings[int(name)]: i for i, name in enumerate(graph.value_name.tolist()) if name}
    outputs = graph.node_outputs
    rows: list[tuple[int, int, int, int]] = []
    seen: set[int] = set()
    allocation = -1
    for line in Source.of(path).unpacked().lines(_LARGEST):
        if found := _ALLOCATION.match(line):
            allocation = int(found[1])
        elif found := _VALUE.match(line):
            value = named.get(found[1], -1)
            if value < 0 and found[1] in nodes:
                slots = outputs.row(nodes[found[1]]).tolist()
                inside = [int(index) for index in (found[2] or "").strip("{}").split(",") if index]
                if len(inside) <= 1 and (inside or len(slots) == 1):  # not the table of a tuple's pointers
                    slot = inside[0] if inside else 0
                    value = slots[slot] if slot < len(slots) else -1
            if value >= 0 and value not in seen:
                seen.add(value)
                rows.append((value, allocation, int(found[4]), int(found[3])))
    if rows:
        rows.sort()
        value, number, offset, size = (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
        capture.tables[TITLE if TITLE not in capture.tables else f"{TITLE} of {module}"] = Table(
            stage,
            "value",
            value.astype(np.int32),
            {"allocation": column(number), "offset": column(offset, unit="B"), "size": column(size, unit="B")},
        )
