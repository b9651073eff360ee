"""Where the compiler's words lie: a log, a folder of logs, a `torch_compile_debug` folder, one output code."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from opscope.errors import BadInput
from opscope.readers.source import Source

from . import fusion
from .compilation import Compilation, Part, Text
from .log import CompileId, Log, parse

_LOG = re.compile(r"^dedicated_log_torch_trace_(?:rank_(\d+)_)?.*\.log(?:\.gz|\.zst)?$")
_TRACE = re.compile(r"torch_trace.*\.log(?:\.gz|\.zst)?$")
_RUN = re.compile(r"^run_\d{4}_.*pid_\d+")
_MODEL = re.compile(r"^(.+?)__(\d{1,9})(?:_(forward|backward|inference|joint))?_(\d{1,9})(?:\.(\d{1,9}))?$")
_INSIDE = ("output_code.py", "fx_graph_readable.py", "fx_graph_transformed.py", "ir_post_fusion.txt")
_WRITTEN_FOR = re.compile(r"^# AOT ID: \['([^']*)'\]", re.MULTILINE)
_MOST_FILES = 10_000
_LARGEST = 1 << 28  # bytes of one file of a debug folder


class Found(NamedTuple):
    """What was compiled, by one process after the other."""

    compilations: list[Compilation]
    entries: int
    warnings: list[str]


# -- logs ---------------------------------------------------------------------------------------------


def of_log(lines: Iterable[bytes]) -> Found:
    log = parse(lines)
    warnings = [f"{log.damaged:,} lines of the log are damaged and were left out"] if log.damaged else []
    return Found(compilations(log), len(log.entries), warnings)


def compilations(log: Log, rank: str = "") -> list[Compilation]:
    """By frame and compilation. Of several tries at one, the last that gave a graph counts."""
    found: dict[tuple[int, int, int], Compilation] = {}
    forgotten: list[Compilation] = []
    for entry in log.entries:
        if entry.id is None:
            continue
        key = (entry.id.frame, entry.id.compile, entry.id.autograd)
        known = found.get(key)
        if known is not None and entry.kind == "dynamo_start" and known.parts and entry.id.attempt <= known.id.attempt:
            forgotten.append(known)  # torch._dynamo.reset(): the numbers begin again
            known = None
        if known is None or (entry.id.attempt > known.id.attempt and not known.parts):
            fresh = Compilation(CompileId(*entry.id), rank)
            if known is not None:
                fresh.breaks, fresh.sources = known.breaks, known.sources
                fresh.function, fresh.why, fresh.metrics = known.function, known.why, known.metrics
                fresh.called = known.called
            known = found[key] = fresh
        known.add(entry)
    return [*forgotten, *found.values()]


def is_folder_of_logs(source: Source) -> bool:
    return source.is_folder and any(_is_log(path.name) for path in _children(source.path))


def _is_log(name: str) -> bool:
    return _LOG.match(name) is not None or _TRACE.search(name) is not None


def of_folder(source: Source) -> Found:
    """Every log in a folder: of several ranks, or of the processes of several runs."""
    paths = [path for path in _children(source.path) if _is_log(path.name)]
    logs: list[tuple[str, list[Compilation]]] = []
    warnings: list[str] = []
    entries = 0
    for path in paths:
        part = Source.of(path).unpacked()
        with part.open() as file:
            log = parse(file)
        entries += len(log.entries)
        if log.damaged:
            warnings.append(f"{path.name}: {log.damaged:,} lines are damaged and were left out")
        found = compilations(log)
        if any(not entry.is_empty for entry in found):
            named = _LOG.match(path.name)
            rank = next((entry.rank for entry in log.entries if entry.rank is not None), None)
            number = named[1] if named and named[1] else None if rank is None else str(rank)
            logs.append((f"rank {number}" if number is not None else "", found))
    logs.sort(key=lambda row: (row[0] == "", int(row[0][5:] or 0) if row[0] else 0))
    taken: set[str] = set()
    for i, (label, found) in enumerate(logs):
        label = label if label and label not in taken else f"log {i + 1}" if len(logs) > 1 else ""
        taken.add(label)
        for entry in found:
            entry.rank = label
    return Found([entry for _, found in logs for entry in found], entries, warnings)


# -- torch_compile_debug ------------------------------------------------------------------------------


def is_debug_folder(source: Source) -> bool:
    return source.is_folder and next(_models(source.path), None) is not None


def _models(folder: Path | None) -> Iterator[Path]:
    """The folders that hold one graph each: the folder itself, or those at most three levels below it."""
    if folder is None:
        return
    if any((folder / name).is_file() for name in _INSIDE):
        yield folder
        return
    for child in _children(folder):
        if not child.is_dir() or child.is_symlink():
            continue
        if child.name in ("torch_compile_debug", "torchinductor") or _RUN.match(child.name):
            yield from _models(child)
        elif _MODEL.match(child.name) and any((child / name).is_file() for name in _INSIDE):
            yield child


def of_debug_folder(source: Source) -> Found:
    """`TORCH_COMPILE_DEBUG=1`: what Inductor was given, what it made of it, its schedule and its code."""
    found: dict[tuple[str, str], Compilation] = {}
    warnings: list[str] = []
    folders = sorted(_models(source.path), key=_written)
    runs = {folder.parent for folder in folders}
    order = {run: i for i, run in enumerate(sorted(runs))}
    rounds = _rounds(source.path, folders)
    for i, folder in enumerate(folders):
        named = _MODEL.match(folder.name)
        key = (str(folder.parent), f"{named[1]}{named[2]}" if named else folder.name)
        if key not in found:
            label = f"run {order[folder.parent] + 1}" if len(runs) > 1 else ""
            number = int(named[2]) if named else len(found)
            found[key] = Compilation(CompileId(number, 0, 0), label)
        part = _part(folder, named[3] if named and named[3] else "", warnings)
        if rounds is not None:
            part.why, part.origins = rounds[i].why, rounds[i].origins
        found[key].parts.append(part)
    return Found(list(found.values()), len(folders), warnings)


def _written(folder: Path) -> tuple[str, int, str]:
    """In the order in which they were written: the number after the dot."""
    named = _MODEL.match(folder.name)
    return str(folder.parent), int(named[5] or named[4]) if named else 0, folder.name


def _part(folder: Path, way: str, warnings: list[str]) -> Part:
    part = Part(way=way)
    names = (*_INSIDE, "ir_pre_fusion.txt")
    texts = {name: _read(folder / name) for name in names}
    odd = [name for name in names if not _is_plain(folder / name) and os.path.lexists(folder / name)]
    warnings += [f"{folder.name}/{name} is a link, a folder or no file: it was not read" for name in odd]
    if texts["fx_graph_readable.py"]:
        part.before = Text(texts["fx_graph_readable.py"])
    if texts["fx_graph_transformed.py"]:
        part.after = Text(texts["fx_graph_transformed.py"])
    part.code, part.file = texts["output_code.py"], str(folder / "output_code.py")
    part.scheduled, part.unscheduled = texts["ir_post_fusion.txt"], texts["ir_pre_fusion.txt"]
    mappings = _read(folder / "inductor_provenance_tracking_node_mappings.json")
    if mappings:
        try:
            part.map(json.loads(mappings))
        except (ValueError, RecursionError):
            warnings.append(f"{folder.name}: its node mappings are damaged and were left out")
    return part


def _rounds(root: Path | None, folders: list[Path]) -> list[fusion.Round] | None:
    """What the scheduler said about each graph, if the output of `TORCH_LOGS=+fusion` lies beside."""
    places = {root, *(folder.parent for folder in folders), *(folder.parent.parent for folder in folders)}
    for place in sorted(str(place) for place in places if place is not None):
        for path in _children(Path(place)):
            if path.suffix in (".log", ".txt") and path.is_file() and not _is_log(path.name):
                rounds = fusion.parse(_read(path).splitlines())
                if len(rounds) == len(folders):
                    return rounds
    return None


# -- one output code ----------------------------------------------------------------------------------


def is_output_code(source: Source) -> bool:
    head = source.head
    return (
        (b"AsyncCompile" in head or b"async_compile" in head)
        and b"torch._inductor" in head
        and (b"# AOT ID: [" in head[:300] or b"async_compile = AsyncCompile()" in head or b"empty_strided_c" in head)
    )


def of_output_code(source: Source) -> Found:
    text = source.read(_LARGEST).decode("utf-8", "replace")
    named = _WRITTEN_FOR.search(text[:2000])
    way = next((word for word in ("forward", "backward", "inference") if named and named[1].endswith(word)), "")
    if "def call(" not in text:
        raise BadInput("it has no function `call`: the end of the file is missing")
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        raise BadInput(f"it is not the whole of Inductor's code, or was changed{where}") from None
    compilation = Compilation(CompileId(0, 0, 0))
    compilation.parts.append(Part(code=text, file=source.name, way=way))
    return Found([compilation], 1, [])


# -- files --------------------------------------------------------------------------------------------


def _children(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    try:
        children = sorted(folder.iterdir())
    except OSError:
        return []
    if len(children) > _MOST_FILES:
        raise BadInput(f"{len(children):,} files; {_MOST_FILES:,} are the most")
    return children


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _read(path: Path) -> str:
    """A file of the folder that was named; one that lies elsewhere is not read."""
    if not _is_plain(path):
        return ""
    return Source.of(path).unpacked().read(_LARGEST).decode("utf-8", "replace")
