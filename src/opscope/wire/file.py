"""Capture <-> .opscope: a zip of Arrow tables and a manifest. The one place that knows the bytes.

docs/file-format.md says it in words.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, BinaryIO

from opscope.errors import BadInput
from opscope.ir import Body, Capture, Graph, InvalidGraph, Origin, Stage, StageLink, Table
from opscope.ir.check import verify_capture
from opscope.ir.files import all_graphs

from . import older
from .archive import Archive
from .arrow import Columns, ReadTable, to_bytes, to_table
from .listings import listing_table, read_listings
from .members import graph_tables, pool_tables, read_graph, read_pools, text_columns
from .stored import read_table, table_columns

VERSION = 3
MANIFEST = "manifest.json"
_LEVEL = 4  # of deflate: 6 gains 3 % in size on real captures and takes three times as long
_DATE = (1980, 1, 1, 0, 0, 0)  # no clock in the file: the same capture gives the same bytes


# -- writing --------------------------------------------------------------------------------------


def write(capture: Capture, file: BinaryIO, *, packed: bool = True) -> None:
    """Write a capture to an open binary file. Not packed, its members are stored as they are: large, and soon made."""
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    graphs = all_graphs(capture)
    number = {id(graph): i for i, graph in enumerate(graphs)}
    manifest: dict[str, Any] = {
        "opscope": VERSION,
        "origin": vars(capture.origin),
        "warnings": capture.warnings,
        "stages": [
            {
                "name": stage.name,
                "graph": number[id(stage.graph)],
                "after": stage.after,
                "seconds": stage.seconds,
                "warnings": list(stage.warnings),
            }
            for stage in capture.stages
        ],
        "graphs": [
            {
                "links": list(graph.links),
                "groups": list(graph.groups),
                "bodies": [
                    {
                        "node": body.node,
                        "label": body.label,
                        "graph": number[id(body.graph)],
                        "bindings": body.bindings,
                    }
                    for body in graph.bodies
                ],
            }
            for graph in graphs
        ],
        "stage_links": [
            {"before": link.before, "after": link.after, "kind": link.kind, "evidence": link.evidence}
            for link in capture.stage_links
        ],
        "tables": [
            {
                "name": name,
                "stage": table.stage,
                "by": table.by,
                "fact": table.fact,
                "units": {column: c.unit for column, c in table.columns.items()},
            }
            for name, table in capture.tables.items()
        ],
    }
    extra = dict(capture.extra)
    manifest |= json.loads(extra.pop(MANIFEST, b"{}"))
    tables: dict[str, Columns] = dict(pool_tables(capture.pools))
    for i, graph in enumerate(graphs):
        tables |= {f"graphs/{i}/{name}": columns for name, columns in graph_tables(graph).items()}
    for i, link in enumerate(capture.stage_links):
        tables[f"stage_links/{i}"] = {"source": link.source, "target": link.target}
    for i, table in enumerate(capture.tables.values()):
        tables[f"tables/{i}"] = table_columns(table)
    tables["listings"] = listing_table(capture.stages)
    tables["sources"] = text_columns(("path", "text"), [*capture.sources.items()])

    with zipfile.ZipFile(file, "w", method, compresslevel=_LEVEL) as archive:
        # The manifest comes first: whoever reads the first bytes sees what this is.
        _put(archive, MANIFEST, json.dumps(manifest, indent=1).encode())
        for name, columns in tables.items():
            _put(archive, f"{name}.arrow", to_bytes(to_table(columns)))
        for name, data in extra.items():
            _put(archive, name, data)


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = archive.compression
    archive.writestr(info, data, compresslevel=_LEVEL)


# -- reading --------------------------------------------------------------------------------------


def read(file: BinaryIO, size: int) -> Capture:
    """Read a capture of this version or an older one; every index in it is checked."""
    archive = Archive(file, size)
    manifest = _manifest(archive)
    used = {MANIFEST}

    def table(name: str) -> ReadTable:
        used.add(f"{name}.arrow")
        return ReadTable(name, archive.read(f"{name}.arrow"))

    try:
        capture = _capture(manifest, table, archive.names)
        verify_capture(capture)
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError, ValueError) as error:
        raise BadInput(f"{MANIFEST} does not fit version {VERSION} ({type(error).__name__}: {error})") from None
    except InvalidGraph as error:
        raise BadInput(str(error)) from None
    capture.extra = {name: archive.read(name) for name in archive.names if name not in used}
    unknown = {key: value for key, value in manifest.items() if key not in _KEYS}
    if unknown:
        capture.extra[MANIFEST] = json.dumps(unknown).encode()
    return capture


_KEYS = {"opscope", "origin", "warnings", "stages", "graphs", "stage_links", "tables"}


def _manifest(archive: Archive) -> dict[str, Any]:
    try:
        manifest = json.loads(archive.read(MANIFEST))
        version = manifest["opscope"]
        if not isinstance(version, int):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadInput(f"{MANIFEST} is not the manifest of an opscope file") from None
    if version > VERSION:
        raise BadInput(
            f"written by a newer opscope (file version {version}; this one reads up to {VERSION}): "
            "upgrade with `pip install -U opscope`"
        )
    return manifest


def _capture(manifest: dict[str, Any], table: Callable[[str], ReadTable], names: Collection[str]) -> Capture:
    version = manifest["opscope"]
    pools = read_pools(table)
    graphs: list[Graph] = []
    for i, entry in enumerate(manifest["graphs"]):
        bodies = tuple(
            Body(
                int(b["node"]),
                str(b["label"]),
                graphs[_earlier(b["graph"], i)],
                tuple((int(x), int(y)) for x, y in b["bindings"]),
            )
            for b in entry["bodies"]
        )
        members = partial(_member, table, f"graphs/{i}")
        graphs.append(read_graph(members, pools, entry["links"], entry["groups"], bodies))
    texts = table("listings")
    listings = read_listings(texts)
    stages = [
        Stage(
            str(s["name"]),
            graphs[_earlier(s["graph"], len(graphs))],
            None if s["after"] is None else int(s["after"]),
            None if s["seconds"] is None else float(s["seconds"]),
            listings.get(str(s["name"]), {}),
            tuple(map(str, s["warnings"])),
        )
        for s in manifest["stages"]
    ]
    links: list[StageLink] = []
    for i, s in enumerate(manifest["stage_links"]):
        pairs = table(f"stage_links/{i}")
        links.append(
            StageLink(s["before"], s["after"], s["kind"], pairs.ints("source"), pairs.ints("target"), s["evidence"])
        )
    tables: dict[str, Table] = {}
    for i, t in enumerate(manifest["tables"]):
        units = dict(t["units"])
        fact = str(t["fact"]) if version > 1 else older.fact_of(str(t["by"]), units)
        tables[str(t["name"])] = read_table(table(f"tables/{i}"), int(t["stage"]), str(t["by"]), units, fact)
    sources = table("sources")
    capture = Capture(
        pools=pools,
        stages=stages,
        stage_links=links,
        tables=tables,
        origin=Origin(**{key: str(value) for key, value in manifest["origin"].items()}),
        sources=dict(zip(sources.texts("path"), sources.texts("text"), strict=True)),
        warnings=[str(w) for w in manifest["warnings"]],
    )
    if version == 1:
        older.name_version1(capture)
    elif version == 2 and "listing_lines.arrow" in names:
        older.name_version2(capture, texts, table("listing_lines"))
    return capture


def _member(table: Callable[[str], ReadTable], folder: str, name: str) -> ReadTable:
    return table(f"{folder}/{name}")


def _earlier(index: int, count: int) -> int:
    if not 0 <= index < count:
        raise IndexError(f"graph {index} is not among the first {count}")
    return index
