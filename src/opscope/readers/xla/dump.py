"""The folder that `XLA_FLAGS=--xla_dump_to=DIR` fills: each pass is a stage, made from the one before.

With `--xla_dump_hlo_pass_re=.*` there is a file for every pass that XLA ran, most of them equal to the one before:
equal modules are read once and share one graph. Without it there are the modules before and after all passes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from opscope.errors import BadInput
from opscope.ir import Capture, Graph, Origin, Pools, Stage, add_listings
from opscope.readers.source import Source

from . import linking, proto, reasons, text
from .build import Builder
from .listing import listing
from .memory import buffer_table

_PASS = re.compile(
    r"(?P<module>module_\d+\..+?)\.(?P<number>\d{4,})\.(?P<pipeline>.+?)\.after_(?P<name>.+?)(?:\.before_(?P<next>.+))?\Z"
)
_WHOLE = re.compile(
    r"(?P<module>module_\d+\..+?)\.(?P<name>before_optimizations|(?:.+_)?after_optimizations"
    r"|after_spmd_partitioner|before_config_assignment|(?:.+_)?(?:before|after)_[\w\-]+)\Z"
)
_FORMS = (".hlo.pb", ".hlo.pb.gz", ".hlo.pb.zst", ".txt", ".txt.gz", ".hlo", ".hlo.txt")
_FIRST, _LAST = "before_optimizations", "after_optimizations"
_MOST_FILES = 200_000
_MOST_LISTED = 64 << 20  # bytes of text that is kept beside the graphs


class Written(NamedTuple):
    """One module at one moment of its compilation."""

    module: str
    order: tuple[int, int]  # before all passes, a pass by its number, after all of them
    title: str
    path: Path
    text: Path | None


def is_dump(source: Source) -> bool:
    assert source.path is not None
    return any(_written(path) is not None for path in _files(source.path))


def _files(folder: Path) -> Iterator[Path]:
    for count, path in enumerate(folder.iterdir()):
        if count >= _MOST_FILES:
            raise BadInput(f"{folder}: more than {_MOST_FILES:,} files: name a folder with one dump")
        yield path


def _written(path: Path) -> Written | None:
    form = next((form for form in _FORMS if path.name.endswith(form)), None)
    if form is None:
        return None
    stem = path.name[: -len(form)]
    if found := _PASS.match(stem):
        name = "start" if found["name"] == "pipeline-start" else found["name"]
        title = f"{found['number']} {found['pipeline']}: {name}"
        return Written(found["module"], (1, int(found["number"])), title, path, None)
    if found := _WHOLE.match(stem):
        name = found["name"]
        place = 0 if name == _FIRST else 2 if name.endswith(_LAST) else 3
        return Written(found["module"], (place, 0), name.replace("_", " "), path, None)
    return None


def modules_in(folder: Path) -> dict[str, list[Written]]:
    """The modules of a dump, each with what was written of it, in the order of the passes."""
    best: dict[tuple[str, str], dict[str, Written]] = {}
    for path in sorted(_files(folder)):
        found = _written(path)
        if found is not None:
            kind = "pb" if ".hlo.pb" in path.name else "txt"
            best.setdefault((found.module, found.title), {})[kind] = found
    modules: dict[str, list[Written]] = {}
    for forms in best.values():
        chosen = forms.get("pb") or forms["txt"]
        own_text = forms.get("txt")
        if chosen.order[0] == 3 and not _is_module(chosen.path):
            continue  # another file of XLA's with such a name
        chosen = chosen._replace(text=own_text.path if own_text is not None else None)
        modules.setdefault(chosen.module, []).append(chosen)
    for rows in modules.values():
        rows.sort(key=lambda row: (row.order, row.title))
    return dict(sorted(modules.items(), key=lambda item: _number(item[0])))


def _is_module(path: Path) -> bool:
    head = Source.of(path).unpacked().head
    return head.startswith(b"HloModule") or proto.looks_like_module(head)


def _number(module: str) -> tuple[int, str]:
    found = re.match(r"module_(\d+)", module)
    return (int(found[1]) if found else 0, module)


def read(source: Source) -> Capture:
    assert source.path is not None
    capture = Capture(pools=Pools(), origin=Origin("xla", "jax", how="dump"))
    add(capture, Builder(capture.pools), source.path)
    if not capture.stages:
        raise BadInput(f"{source.name}: a folder of XLA's without a module that can be read")
    return capture


def add(capture: Capture, builder: Builder, folder: Path, after: int | None = None) -> None:
    """Add the stages of a dump; the first one is made from the stage `after`."""
    modules = modules_in(folder)
    reading = _Reading(capture, builder, single=len(modules) == 1)
    for name, rows in modules.items():
        reading.module(name, rows, folder, after)
    if reading.unlisted:
        capture.warnings.append(
            f"the text of {reading.unlisted} modules is not kept: all of it is over {_MOST_LISTED >> 20} MiB"
        )


class _Reading:
    def __init__(self, capture: Capture, builder: Builder, single: bool) -> None:
        self.capture, self.builder, self.single = capture, builder, single
        self.decoder = proto.Decoder()
        self.listed = self.unlisted = 0

    def module(self, module: str, rows: list[Written], folder: Path, made_from: int | None) -> None:
        graphs: dict[bytes, Graph] = {}
        before: tuple[int, bytes] | None = None
        first = len(self.capture.stages)
        snapshots = [row for row in rows if row.order[0] == 3]
        for row in rows:
            source = Source.of(row.path).unpacked()
            content = hashlib.blake2b(source.read(), digest_size=16).digest()
            if row in snapshots and content in graphs:
                continue  # of one moment between two passes, which is there already
            graph = graphs.get(content)
            if graph is None:
                graph = graphs[content] = self._graph(source)
                is_new = True
            else:
                is_new = before is None or before[1] != content
            after = made_from if before is None else before[0] if row.order[0] != 3 else None
            title = row.title if self.single else f"{module}: {row.title}"
            self.capture.stages.append(Stage(title, graph, after))
            number = len(self.capture.stages) - 1
            if is_new and row.text is not None:
                self._list(number, row.text)
            if row.order[0] != 3:
                before = (number, content)
        if before is not None:
            self._link(first, before[0])
            buffer_table(self.capture, before[0], module, folder)
            reasons.not_fused(self.capture, module, folder)

    def _link(self, first: int, last: int) -> None:
        """Kernels to what they compute, over all passes at once."""
        if first != last:
            linking.kernels(self.capture, self.builder, first, last)
            linking.link(self.capture, self.builder, first, last)

    def _graph(self, source: Source) -> Graph:
        if source.head.startswith(b"HloModule"):
            found = text.read_module(source.lines(), source.name)
        else:
            found = proto.read_module(source.read(), source.name, self.decoder)
        return self.builder.graph(found, source.name)

    def _list(self, number: int, path: Path) -> None:
        source = Source.of(path).unpacked()
        if self.listed + source.size > _MOST_LISTED:
            self.unlisted += 1
            return
        self.listed += source.size
        add_listings(self.capture, number, {"native": listing(source, self.capture.stages[number].graph)})
