"""From a function to its stages: jaxpr, StableHLO, every pass of XLA, the kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from opscope.ir import Capture, Listing, Origin, Pools, Stage, Table, add_listings, column
from opscope.readers.xla import dump, linking, mlir
from opscope.readers.xla.build import Builder

from .called import Traced, traced
from .private import import_jax, without_compilation_cache
from .program import module_of

_DUMP = {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": True}
ANALYSIS = "XLA's own analysis"


def capture_of(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], how: str) -> Capture:
    program = traced(target, args, kwargs)
    capture = Capture(pools=Pools(), origin=Origin("live", "jax", str(import_jax().__version__), how))
    builder = Builder(capture.pools)
    closed = program.traced.jaxpr
    graph = builder.graph(module_of(closed, program.name, program.inputs, program.parameters), program.name)
    capture.stages.append(Stage("jaxpr", graph))
    add_listings(capture, 0, {"native": Listing(str(closed))})
    if how != "jaxpr":
        _lower(capture, builder, program, how)
    return capture


def _lower(capture: Capture, builder: Builder, program: Traced, how: str) -> None:
    """StableHLO, and what XLA makes of it. A program that cannot be compiled here still has its first stages."""
    try:
        lowered = program.traced.lower()
        text = lowered.as_text(debug_info=True)
    except Exception as error:
        if how != "auto":
            raise
        capture.warnings.append(f"it was not lowered to StableHLO: {_line(error)}")
        return
    module = mlir.read_module(iter(text.splitlines()), program.name)
    capture.stages.append(Stage("StableHLO", builder.graph(module, program.name), 0))
    add_listings(capture, 1, {"native": Listing(text)})
    linking.link(capture, builder, 0, 1)
    if how == "stablehlo":
        return
    with tempfile.TemporaryDirectory(prefix="opscope-xla-") as folder:
        try:
            with without_compilation_cache():
                compiled = lowered.compile({"xla_dump_to": folder, **_DUMP})
        except Exception as error:
            if how != "auto":
                raise
            capture.warnings.append(f"XLA did not compile it here: {_line(error)}")
            return
        first = len(capture.stages)
        dump.add(capture, builder, Path(folder), after=1)
        last = len(capture.stages) - 1
    if last >= first:
        linking.link(capture, builder, 1, first)
        for early in (1, 0):
            linking.kernels(capture, builder, early, last)
        _analysis(capture, compiled, last)
    else:
        capture.warnings.append("XLA wrote no module: this backend does not dump what it compiles")


def _analysis(capture: Capture, compiled: Any, stage: int) -> None:
    """What XLA itself says of cost and memory, beside what opscope counts."""
    told: dict[str, float] = {}
    try:
        cost: Any = compiled.cost_analysis()
        memory: Any = compiled.memory_analysis()
    except Exception:  # not every backend has them
        return
    if isinstance(cost, list):  # of older versions: one for each program
        cost = cast("list[Any]", cost)[0] if cost else {}
    figures: Mapping[Any, Any] = cast("Mapping[Any, Any]", cost) if isinstance(cost, Mapping) else {}
    told |= {str(name): float(value) for name, value in figures.items() if "{}" not in str(name)}
    for name in ("argument", "output", "alias", "temp", "generated_code"):
        size = getattr(memory, f"{name}_size_in_bytes", None)
        if size is not None:
            told[f"{name} bytes"] = float(size)
    if told:
        rows = np.arange(len(told), dtype=np.int32)
        capture.tables[ANALYSIS] = Table(
            stage, "row", rows, {"figure": column(list(told)), "value": column(np.array(list(told.values())))}
        )


def _line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]
