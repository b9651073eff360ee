"""Which exporter writes a file: its ending says so. Exporters are imported only when needed.

A new output is one module with `export(capture, path, options)` and one line below. Other packages add
theirs with an entry point in the group `opscope.exporters`, named by the ending.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

from opscope.errors import OpscopeError
from opscope.ir import Capture

GROUP = "opscope.exporters"

BUILT_IN = {
    ".opscope": "opscope.export.opscope_file",
    ".dot": "opscope.export.dot",
    ".mmd": "opscope.export.mermaid",
    ".parquet": "opscope.export.parquet",
    ".html": "opscope.export.html",
    ".json": "opscope.export.model_explorer",
}


@dataclass(frozen=True)
class Options:
    """Which stage to draw, and how deep into the modules."""

    stage: str | None = None
    depth: int | None = None


class Exporter(Protocol):
    def export(self, capture: Capture, path: Path, options: Options) -> None: ...


def endings() -> list[str]:
    return [*BUILT_IN, *(entry.name for entry in entry_points(group=GROUP))]


def export(
    capture: Capture, path: str | os.PathLike[str], *, stage: str | None = None, depth: int | None = None
) -> None:
    path = Path(path)
    _exporter(path).export(capture, path, Options(stage, depth))


def _exporter(path: Path) -> Exporter:
    ending = path.suffix.lower()
    plugins = {entry.name: entry for entry in entry_points(group=GROUP)}
    double = [name for name in plugins if name in BUILT_IN]
    if double:
        raise OpscopeError(f"an exporter plugin claims {double[0]}, which opscope writes itself: uninstall it")
    if ending in BUILT_IN:
        return cast("Exporter", importlib.import_module(BUILT_IN[ending]))
    if ending in plugins:
        return cast("Exporter", plugins[ending].load())
    raise OpscopeError(
        f"{path}: opscope cannot write {ending or 'a file without an ending'} (it writes {', '.join(endings())})"
    )
