"""The folder that `save_graph_instrument` fills: `0_Origin.json`, `1_FoldConstantPass.json`, … as one stage each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from opscope.errors import BadInput
from opscope.ir import Capture, Origin, Pools, Stage, add_listings
from opscope.readers.source import Source

from . import printed
from .build import Built, build
from .flow import Flow
from .fusion import open_fused
from .times import fitted

_FILE = re.compile(r"(\d{1,6})_(\w+)\.(json|txt)$")
_LARGEST_LOG = 4 << 20
_LARGEST_TEXT = 256 << 20
_MOST_FILES = 10_000


class Pass(NamedTuple):
    number: int
    name: str
    json: Path | None
    text: Path | None

    @property
    def stem(self) -> str:
        return f"{self.number}_{self.name}"


def passes_in(folder: Path) -> list[Pass]:
    found: dict[tuple[int, str], dict[str, Path]] = {}
    for path in sorted(folder.iterdir())[:_MOST_FILES]:
        match = _FILE.match(path.name)
        if match and path.is_file():
            found.setdefault((int(match[1]), match[2]), {})[match[3]] = path
    return [Pass(*key, files.get("json"), files.get("txt")) for key, files in sorted(found.items())]


def read_folder(
    folder: Path, name: str, parse: Callable[[Path], Flow], profile: Path | None, origin: Callable[[Flow], Origin]
) -> Capture:
    passes = passes_in(folder)
    capture = Capture(pools=Pools())
    seconds, where = _seconds(folder, [entry.name for entry in passes if entry.number > 0], profile)
    if where:
        capture.warnings.append(f"the seconds of the passes were taken from {where}")
    before: Built | None = None
    content = b""
    for number, entry in enumerate(passes):
        data = _content(entry)
        if before is None or data != content:
            flow = _flow(entry, parse)
            lost = open_fused(before.flow, flow) if before is not None else 0
            before, content = build(flow, capture.pools), data
            warnings = (*before.warnings, *_lost(lost))
            table = before.table(number)
            if table is not None:
                capture.tables[f"constants {entry.stem}" if number else "constants"] = table
        else:
            warnings = ()
        after = number - 1 if number else None
        took = seconds.get(number) if after is not None else None
        capture.stages.append(Stage(entry.stem, before.graph, after, took, warnings=warnings))
        add_listings(capture, number, before.listings)
    if before is None:
        raise BadInput(f"{name}: a folder without graphs of Hidet's passes")
    missing = sorted(set(range(passes[0].number, passes[-1].number)) - {entry.number for entry in passes})
    if missing:
        capture.warnings.append(f"files of the passes {', '.join(map(str, missing[:10]))} are not in the folder")
    capture.origin = origin(before.flow)
    return capture


def _lost(count: int) -> Iterator[str]:
    if count:
        yield f"{count} fused operators name their contents, but the previous stage does not have them"


def _content(entry: Pass) -> bytes:
    return b"\0".join(Source.of(path).read() for path in (entry.json, entry.text) if path is not None)


def _flow(entry: Pass, parse: Callable[[Path], Flow]) -> Flow:
    """The JSON has the tasks and what is fused, the text has devices, hashes and shared memory: both together."""
    if entry.json is None:
        assert entry.text is not None
        return parse(entry.text)
    flow = parse(entry.json)
    if entry.text is None:
        return flow
    try:
        told = printed.parse(_text(entry.text))
    except BadInput:
        return flow
    if [operator.op for operator in told.operators] != [operator.op for operator in flow.operators]:
        return flow
    flow.text = told.text
    for mine, theirs in zip(flow.operators, told.operators, strict=True):
        mine.shares = theirs.shares
    for group, others in ((flow.inputs, told.inputs), (flow.constants, told.constants)):
        if len(group) == len(others):
            for mine, theirs in zip(group, others, strict=True):
                mine.device, mine.digest = theirs.device, theirs.digest
    return flow


def _seconds(folder: Path, names: list[str], profile: Path | None) -> tuple[dict[int, float], str]:
    """By stage, and where they come from: the file that was named, or one in the folder or next to it."""
    if profile is not None:
        found = fitted(names, _text(profile))
        if found is None:
            raise BadInput(f"{profile}: not the times of these passes (lines such as `{names[0]} 0.027 seconds`)")
        return dict(enumerate(found, start=1)), ""
    if not names:
        return {}, ""
    for path in _logs(folder):
        found = fitted(names, _text(path))
        if found is not None:
            beside = path.name if path.parent == folder else f"{path.name}, next to the folder"
            return dict(enumerate(found, start=1)), beside
    return {}, ""


def _text(path: Path) -> str:
    return Source.of(path).unpacked().read(_LARGEST_TEXT).decode("utf-8", "replace")


def _logs(folder: Path) -> Iterator[Path]:
    for place in (folder, folder.absolute().parent):
        try:
            inside = sorted(place.iterdir())[:_MOST_FILES]
        except OSError:
            continue
        for path in inside:
            is_log = path.suffix in (".log", ".out") or (path.suffix == ".txt" and not _FILE.match(path.name))
            if is_log and path.is_file() and path.stat().st_size <= _LARGEST_LOG:
                yield path
