"""MegEngine's dumped models (.mge), read without MegEngine: FBS_V2, the default of today, and FBS before it."""

from __future__ import annotations

from opscope.errors import BadInput, of_file
from opscope.ir import Capture, Origin, Pools, Stage
from opscope.readers.pages import Pages, Whole, mapped
from opscope.readers.source import Options, Source

from .build import Building
from .flat import Span
from .model import Model, decode, is_model

NAME = "megengine"


def match(source: Source) -> bool:
    return is_model(source.head[:64])


def read(source: Source, options: Options) -> Capture:
    with mapped(source) as (data, size):
        model = decoded(source, data, size)
        building = Building(model, Pools())
        capture = _capture(model, building)
        if options.weights:
            from .weights import add_statistics

            add_statistics(capture, data, building.weights)
        return capture


def decoded(source: Source, data: Pages | Whole, size: int) -> Model:
    """What the file says, or a BadInput with its name in front."""
    try:
        return decode(data, size)
    except BadInput as error:
        raise of_file(error, source.name, "not a readable MegEngine model") from None


def capture_of(model: Model, name: str = "") -> Capture:
    return _capture(model, Building(model, Pools()))


def _capture(model: Model, building: Building) -> Capture:
    graph = building.build()
    stage = Stage("model", graph, listings={"metadata": _metadata(model)}, warnings=tuple(building.warnings))
    return Capture(
        pools=building.b.pools,
        stages=[stage],
        tables=building.tables(),
        origin=Origin(format=NAME, framework="megengine", version=version_text(model.version), how="file"),
    )


def version_text(number: int) -> str:
    """101300 as 1.13.0; older MegBrain counts 8 as its first number."""
    return f"{number // 100_000}.{number // 100 % 1000}.{number % 100}" if number else ""


def _metadata(model: Model) -> str:
    lines = [f"format: {model.format}", f"version: {model.version}"]
    for key, value in model.metadata.items():
        if isinstance(value, Span):
            lines.append(f"{key}: {value.size} bytes of pickle, which are not read")
        else:
            lines.append(f"{key}: {value}")
    if model.shared_tensors:
        lines.append(f"shared tensors: {model.shared_tensors}")
    lines += [f"output {number} is called {name}" for number, name in model.aliases.items()]
    return "\n".join(lines)
