"""Source text for a capture: the Python files of its stacks and the generated code of its kernels.

A capture names paths, and whoever made it may have named any. So a name alone opens nothing: text comes only from files
that look like source, below folders that the user named (`--sources`, the current folder) or, for what this process
recorded itself, from what this process has loaded or generated. Links that lead out of these folders are not followed.
What is there and is not read is said.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

import numpy as np

from opscope.errors import BadInput, one_line
from opscope.ir import Capture, Graph, Groups, Stage, frozen
from opscope.ir.facts import FILES
from opscope.ir.files import code_files, files_by_group, named_files


class Refused(NamedTuple):
    """A file that is there, and why it is not read."""

    why: str


Find = Callable[[str], "str | Refused | None"]

_LARGEST_FILE = 8 << 20
_MOST_FILES = 200_000
_MOST_SAID = 5  # of refused files
_OUTSIDE = "it lies outside the folders whose files may be read: name its folder with --sources"
_NO_SOURCE = "it does not look like source code"
_ENDINGS = frozenset(
    f".{ending}"
    for words in (
        "py pyi pyx ipynb c cc cpp cxx h hh hpp inc inl cu cuh hip cl metal ptx sass ll llir mlir ttir ttgir",
        "s asm jl lua rs go js ts java swift",
    )
    for ending in words.split()
)


def embed(capture: Capture, find: Find) -> None:
    """Put the text of every file that `find` has into the capture."""
    refused: dict[str, str] = {}
    for file, last in named_files(capture).items():
        text = None if file in capture.sources else find(file)
        if isinstance(text, Refused):
            refused[file] = text.why
        if not isinstance(text, str):
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
    capture.stages[:] = [_with_code(capture, number, find, done, refused) for number in range(len(capture.stages))]
    for why in dict.fromkeys(refused.values()):
        files = [file for file, reason in refused.items() if reason == why]
        more = f" and {len(files) - _MOST_SAID} more" if len(files) > _MOST_SAID else ""
        capture.warnings.append(one_line(f"not read: {', '.join(files[:_MOST_SAID])}{more}: {why}"))


def _with_code(capture: Capture, number: int, find: Find, done: dict[int, Graph], refused: dict[str, str]) -> Stage:
    """A stage with the code of its kernels; stages that share a graph still do."""
    stage = capture.stages[number]
    graph = stage.graph
    if id(graph) not in done:
        groups = dict(graph.groups)
        for table in capture.facts(FILES.name, number):
            kind = table.by.partition(":")[2]
            groups[kind] = _group_code(graph, groups[kind], files_by_group(table), find, refused)
        changed = any(groups[kind] is not graph.groups[kind] for kind in groups)
        done[id(graph)] = replace(graph, groups=groups) if changed else graph
    return stage if done[id(graph)] is graph else replace(stage, graph=done[id(graph)])


def _group_code(
    graph: Graph, groups: Groups, files: Iterable[tuple[int, str]], find: Find, refused: dict[str, str]
) -> Groups:
    pools = graph.pools
    code = np.array(groups.code)
    texts: dict[str, int] = {}
    for group, file in files:
        if code[group] == 0:
            if file not in texts:
                text = find(file)
                if isinstance(text, Refused):
                    refused[file] = text.why
                texts[file] = pools.string(text if isinstance(text, str) else "")
            code[group] = texts[file]
    return replace(groups, code=frozen(code)) if (code != groups.code).any() else groups


def exact(path: str) -> str | Refused | None:
    """The text of exactly this file: for captures that this process recorded itself.

    Even they may name what a stranger wrote into a model: the file must be one that a module was loaded from, or source
    code where this process imports from or generates code.
    """
    if not os.path.isabs(path) or not os.path.lexists(path):
        return None
    found = _allowed(path, _own_folders())
    return _text(Path(path)) if isinstance(found, Refused) and path in _loaded_files() else found


def _loaded_files() -> set[object]:
    # Not `getattr`: a lazy module would be loaded by it.
    return {getattr(module, "__dict__", {}).get("__file__") for module in [*sys.modules.values()]}


def _own_folders() -> list[str]:
    """Where this process imports from, and where frameworks keep the code that they generate."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    generated = [os.environ.get(name, "") for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "JITTOR_HOME")]
    folders = [
        *sys.path,
        os.path.dirname(main) if isinstance(main, str) else "",
        *generated,
        tempfile.gettempdir(),
        *(os.path.expanduser(f"~/{name}") for name in (".cache", ".triton", ".hidet")),
    ]
    return [os.getcwd(), *(folder for folder in folders if folder and os.path.isdir(folder))]


def in_folders(folders: Sequence[Path]) -> Find:
    """Looks in folders, by the longest matching end of the path that a capture names."""
    by_name: dict[str, list[Path]] = {}
    for count, path in enumerate(_files(folders)):
        if count >= _MOST_FILES:
            raise BadInput(f"{folders[0]}: more than {_MOST_FILES:,} files; name a smaller folder with --sources")
        by_name.setdefault(path.name, []).append(path)

    roots = [str(folder) for folder in folders]

    def find(wanted: str) -> str | Refused | None:
        parts = _parts(wanted)
        candidates = by_name.get(parts[-1], []) if parts else []
        if not candidates:
            return None
        fits = {path: _same_end(parts, path.parts) for path in candidates}
        best = [path for path in candidates if fits[path] == max(fits.values())]
        texts = {_allowed(str(path), roots) for path in best}
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


def _allowed(path: str, roots: Iterable[str]) -> str | Refused | None:
    """The text of a file below one of these folders that looks like source; links must not lead out of them."""
    real = os.path.realpath(path)
    if not os.path.exists(real):
        return None
    folders = [_real(root) for root in roots]
    if not any(_is_below(real, folder) for folder in folders):
        return Refused(_OUTSIDE)
    if os.path.splitext(real)[1].lower() not in _ENDINGS and real not in folders:
        return Refused(_NO_SOURCE)
    return _text(Path(real))


@lru_cache(maxsize=256)  # asked for every file
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def _is_below(path: str, folder: str) -> bool:
    # The root of the file system is no folder that anybody names: everything lies below it.
    return path == folder or (folder != os.path.dirname(folder) and path.startswith(folder + os.sep))


def _text(path: Path) -> str | Refused | None:
    """The text of a plain file. What has no size, as in /proc, is not read, and nothing is waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or not 0 < about.st_size <= _LARGEST_FILE:
                return None
            data = file.read(about.st_size)
    except (OSError, ValueError):
        return None
    return Refused(_NO_SOURCE) if b"\0" in data else data.decode("utf-8", "replace")


class NamedSources:
    """The texts of the files that a capture names, and of no others. `folders`: where they may be read from."""

    def __init__(self, capture: Capture, folders: Sequence[Path]) -> None:
        self._capture = capture
        self._roots = [str(folder) for folder in folders]
        self._code = code_files(capture)
        self._lines = {**dict.fromkeys([*capture.sources, *self._code], 0), **named_files(capture)}

    def text(self, path: str) -> str | Refused | None:
        """The text of a file that the capture names, by exactly that name."""
        if path not in self._lines:
            return None
        code = self._code.get(path, 0)
        text = self._capture.sources.get(path) or (self._capture.pools.strings[code] if code else None)
        if text is not None or not self._roots or "\0" in path:
            return text
        if not os.path.isabs(path) or ".." in _parts(path):
            return None
        found = _allowed(path, self._roots)
        if isinstance(found, str) and found.count("\n") + 1 < self._lines[path]:
            return None  # another version of the file: its lines would be the wrong ones
        return found
