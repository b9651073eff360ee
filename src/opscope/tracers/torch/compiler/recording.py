"""Compiled code in a recording: each compiled graph that runs is one operator of the step, joined to its kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from opscope.ir import Capture, Origin, StageLink, frozen
from opscope.ir.columns import Int8, frozen8
from opscope.ir.repool import Repooled
from opscope.tracers.torch.recorder.mode import Recorder
from opscope.tracers.torch.recorder.regions import Region

from .compiling import CompilingModels
from .finish import finished, notes
from .stream import Record
from .watch import Compiled, Watch

REGION = "compiled"  # operators of the recording: compiled.forward, compiled.backward
_GRAPH = "graph"  # their attribute: which compilation
_NUMBER = re.compile(r"^# AOT ID: \['(\d{1,6})_")
_FIRST_BEFORE = 1000  # numbers of frames that were compiled before the recording
_INPUTS = re.compile(r"^ +(\w[\w, ]*?),? = args$", re.MULTILINE)


class CompiledCode:
    """The watch of a recording."""

    def __init__(
        self, models: list[tuple[str, Any]], recorder: Recorder, switch: Callable[[bool], None], compiles: bool
    ) -> None:
        self.watch = Watch(models)
        self._compiling = CompilingModels() if compiles else None
        self._recorder, self._switch = recorder, switch
        self._dispatch: Callable[..., Any] | None = None
        self._regions: dict[int, Region] = {}
        self._ids: dict[int, str] = {}  # compiled graphs by id: how the compilation is called
        self.watch.on_run = self._run
        self.watch.on_compiled_code = self._switched
        self.watch.on_wrapping = self._wrapping

    def open(self, mode: Any) -> None:
        self._dispatch = mode.__torch_dispatch__
        self.watch.open()
        if self._compiling is not None:
            self._compiling.open()

    def close(self) -> None:
        if self._compiling is not None:
            self._compiling.close()
        self.watch.close()

    def _switched(self, is_inside: bool) -> None:
        if self._compiling is not None:
            self._compiling.close() if is_inside else self._compiling.open()
        self._switch(is_inside)

    def _wrapping(self, wrap: Callable[[], Any]) -> Any:
        """torch.compile keeps the function that calls a module: it must not be ours."""
        if self._compiling is None or not self._compiling.is_open:
            return wrap()
        self._compiling.close()
        try:
            return wrap()
        finally:
            self._compiling.open()

    def _run(self, compiled: Compiled, inputs: Any, run: Callable[[], Any]) -> Any:
        recorder = self._recorder
        if not recorder.is_on or self._dispatch is None:
            return run()
        region = self._regions.get(id(compiled))
        if region is None:
            region = self._regions[id(compiled)] = self._region(compiled)
        arguments = {**region.arguments(inputs), _GRAPH: self._ids[id(compiled)]}

        def inside() -> Any:
            recorder.is_on = False
            try:
                return run()
            finally:
                recorder.is_on = True

        return self._dispatch(region.running(inside), (), (), arguments)

    def _region(self, compiled: Compiled) -> Region:
        frame, again = compiled.id.get("frame_id"), compiled.id.get("frame_compile_id", 0)
        if frame is None:
            frame, again = self._before(compiled), 0
        within = compiled.id.get("compiled_autograd_id")
        self._ids[id(compiled)] = f"{'' if within is None else f'!{within}/'}{frame}/{again}"
        found = _INPUTS.search(getattr(compiled.graph, "source_code", "") or "")
        names = [name.strip() for name in found[1].split(",")] if found else []
        written = getattr(compiled.graph, "mutated_input_idxs", ())
        return Region(f"{REGION}.{compiled.direction}", names, sorted(written))

    def _before(self, compiled: Compiled) -> int:
        """A graph that was compiled before the recording: what torch has kept of it goes into the stream."""
        text = getattr(compiled.graph, "inductor_post_grad_graph_str", "") or ""
        code = getattr(compiled.graph, "source_code", "") or ""
        # AOTAutograd numbers what it compiles, and the two directions alike. Frames of now begin far below.
        numbered = _NUMBER.search(code)
        frame = _FIRST_BEFORE + (int(numbered[1]) if numbered else len(self._ids))
        place = {"frame_id": frame, "frame_compile_id": 0, "attempt": 0}
        records = self.watch.stream.records
        if text:
            about = {"name": "inductor_post_grad_graph", "encoding": "string"}
            records.append(Record({"artifact": about, **place}, text))
        if code:
            records.append(Record({"inductor_output_code": {"filename": ""}, **place}, code))
        return frame

    # -- the end --------------------------------------------------------------------------------------

    @property
    def has_met_any(self) -> bool:
        """Whether anything that torch.compile made was called."""
        return bool(self.watch.calls.count or self.watch.graphs or self.watch.stream.kinds & {"dynamo_output_graph"})

    def joined(self, step: Capture) -> Capture:
        """The recording with the stages of everything that was compiled, or whose code ran."""
        if not self.has_met_any:
            return step
        step.warnings += self._warnings()
        compiled = finished(self.watch, Origin("live", "torch", step.origin.version, "compile"))
        if compiled is None:
            return step
        _append(step, compiled)
        self._link(step)
        return step

    def _warnings(self) -> list[str]:
        found = notes(self.watch)
        old = [compiled for compiled in self.watch.graphs.values() if not compiled.is_new and compiled.runs]
        if old:
            names = ", ".join(f"{compiled.direction} [{self._ids[id(compiled)]}]" for compiled in old[:5])
            found.append(
                f"{len(old)} compiled graphs ({names}{', …' if len(old) > 5 else ''}) were compiled before this "
                "recording began: their kernels and last graph are what torch still holds; Dynamo's graph, the passes, "
                "guards, graph breaks and module names of them are unknown (opscope.trace(model, …, how='compile') "
                "compiles anew)"
            )
        return found

    def _link(self, capture: Capture) -> None:
        """A compiled graph that ran in the step becomes its kernels."""
        step = capture.stages[0].graph
        phases: Int8 = np.array(step.node_phase)
        by_region: dict[tuple[str, str], list[int]] = {}
        for i in range(step.n_nodes):
            node = step.node(i)
            if node.op.startswith(f"{REGION}."):
                key = node.op.partition(".")[2], str(node.attrs.get(_GRAPH, ""))
                by_region.setdefault(key, []).append(i)
        for number, stage in enumerate(capture.stages[1:], start=1):
            name, _, rest = stage.name.removeprefix("kernels ").partition(" [")
            if not stage.name.startswith("kernels "):
                continue
            wanted = rest.removesuffix("]")
            nodes = [
                i for (way, graph), rows in by_region.items() if way == name and wanted in ("", graph) for i in rows
            ]
            count = stage.graph.n_nodes
            if nodes and count:
                # Torch calls all that needs no gradient "inference": also an optimizer, or the whole backward pass.
                if len(own := np.unique(stage.graph.node_phase)) == 1 and name == "inference":
                    phases[nodes] = own[0]
                source = np.repeat(np.array(nodes, dtype=np.int32), count)
                target = np.tile(np.arange(count, dtype=np.int32), len(nodes))
                capture.stage_links.append(StageLink(0, number, "lowers", frozen(source), frozen(target), "reported"))
        if not np.array_equal(phases, step.node_phase):
            capture.stages[0] = replace(capture.stages[0], graph=replace(step, node_phase=frozen8(phases)))


def _append(capture: Capture, other: Capture) -> None:
    """Put the stages of one capture behind those of another."""
    repooled, first = Repooled(other.pools, capture.pools), len(capture.stages)
    for stage in other.stages:
        graph = repooled.graph(stage.graph)
        after = None if stage.after is None else stage.after + first
        capture.stages.append(replace(stage, graph=graph, after=after))
    for link in other.stage_links:
        capture.stage_links.append(replace(link, before=link.before + first, after=link.after + first))
    for table in other.tables.values():
        capture.add(repooled.table(table, table.stage + first))
    capture.warnings += other.warnings
    for file, text in other.sources.items():
        capture.sources.setdefault(file, text)
