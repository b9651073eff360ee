"""The capture of what was watched."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, cast

from opscope.errors import BadInput, one_line
from opscope.ir import Capture, Origin, column, frozen
from opscope.ir.facts import RECOMPILES
from opscope.readers.torch.compiler import capture_of
from opscope.sources import embed, exact
from opscope.tracers.torch.private import the_torch

from .watch import Watch


def _first_of_ours(capture: Capture, watch: Watch) -> None:
    """Torch numbers compilations by code. What was compiled apart from the user's own, or of code that a model before
    ran, is not the first of its code, and is compiled again for no reason: that is no recompilation."""
    seen: dict[int, int] = {}
    for record in watch.stream.records:
        frame, number = (record.metadata.get(key) for key in ("frame_id", "frame_compile_id"))
        if isinstance(frame, int) and isinstance(number, int):
            seen[frame] = min(number, seen.get(frame, number))
    first = {f"{frame}/{number}" for frame, number in seen.items()}
    for title, table in list(capture.tables.items()):
        if table.fact != RECOMPILES.name:
            continue
        frames, reasons = (list(table.columns[name].values) for name in ("frame", "reason"))
        rows = [i for i, frame in enumerate(frames) if frame not in first or reasons[i]]
        dropped = tuple(f"frame {frame} was compiled again" for i, frame in enumerate(frames) if i not in rows)
        del capture.tables[title]
        if rows:
            columns = {name: column([str(held.values[i]) for i in rows]) for name, held in table.columns.items()}
            capture.tables[title] = replace(table, index=frozen(range(len(rows))), columns=columns)
        capture.warnings[:] = [text for text in capture.warnings if not (dropped and text.startswith(dropped))]


def notes(watch: Watch) -> list[str]:
    """Where something compiled was called and nothing compiled ran."""
    found: list[str] = []
    reasons = failures(watch)
    for missed, count in watch.calls.missed.items():
        what = f"{missed.name}{f' ({missed.where})' if missed.where else ''}"
        times = f" in {count} calls" if count > 1 else ""
        if "/torch/_higher_order_ops/" in missed.where.replace("\\", "/"):
            continue  # torch.cond and its kin, which the user has not compiled
        if missed.backend not in ("", "inductor"):
            found.append(
                f"{what} is compiled with the backend {missed.backend!r}, which makes no kernels that opscope knows: "
                "what it ran is recorded operator by operator"
            )
            continue
        why = "; ".join(reasons) or "torch does not say why (TORCH_LOGS=dynamo does)"
        found.append(f"torch.compile ran no compiled code of {what}{times}, it ran as written: {why}")
    return found


def failures(watch: Watch) -> list[str]:
    """Why frames were not compiled, by torch's own account."""
    found: dict[str, None] = {}
    for record in watch.stream.records:
        content = record.metadata.get("compilation_metrics")
        if isinstance(content, dict):
            metrics = cast("dict[str, Any]", content)
            reason = metrics.get("fail_reason")
            if reason:
                where = f" ({metrics.get('fail_user_frame_filename')}:{metrics.get('fail_user_frame_lineno')})"
                found[one_line(str(reason))[:300] + (where if metrics.get("fail_user_frame_filename") else "")] = None
    return list(found)[:3]


def finished(watch: Watch, origin: Origin) -> Capture | None:
    """What the records say; None where nothing was compiled."""
    try:
        capture = capture_of(watch.stream.lines(), origin)
    except BadInput:
        return None
    _first_of_ours(capture, watch)
    capture.warnings += [f"not everything could be watched: {said}" for said in watch.trouble]
    root = os.path.dirname(the_torch().__file__) + os.sep
    embed(capture, lambda path: None if path.startswith(root) else exact(path))
    return capture
