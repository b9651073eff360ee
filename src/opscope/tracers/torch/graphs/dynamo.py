"""how="dynamo": the graphs that torch.compile captures, with the places where it left them."""

from __future__ import annotations

from types import FrameType
from typing import Any

import numpy as np

from opscope.ir import Capture, Listing, Pools, Stage, StageLink, Table, add_listings, column
from opscope.ir.columns import frozen
from opscope.ir.facts import BREAKS
from opscope.sources import embed, exact
from opscope.tracers.torch import private
from opscope.tracers.torch.kept import modules_in
from opscope.tracers.torch.private import the_torch

from .compiling import Break, Compiled, Owners, add_break, compiled_run, lines_of, no_graph
from .errors import cannot
from .fxgraph import Built, FxGraph, Named, named_by
from .guard import unchanged
from .listings import of_fx
from .origin import origin
from .places import Places


def capture(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, caller: FrameType | None = None) -> Capture:
    torch = the_torch()

    graphs = _Graphs(target)
    with unchanged(target):
        try:
            run = compiled_run(target, args, kwargs, graphs.backend)
        except Exception as error:
            raise cannot("dynamo", error, caller) from error
    for module, *_ in graphs.found:
        add_break(run, private.compile_reason(module))
    if not graphs.found:
        raise no_graph("dynamo", run)
    root = target if isinstance(target, torch.nn.Module) else None
    return graphs.capture(run, root)


class _Graphs:
    """The backend: notes every graph, and which tensors go from one to the next when they run."""

    def __init__(self, target: Any) -> None:
        self.owners = Owners(modules_in((target,)))
        self.found: list[tuple[Any, dict[str, Named], str]] = []  # graph, names of its inputs, module of its code
        self.made: dict[int, tuple[int, str]] = {}  # id of a tensor -> the graph and the fx name that made it
        self.alive: list[Any] = []  # so that no other tensor gets the same id
        self.flows: dict[tuple[int, int], set[tuple[str, str]]] = {}

    def backend(self, module: Any, examples: list[Any]) -> Any:
        number = len(self.found)
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        named = {node.name: self.owners.of(node, example) for node, example in zip(inputs, examples, strict=False)}
        self.found.append((module, named, self.owners.base(inputs, examples)))
        (result,) = [node for node in module.graph.nodes if node.op == "output"]
        outputs = [getattr(item, "name", "") for item in result.args[0]]

        def run(*args: Any) -> Any:
            for node, given in zip(inputs, args, strict=False):
                if id(given) in self.made:
                    before, name = self.made[id(given)]
                    if before != number:  # or the graph runs again on its own results
                        self.flows.setdefault((before, number), set()).add((name, node.name))
            results = module.forward(*args)
            for name, tensor in zip(outputs, results, strict=False):
                if hasattr(tensor, "dtype"):
                    self.made[id(tensor)] = (number, name)
                    self.alive.append(tensor)
            return results

        return run

    def capture(self, run: Compiled, root: Any) -> Capture:
        pools = Pools()
        places = Places(pools, root)
        ended = self._ended(run)
        stages: list[Stage] = []
        builts: list[Built] = []
        listings: list[dict[str, Listing]] = []
        for number, (module, named, base) in enumerate(self.found, start=1):
            way = FxGraph(
                pools, places, owner=module, python_level=True, base=places.of_path(base), named=named_by(named)
            )
            built = way.build(module.graph)
            stages.append(Stage(f"graph {number}", built.graph))
            listings.append(of_fx(module.graph, module.code, str(module.graph), built.nodes))
            builts.append(built)
        warnings = [*map(str, run.breaks), *run.recompiles]
        capture = Capture(pools, stages, origin=origin("dynamo"), warnings=warnings)
        capture.stage_links += [link for pair in sorted(self.flows) if (link := self._flow(pair, builts)) is not None]
        for number, texts in enumerate(listings):
            add_listings(capture, number, texts)
        for number, breaks in ended.items():
            capture.add(_breaks(number - 1, breaks))
        embed(capture, exact)
        return capture

    def _ended(self, run: Compiled) -> dict[int, list[Break]]:
        """The break that ended each graph; one in code that gave no graph is listed with the first."""
        ended: dict[int, list[Break]] = {}
        for found in run.breaks:
            numbers = [
                number
                for number, (module, *_) in enumerate(self.found, start=1)
                if found.frame is not None and found.frame[:2] in lines_of(private.compile_reason(module))
            ]
            ended.setdefault(numbers[0] if numbers else 1, []).append(found)
        return ended

    def _flow(self, pair: tuple[int, int], builts: list[Built]) -> StageLink | None:
        """From what made a tensor in one graph to what reads it in the next."""
        before, after = builts[pair[0]], builts[pair[1]]
        pairs: set[tuple[int, int]] = set()
        for made, read in self.flows[pair]:
            value = after.values.get(read)
            if made in before.nodes and value is not None:
                readers = {node.index for node in after.graph.value(value).users}
                pairs |= {(before.nodes[made], reader) for reader in readers}
        if not pairs:
            return None
        source, target = (frozen(np.array(column, dtype=np.int32)) for column in zip(*sorted(pairs), strict=True))
        return StageLink(*pair, "flows", source, target, "reported")


def _breaks(stage: int, breaks: list[Break]) -> Table:
    known = [found.frame is not None for found in breaks]
    columns = {
        "file": column([found.frame.file if found.frame else "" for found in breaks], known=known),
        "line": column(np.array([found.frame.line if found.frame else 0 for found in breaks]), known=known),
        "reason": column([found.reason for found in breaks]),
    }
    return Table(stage, "row", frozen(range(len(breaks))), columns, BREAKS.name)
