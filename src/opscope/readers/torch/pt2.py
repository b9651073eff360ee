"""Exported programs: the .pt2 files of `torch.export.save`, in today's layout and in the one up to torch 2.6."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir import Capture, Origin, Pools, Stage
from opscope.ir.pools import clean
from opscope.readers import json_text
from opscope.readers.source import Options, Source

from .archive import TorchArchive, member_names, reading
from .program import Program
from .schema import LARGEST_DIM, Json, dtype, items
from .weights import Stored, statistics

NAME = "pt2"
_LEGACY = "serialized_exported_program.json"
_MODELS = re.compile(r"(?:.*/)?models/([^/]+)\.json")
_MAJOR = 8  # of the schema that this was written for
_MOST_MODELS = 100
_LONGEST_LISTING = 100_000


def match(source: Source) -> bool:
    if source.head.lstrip()[:200].startswith(b'{"graph_module"'):  # the JSON inside, unpacked
        return True
    names = member_names(source)
    return any(
        name == _LEGACY or name.endswith(("/archive_format", f"/{_LEGACY}")) or _MODELS.fullmatch(name)
        for name in names
    )


def read(source: Source, options: Options) -> Capture:
    if not source.head.startswith(b"PK"):
        text = source.read(json_text.LARGEST)
        return reading(source, "not an exported program", lambda: _capture({"model": text}, {}))
    return reading(source, "not an exported program", lambda: _read(source, options.weights))


def _read(source: Source, with_weights: bool) -> Capture:
    with TorchArchive.of(source) as archive:
        if _LEGACY in archive:
            capture = _capture({"model": archive.read(_LEGACY)}, {})
            if with_weights:
                capture.warnings.append("statistics of weights are not read from files of torch 2.6 and before")
            return capture
        found = {match[1]: name for name in archive.names if (match := _MODELS.fullmatch(name))}
        if not found:
            if any("aotinductor" in name for name in archive.names):
                raise BadInput(
                    "a compiled AOTInductor package: it holds machine code and no graph. Save the program itself "
                    "with torch.export.save(), or capture the model with opscope.trace(model, *inputs)"
                )
            raise BadInput(f"no models/*.json in it (found: {', '.join(archive.names[:5])[:200]})")
        if len(found) > _MOST_MODELS:
            raise BadInput(f"it has {len(found):,} models; {_MOST_MODELS} are the most")
        weights: dict[str, dict[str, Json]] = {}
        for model in found:
            weights[model] = {}
            for kind in ("weights", "constants"):
                config = f"data/{kind}/{model}_{kind}_config.json"
                if config in archive:
                    weights[model] |= _entries(archive.read(config), kind)
        capture = _capture({model: archive.read(name) for model, name in found.items()}, weights)
        if with_weights:
            for stage, entries in enumerate(weights.values()):
                _add_statistics(capture, archive, stage, entries)
        return capture


def _add_statistics(capture: Capture, archive: TorchArchive, stage: int, entries: Mapping[str, Json]) -> None:
    graph = capture.stages[stage].graph
    names = [graph.pools.strings[name] for name in graph.value_name[graph.inputs].tolist()]
    tensors = {
        value: stored
        for value, name in zip(graph.inputs.tolist(), names, strict=True)
        if (entry := entries.get(name)) is not None and (stored := _stored(entry)) is not None
    }
    table, missing = statistics(archive, stage, tensors)
    if table is not None:
        capture.add(table)
    held = sum(name in entries for name in names)
    if missing or len(tensors) < held:
        capture.warnings.append(f"{len(missing) or held - len(tensors)} of {held} weights have no statistics")


def _stored(entry: Json) -> Stored | None:
    """Where a weight lies; None: in a way that is not simply numbers."""
    meta = entry.get("tensor_meta")
    if entry.get("use_pickle") or not isinstance(meta, dict):
        return None
    found = cast("Json", meta)
    lists = [
        [size.get("as_int") for size in items(found.get(key))]  # all of them are known: a weight is there
        for key in ("sizes", "strides")
    ]
    offset = cast("Json", found.get("storage_offset") or {}).get("as_int")
    if not all(type(size) is int and 0 <= size < LARGEST_DIM for sizes in (*lists, [offset]) for size in sizes):
        return None
    return Stored(f"data/{entry['file']}", dtype(found.get("dtype")), *lists, offset)  # type: ignore[arg-type]


def _capture(models: dict[str, bytes], weights: Mapping[str, Mapping[str, Json]]) -> Capture:
    pools = Pools()
    stages: list[Stage] = []
    versions: dict[str, None] = {}
    for name, text in models.items():
        program = parsed(text)
        files = {weight: str(entry["file"]) for weight, entry in weights.get(name, {}).items()}
        building = Program(program, pools, files)
        graph = building.build()
        version = program.get("torch_version")
        versions[version if isinstance(version, str) else ""] = None
        symbols = _symbols(program)
        stages.append(
            Stage(
                clean(name),
                graph,
                listings={"symbols": symbols} if symbols else {},
                warnings=(*_schema_warning(program), *building.warnings),
            )
        )
    return Capture(
        pools=pools,
        stages=stages,
        origin=Origin(format=NAME, framework="torch", version=clean(next(iter(versions), ""))[:100], how="file"),
    )


def parsed(text: bytes) -> dict[str, Any]:
    """A JSON object, or one line about what is wrong with it."""
    found = json_text.parse(text)
    if not isinstance(found, dict):
        raise BadInput(f"its JSON is a {type(found).__name__}, not an object")
    return cast("dict[str, Any]", found)


def _entries(text: bytes, kind: str) -> dict[str, Json]:
    """What is said of each weight, by its name; tied weights have the same `file`."""
    config = parsed(text).get("config")
    if not isinstance(config, dict):
        return {}
    entries = cast("dict[str, Any]", config)
    return {
        name: {**cast("Json", entry), "file": f"{kind}/{path}"}
        for name, entry in entries.items()
        if isinstance(entry, dict) and isinstance(path := cast("Json", entry).get("path_name"), str)
    }


def _schema_warning(program: dict[str, Any]) -> list[str]:
    version = program.get("schema_version")
    major = cast("dict[str, Any]", version).get("major") if isinstance(version, dict) else None
    if isinstance(major, int) and major > _MAJOR:
        return [f"written with schema {major}, newer than the {_MAJOR} that this version of opscope knows"]
    return []


def _symbols(program: dict[str, Any]) -> str:
    """The ranges of symbolic sizes, and what was assumed of them, as text."""
    lines: list[str] = []
    ranges = program.get("range_constraints")
    for name, entry in cast("dict[str, Any]", ranges if isinstance(ranges, dict) else {}).items():
        limits = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        low, high = limits.get("min_val"), limits.get("max_val")
        lines.append(f"{'' if low is None else f'{low} <= '}{name}{'' if high is None else f' <= {high}'}")
    guards = program.get("guards_code")
    listed = cast("list[object]", guards) if isinstance(guards, list) else []
    lines += [guard for guard in listed if isinstance(guard, str)]
    return clean("\n".join(lines))[:_LONGEST_LISTING]
