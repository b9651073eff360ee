"""What a compiler did besides graphs: where it broke off, what it compiled again, how long it took."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from opscope.ir import Capture, Table, column
from opscope.ir.columns import frozen
from opscope.ir.enumerations import PHASES
from opscope.ir.facts import BREAKS, COMPILE_TIMES, RECOMPILES, Fact

from . import printed
from .compilation import GRAPHS, Compilation
from .modules import held, spelled

_WHERE = re.compile(r" at (.+):(\d{1,9})$")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d{1,9})$")
_RUNNING = re.compile(r'^ *File "[^"\n]+", line (\d{1,9}), in', re.MULTILINE)
_MOST_CROSSING = 100
# The phases of a compilation: what each is called, the column that has its time, and the columns of what is inside it.
_FORWARD = (
    ("Dynamo", "entire_frame_compile_time_s", ("backend_compile_time_s",)),
    ("AOTAutograd", "backend_compile_time_s", ("inductor_compile_time_s",)),
    ("Inductor: graphs", "inductor_compile_time_s", ("code_gen_time_s",)),
    ("Inductor: code", "code_gen_time_s", ()),
)
_BACKWARD = (
    ("AOTAutograd", "duration_us", ("inductor_compile_time_s",)),
    ("Inductor: graphs", "inductor_compile_time_s", ("code_gen_time_s",)),
    ("Inductor: code", "code_gen_time_s", ()),
)
_MOST_SECONDS = 1e7


class Break(NamedTuple):
    file: str
    line: int
    reason: str
    compilation: Compilation
    lines: frozenset[int] = frozenset()  # of all functions that were running


def add_outcome(capture: Capture, compilations: list[Compilation], suffixes: bool) -> None:
    # A frame that is tried twice breaks twice at one place.
    breaks = list(
        {(id(b.compilation), *b[:3]): b for b in (_break(t, e) for e in compilations for t in e.breaks)}.values()
    )
    again = [entry for entry in compilations if entry.id.compile > 0]
    seams = [_seam(found, compilations, suffixes) for found in breaks]
    _add(
        capture,
        BREAKS,
        {
            "file": [b.file for b in breaks],
            "line": [b.line for b in breaks],
            "reason": [b.reason for b in breaks],
            "frame": [str(b.compilation) for b in breaks],
            "before": [seam[0] for seam in seams],
            "after": [seam[1] for seam in seams],
            "crossing": [seam[2] for seam in seams],
        },
    )
    _add(capture, RECOMPILES, {"frame": [str(e) for e in again], "reason": [e.why for e in again]})
    _add_times(capture, compilations)
    capture.warnings += [f"{b.file}:{b.line}: graph break: {b.reason}" for b in breaks]
    capture.warnings += [
        f"frame {entry} was compiled again: {entry.why or 'the log does not say why'}" for entry in again
    ]
    capture.warnings += [
        f"frame {entry} was not compiled: {_line(entry.failed)}" for entry in compilations if entry.failed
    ]


def _break(text: str, entry: Compilation) -> Break:
    """The reason follows the sentence that says what Dynamo was doing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    where = _WHERE.search(lines[0]) if lines else None
    first = next((line.partition(":")[2].strip() for line in lines if line.startswith("Graph Break Reason:")), "")
    at = next((i for i, line in enumerate(lines) if line.startswith("Graph Break Reason:")), 0)
    after = lines[at + 1] if at + 1 < len(lines) and not lines[at + 1].startswith(("User code", "File ")) else ""
    reason = after if first.endswith((":", "encountered")) or first.startswith("Encountered graph break") else first
    reason = reason or first or "not given"
    if where is None:
        return Break("", 0, reason, entry)
    stack = text.partition("User code traceback:")[2].partition("\nTraceback ")[0]
    running = frozenset(int(line) for line in _RUNNING.findall(stack)) | {int(where[2])}
    return Break(where[1], int(where[2]), reason, entry, running)


def _seam(found: Break, compilations: list[Compilation], suffixes: bool) -> tuple[str, str, str]:
    """The stages on both sides of a break, and what goes from one to the other."""
    resumed = next((e for e in compilations if e.rank == found.compilation.rank and _resumes(e, found)), None)

    def stage(entry: Compilation | None) -> str:
        if entry is None or "dynamo_output_graph" not in entry.texts:
            return ""
        name = GRAPHS["dynamo_output_graph"]
        return f"{name} [{entry}]" if suffixes else name

    return stage(found.compilation), stage(resumed), "\n".join(_given(resumed) if resumed else [])


def _resumes(entry: Compilation, found: Break) -> bool:
    """Dynamo names the function that goes on after a break by the line of the break."""
    name = _RESUMED.search(entry.function)
    return name is not None and int(name[2]) in found.lines and entry.id.frame > found.compilation.id.frame


def _given(entry: Compilation) -> Iterable[str]:
    """The inputs of a graph that no module holds."""
    content = entry.texts.get("dynamo_output_graph")
    graph = printed.parse(content.text) if content is not None else None
    kept = {spelled(source) for source in entry.sources if held(source, {})}
    inputs = [i for i in graph.inputs if spelled(i.name) not in kept] if graph is not None else []
    return [f"{i.name.strip('_').removeprefix('L_')} {i.annotation}".strip() for i in inputs[:_MOST_CROSSING]]


def _add_times(capture: Capture, compilations: list[Compilation]) -> None:
    rows: list[tuple[str, str, int, str, float]] = []
    for entry in compilations:
        for metrics in entry.metrics:
            backward = bool(metrics["backward"])
            for phase, own, inside in _BACKWARD if backward else _FORWARD:
                whole = _seconds(metrics, own)
                rest = [_seconds(metrics, name) for name in inside]
                if whole is not None:
                    seconds = max(0.0, whole - sum(part or 0.0 for part in rest))
                    direction = PHASES.index("backward" if backward else "forward")
                    rows.append((str(entry), entry.function, direction, phase, seconds))
    if rows:
        frames, functions, directions, phases, seconds = (list(values) for values in zip(*rows, strict=True))
        columns = {
            "frame": column(frames),
            "function": column(functions),
            "direction": column(np.array(directions, dtype=np.int64)),
            "phase": column(phases),
            "time": column(np.array(seconds), "s"),
        }
        capture.add(Table(0, "row", frozen(range(len(rows))), columns, COMPILE_TIMES.name))


def _seconds(metrics: dict[str, Any], name: str) -> float | None:
    value = metrics.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    seconds = value / 1e6 if name.endswith("_us") else float(value)
    return seconds if 0 <= seconds < _MOST_SECONDS else None


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


def _add(capture: Capture, fact: Fact, columns: dict[str, list[Any]]) -> None:
    count = len(next(iter(columns.values())))
    if count:
        found = {name: column(_values(values)) for name, values in columns.items()}
        capture.add(Table(0, "row", frozen(range(count)), found, fact.name))


def _values(values: list[Any]) -> Any:
    return np.array(values, dtype=np.int64) if values and isinstance(values[0], int) else values
