"""Traces of Jittor's tracer (`jt.dump_trace_data()`), from a pickle or live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from opscope.errors import BadInput, of_file
from opscope.ir import Capture, Origin, Pools, Stage
from opscope.ir.facts import FILES
from opscope.ir.measurements import TIMES, VALUES
from opscope.readers import json_text
from opscope.readers.pickles import UnsafePickle, load_plain, looks_like_pickle
from opscope.readers.source import Options, Source

from .build import KnownVar, build
from .dump import KEYS, is_dump, parse
from .measured import file_table, id_tables, is_report, time_table, value_table

__all__ = ["NAME", "KnownVar", "from_dump", "match", "read"]

NAME = "jittor-trace"
STAGE = "trace"
_LARGEST_REPORT = 64 << 20


def match(source: Source) -> bool:
    """Any pickle comes here: if it is no trace, we say what it is instead."""
    return looks_like_pickle(source.head, source.name)


def read(source: Source, options: Options) -> Capture:
    raw = source.read()
    try:
        data = load_plain(raw, source.name)
    except UnsafePickle as error:
        raise _explained(error, source.name) from None
    if not is_dump(data):
        raise BadInput(f"{source.name}: not a Jittor trace: {_found(data)}")
    report, where = _report(source, options)
    try:
        # A list of ids takes two bytes an entry in a pickle; more than a few per byte are not honest.
        capture = from_dump(data, origin={"how": "trace_py_var"}, report=report, room=4 * len(raw) + 1000)
    except BadInput as error:
        raise of_file(error, source.name) from None
    if where:
        capture.warnings.append(f"kernel times were taken from {where}")
    return capture


def from_dump(
    data: Mapping[str, Any],
    *,
    origin: Mapping[str, str],
    known: Mapping[int, KnownVar] | None = None,
    report: Sequence[Any] | None = None,
    room: int | None = None,
    stage: str = STAGE,
    pools: Pools | None = None,
    figures: bool = False,
) -> Capture:
    """A capture from what `jt.dump_trace_data()` returned.

    `known` describes variables made before the recording began, by Jittor's id; `report` is what
    `jt.profile_scope` gave for the same run. Captures that are to be stages of one take the same `pools`.
    With `figures`, numbers become statistics and are not kept.
    """
    pools = pools if pools is not None else Pools()
    dump = parse(data, room)
    built = build(dump, pools, known)
    tables = id_tables(built)
    files = file_table(dump)
    if files is not None:
        tables[FILES.name] = files
    values = value_table(dump, built, figures)
    if values is not None:
        tables[VALUES] = values
    warnings = list(built.warnings)
    if report is not None:
        times, problems = time_table(report, dump, built)
        warnings += problems
        if times is not None:
            tables[TIMES] = times
    return Capture(
        pools=pools,
        stages=[Stage(stage, built.graph, warnings=tuple(warnings))],
        tables=tables,
        origin=Origin(format=NAME, framework="jittor", **{"version": _version(dump.executions), **origin}),
    )


def _version(executions: Sequence[Any]) -> str:
    """Traces do not say the version, but the cache folder of the generated code does."""
    for execution in executions:
        for part in Path(execution.file).parts:
            if part.startswith("jt") and part[2:3].isdigit():
                return part[2:]
    return ""


def _report(source: Source, options: Options) -> tuple[list[Any] | None, str]:
    """The profile report that was named, or one that lies beside the trace and has its name:
    `profiled_report.json` beside `profiled_mlp_train.pkl`."""
    if options.profile is not None:
        report = Source.of(options.profile)
        try:
            report = report.unpacked()
            rows = json_text.parse(report.read(_LARGEST_REPORT))
        except BadInput as error:
            raise of_file(error, report.name, "not a profile report") from None
        if not is_report(rows):
            raise BadInput(f"{options.profile}: not a report of jt.profile_scope (no 'Name, FileName, Count …' header)")
        return rows, ""
    if source.path is None:
        return None, ""
    for path in sorted(source.path.parent.glob("*report.json")):
        prefix = path.name.removesuffix("report.json").rstrip("_.-")
        if prefix and source.path.name.startswith(prefix):
            try:
                rows = json_text.parse(Source.of(path).read(_LARGEST_REPORT))
            except BadInput:
                continue
            if is_report(rows):
                return rows, f"{path.name}, next to the trace"
    return None, ""


def _found(data: Any) -> str:
    if not isinstance(data, dict):
        return f"a pickled {type(data).__name__}, not a dict with {KEYS[0]!r} and {KEYS[1]!r}."
    keys = list(cast("dict[Any, Any]", data))
    missing = [key for key in KEYS if not isinstance(cast("dict[Any, Any]", data).get(key), dict)]
    found = ", ".join(repr(key)[:40] for key in keys[:6]) + (", …" if len(keys) > 6 else "")
    text = f"key {missing[0]!r} is missing or not a dict (found: {found or 'an empty dict'})."
    if any(key in ("state_dict", "model", "optimizer", "epoch") for key in keys):
        text += " If this is a checkpoint, it has no graph; capture the model with opscope.trace()."
    return text


def _explained(error: UnsafePickle, name: str) -> BadInput:
    """Most pickles that are no traces are weights; say so."""
    root = error.target.partition(".")[0]
    if root in ("torch", "collections", "numpy", "paddle", "megengine", "jittor") or error.target.startswith("_codecs"):
        kind = {"torch": "a PyTorch", "paddle": "a PaddlePaddle", "megengine": "a MegEngine"}.get(root, "a")
        return BadInput(
            f"{name}: refused: this pickle asks to call {error.target}, as {kind} checkpoint does; nothing was run. "
            "A checkpoint holds weights and no graph: capture the model with opscope.trace(model, *inputs)."
        )
    return error
