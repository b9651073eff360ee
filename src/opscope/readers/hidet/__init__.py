"""Hidet's files: a dumped flow graph (JSON for its viewer), a printed one, and the folder of an optimization."""

from __future__ import annotations

import re
from pathlib import Path

from opscope.errors import BadInput, of_file
from opscope.ir import Capture, Origin, Pools, Stage, add_listings
from opscope.readers import json_text
from opscope.readers.source import Options, Source

from . import netron, printed
from .build import build
from .flow import Flow
from .folder import passes_in, read_folder

NAME = "hidet"
_TEXT = re.compile(rb"^(?:[^\n]*[\s:>|\]])?Graph\([^\n]*\)[ \t]*\{[ \t\r]*$", re.MULTILINE)
_LARGEST = 512 << 20


def match(source: Source) -> bool:
    if source.is_folder:
        return source.path is not None and _is_pass_folder(source.path)
    return _is_json(source.head) or is_printed_in(source.head)


def is_printed_in(text: bytes) -> bool:
    """Whether a graph begins somewhere in this text."""
    return b"Graph(" in text and _TEXT.search(text) is not None


def _is_json(head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:1] == b"{" and all(word in head for word in (b'"graphs"', b'"arguments"', b'"dataType"'))


def _is_pass_folder(folder: Path) -> bool:
    for entry in passes_in(folder):
        file = entry.json or entry.text
        if file is not None:
            head = Source.of(file).head
            return _is_json(head) or is_printed_in(head)
    return False


def read(source: Source, options: Options) -> Capture:
    if source.is_folder and source.path is not None:
        return read_folder(
            source.path, source.name, _parsed_file, options.profile, lambda flow: _origin(flow, "passes")
        )
    flows, problems = _parsed(source)
    pools = Pools()
    built = [build(flow, pools) for flow in flows]
    names = ["graph" if not i else f"graph {i + 1}" for i in range(len(built))]
    stages = [Stage(name, one.graph, warnings=one.warnings) for name, one in zip(names, built, strict=True)]
    capture = Capture(
        pools=pools, stages=stages, origin=_origin(flows[0], "dump" if _is_json(source.head) else "print")
    )
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        capture.warnings.append(f"another graph in the text could not be read: {problems[0]}{more}")
    for i, one in enumerate(built):
        add_listings(capture, i, one.listings)
        table = one.table(i)
        if table is not None:
            capture.tables[f"constants {names[i]}" if i else "constants"] = table
    return capture


def _origin(flow: Flow, how: str) -> Origin:
    """The files do not say the version, but each line of versions writes in its own way."""
    return Origin(format=NAME, framework="hidet", version=f"{flow.dialect}.x", how=how)


def _parsed_file(path: Path) -> Flow:
    return _parsed(Source.of(path))[0][0]


def _parsed(source: Source) -> tuple[list[Flow], list[str]]:
    """The graphs, and why others in the text could not be read."""
    try:
        if _is_json(source.head):
            return [netron.parse(json_text.parse(source.read(_LARGEST)))], []
        return printed.parse_all(source.lines(_LARGEST))
    except BadInput as error:
        raise of_file(error, source.name, "not a Hidet graph") from None
