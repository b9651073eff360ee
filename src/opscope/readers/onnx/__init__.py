"""ONNX models (.onnx), read without ONNX: only the graph is read, weights are passed over."""

from __future__ import annotations

from opscope.errors import BadInput, of_file
from opscope.ir import Capture, Origin, Pools, Stage
from opscope.ir.pools import clean
from opscope.readers.pages import mapped
from opscope.readers.protobuf import Message, Reader, begins_like
from opscope.readers.source import Options, Source

from .build import Model, Weight, weights_table
from .infer import with_shapes
from .profile import times
from .schema import SCHEMA
from .weights import add_statistics

NAME = "onnx"
_LONGEST = 100_000
_GRAPH, _VERSION, _OPSETS = 7, 1, 8
_LATEST_VERSION = 100


def match(source: Source) -> bool:
    """The file; or the folder that it lies in, with its weights."""
    source = source.only("*.onnx") or source
    found = begins_like(source.head, source.size, SCHEMA, "ModelProto")
    if not found or not 0 <= found.get(_VERSION, 0) <= _LATEST_VERSION:
        return False
    return _GRAPH in found or (_VERSION in found and _OPSETS in found)


def read(source: Source, options: Options) -> Capture:
    source = source.only("*.onnx") or source
    with mapped(source) as (data, size):
        try:
            model = Reader(data, SCHEMA).message("ModelProto", 0, size)
            if "graph" not in model:
                raise BadInput("it has no graph. It may be cut off: export or copy it again")
            warnings = with_shapes(data, size, model)
            capture, weights = _capture(Reader(data, SCHEMA), model, warnings)
            if options.weights:
                add_statistics(capture, source, data, weights)
        except BadInput as error:
            raise of_file(error, source.name, "not a readable ONNX model") from None
    if options.profile is not None:
        times(capture, options.profile)
    return capture


def _capture(reader: Reader, raw: Message, warnings: list[str]) -> tuple[Capture, list[Weight]]:
    pools = Pools()
    building = Model(reader, pools, raw.get("functions", ()))
    graph = building.main(raw["graph"])
    table = weights_table(building.weights)
    stages = [Stage("model", graph, listings={"native": _metadata(raw)})]
    for i, training in enumerate(raw.get("training_info", ())):
        for part in ("initialization", "algorithm"):
            if training.get(part, {}).get("node"):
                name = f"training: {part}" if not i else f"training {i + 1}: {part}"
                stages.append(Stage(name, building.training(training[part])))
    stages[0] = Stage("model", graph, listings=stages[0].listings, warnings=(*warnings, *building.finish()))
    tables = {"weights in the file": table} if table is not None else {}
    origin = Origin(NAME, NAME, clean(_producer(raw)), "file")
    return Capture(pools=pools, stages=stages, tables=tables, origin=origin), building.weights


def _producer(raw: Message) -> str:
    """What made it, and which operators it may use."""
    opset = next(
        (o.get("version") for o in raw.get("opset_import", ()) if o.get("domain", "") in ("", "ai.onnx")), None
    )
    made = " ".join(str(raw[key])[:60] for key in ("producer_name", "producer_version") if raw.get(key))
    return ", ".join(part for part in (f"opset {opset}" if opset is not None else "", made) if part)


def _metadata(raw: Message) -> str:
    """What the file says of itself, as text."""
    lines = [
        f"{key.replace('_', ' ')}: {raw[key]}"
        for key in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string")
        if raw.get(key)
    ]
    lines.append(f"graph: {raw['graph'].get('name', '')}")
    for opset in raw.get("opset_import", ()):
        lines.append(f"operators of {opset.get('domain') or 'ai.onnx'}: version {opset.get('version')}")
    for entry in (*raw.get("metadata_props", ()), *raw["graph"].get("metadata_props", ())):
        lines.append(f"{entry.get('key')}: {entry.get('value')}"[:1000])
    for function in raw.get("functions", ()):
        inputs, outputs = (", ".join(function.get(key, ())) for key in ("input", "output"))
        lines.append(f"function {function.get('domain')}.{function.get('name')}({inputs}) -> {outputs}"[:500])
    return clean("\n".join(lines))[:_LONGEST]
