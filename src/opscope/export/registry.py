"""Which exporter writes a file: its ending says so. Exporters are imported only when needed.

A new output is one module with `export(capture, path, options)` and one line below. Other packages add
theirs with an entry point in the group `opscope.exporters`, named by the ending.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, cast

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
    ".tensorboard": "opscope.export.tensorboard",
    ".svg": "opscope.export.picture",
    ".png": "opscope.export.picture",
    ".pdf": "opscope.export.picture",
    ".webm": "opscope.export.video",
}
PICTURES = (".svg", ".png", ".pdf")


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


@dataclass(frozen=True)
class Look:
    """How a picture is drawn; what is None or empty was not asked for."""

    phases: tuple[str, ...] = ()
    direction: str | None = None
    theme: str | None = None
    size: str | None = None  # "1600" or "1600x900", in pixels
    engine: str | None = None
    whole: bool = False  # every operator, repeats too
    open: tuple[str, ...] = ()  # scopes to open besides
    edges: tuple[str, ...] | None = None  # what is written on edges (edge_words.WORDS); None: what suits the graph
    parameters: bool = False  # parameters and constants as boxes of their own
    legend: bool = False  # what the colours mean
    play: bool = False  # .svg, .webm: the run, with what is in memory


@dataclass(frozen=True)
class Options:
    """Which stage to draw, how deep into the modules, and how."""

    stage: str | None = None
    depth: int | None = None
    ending: str = ""
    look: Look = Look()
    say: Callable[[str], None] = _warn  # what the user should know about a file that was written


class Exporter(Protocol):
    def export(self, capture: Capture, path: Path, options: Options) -> None: ...


def endings() -> list[str]:
    return [*BUILT_IN, *_plugins()]


def _plugins() -> dict[str, EntryPoint]:
    """Exporters of other packages by ending; none may take an ending that is taken."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        owner = entry.dist.name if entry.dist is not None else "a plugin"
        if not entry.name.startswith("."):
            raise OpscopeError(f"the exporter {entry.name!r} of {owner} is not named by an ending such as '.xyz'")
        if entry.name in BUILT_IN:
            raise OpscopeError(f"{owner} has an exporter of {entry.name}, which opscope writes itself: uninstall it")
        if entry.name in found:
            raise OpscopeError(f"two plugins have an exporter of {entry.name}: uninstall one of them ({owner})")
        found[entry.name] = entry
    return found


def export(
    capture: Capture,
    path: str | os.PathLike[str],
    *,
    stage: str | None = None,
    depth: int | None = None,
    format: str | None = None,
    say: Callable[[str], None] = _warn,
    **look: Any,
) -> None:
    """Write a capture. `format` (such as `.tensorboard`) takes the place of the ending of `path`; `look` is that of
    a picture (docs/pictures.md)."""
    path = Path(path)
    ending = format or path.suffix.lower()
    exporter = _exporter(path, ending)
    try:
        wanted = Look(**look)
    except TypeError:
        strange = sorted(set(look) - {field.name for field in fields(Look)})
        raise TypeError(f"export() has no option {', '.join(strange)}") from None
    other = replace(wanted, edges=None, parameters=False, legend=False) if ending == ".dot" else wanted
    if other != Look() and ending not in (*PICTURES, ".webm"):
        given = ", ".join(field.name for field in fields(Look) if getattr(other, field.name) != field.default)
        raise OpscopeError(f"{path}: only pictures ({', '.join(PICTURES)}) have a {given}")
    exporter.export(capture, path, Options(stage, depth, ending, wanted, say))


def check_output(path: Path) -> None:
    """Raise OpscopeError if nothing can be written there, before long work is done for it."""
    _exporter(path, path.suffix.lower())
    if not path.absolute().parent.is_dir():
        raise OpscopeError(f"{path}: there is no folder {path.parent}")


def _exporter(path: Path, ending: str) -> Exporter:
    plugins = _plugins()
    if ending in BUILT_IN:
        return cast("Exporter", importlib.import_module(BUILT_IN[ending]))
    if ending in plugins:
        return cast("Exporter", plugins[ending].load())
    raise OpscopeError(
        f"{path}: opscope cannot write {ending or 'a file without an ending'} (it writes {', '.join(endings())})"
    )
