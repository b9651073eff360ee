"""Source text for a capture: the Python files of its stacks and the generated code of its kernels.

A file from elsewhere names paths of another machine. Nothing is read from such a path by itself:
text comes only from folders that the user names (`--sources`), by the longest matching end of the path.
A live capture, made here and now, may read exactly the files it names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Capture, Graph, Groups, Stage, frozen
from opscope.ir.attributes import FILE
from opscope.ir.files import code_files, named_files

Find = Callable[[str], str | None]

_LARGEST_FILE = 8 << 20
_MOST_FILES = 200_000


def embed(capture: Capture, find: Find) -> None:
    """Put the text of every file that `find` has into the capture."""
    for file, last in named_files(capture).items():
        text = None if file in capture.sources else find(file)
        if text is None:
            continue
        lines = text.count("\n") + 1
        if lines < last:
            capture.warnings.append(
                f"{file}: the file found for it has {lines} lines, but the capture names line {last}: "
                "it is another version and was left out"
            )
        else:
            capture.sources[file] = text
    done: dict[int, Graph] = {}
    capture.stages[:] = [_with_code(stage, find, done) for stage in capture.stages]


def _with_code(stage: Stage, find: Find, done: dict[int, Graph]) -> Stage:
    """The stage with the code of its groups; stages that share a graph still do."""
    graph = stage.graph
    if id(graph) not in done:
        groups = {kind: _group_code(graph, g, find) for kind, g in graph.groups.items()}
        changed = any(groups[kind] is not graph.groups[kind] for kind in groups)
        done[id(graph)] = replace(graph, groups=groups) if changed else graph
    return stage if done[id(graph)] is graph else replace(stage, graph=done[id(graph)])


def _group_code(graph: Graph, groups: Groups, find: Find) -> Groups:
    pools = graph.pools
    code = np.array(groups.code)
    texts: dict[str, int] = {}
    for i in range(len(groups)):
        file = pools.attrs_of(int(groups.attrs[i])).get(FILE) if code[i] == 0 else None
        if isinstance(file, str) and file:
            if file not in texts:
                texts[file] = pools.string(find(file) or "")
            code[i] = texts[file]
    return replace(groups, code=frozen(code)) if (code != groups.code).any() else groups


def exact(path: str) -> str | None:
    """The text of exactly this file: for captures made on this machine."""
    return _text(Path(path))


def in_folders(folders: Sequence[Path]) -> Find:
    """Looks in folders, by the longest matching end of the path that a capture names."""
    by_name: dict[str, list[Path]] = {}
    for count, path in enumerate(_files(folders)):
        if count >= _MOST_FILES:
            raise BadInput(f"{folders[0]}: more than {_MOST_FILES:,} files; name a smaller folder with --sources")
        by_name.setdefault(path.name, []).append(path)

    def find(wanted: str) -> str | None:
        parts = _parts(wanted)
        candidates = by_name.get(parts[-1], []) if parts else []
        if not candidates:
            return None
        fits = {path: _same_end(parts, path.parts) for path in candidates}
        best = [path for path in candidates if fits[path] == max(fits.values())]
        texts = {_text(path) for path in best}
        # Two files that fit equally well and differ: neither is known to be the right one.
        return texts.pop() if len(texts) == 1 else None

    return find


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        if not folder.exists():
            raise BadInput(f"{folder}: no such folder (given with --sources)")
        if folder.is_file():
            yield folder.absolute()
            continue
        for root, inner, names in os.walk(folder.absolute()):
            inner[:] = sorted(d for d in inner if d not in (".git", "__pycache__", "node_modules"))
            for name in sorted(names):
                yield Path(root, name)


def _parts(path: str) -> tuple[str, ...]:
    return PureWindowsPath(path).parts if "\\" in path else PurePosixPath(path).parts


def _same_end(wanted: Sequence[str], found: Sequence[str]) -> int:
    count = 0
    for a, b in zip(reversed(wanted), reversed(found), strict=False):
        if a != b:
            break
        count += 1
    return count


def _text(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return None


def from_disk(path: str) -> str | None:
    """A plain file at exactly this absolute path. What has no size (as in /proc) is not read."""
    try:
        file = Path(path)
        if not file.is_absolute() or ".." in _parts(path) or not file.is_file():
            return None
        size = file.stat().st_size
        if not 0 < size <= _LARGEST_FILE:
            return None
        with file.open("rb") as opened:
            return opened.read(size).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


class NamedSources:
    """The texts of the files that a capture names, and of no others. `local`: they may be read from this machine."""

    def __init__(self, capture: Capture, *, local: bool) -> None:
        self._capture = capture
        self._local = local
        self._code = code_files(capture)
        self._lines = {**dict.fromkeys([*capture.sources, *self._code], 0), **named_files(capture)}

    def text(self, path: str) -> str | None:
        """The text of a file that the capture names, by exactly that name."""
        if path not in self._lines:
            return None
        code = self._code.get(path, 0)
        text = self._capture.sources.get(path) or (self._capture.pools.strings[code] if code else None)
        if text is None and self._local:
            text = from_disk(path)
            if text is not None and text.count("\n") + 1 < self._lines[path]:
                return None  # another version of the file: its lines would be the wrong ones
        return text
