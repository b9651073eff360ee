"""What was recorded, as one graph: operators as they ran, and the gradient nodes of every backward pass."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any

from opscope.ir import Capture, GraphBuilder, Origin, Pools, Stage
from opscope.ir.measurements import TIMES, VALUES, Figures, Measured, figures_table, times_table, values_table
from opscope.readers.paddle.backward import Edge, Placing, gradient_table, in_order, layer_scope
from opscope.readers.paddle.names import forward_op
from opscope.tracers.steps import step_ends

from . import private
from .passes import Pass
from .recorder import Call, Recorder
from .words import KEPT


def origin(how: str) -> Origin:
    return Origin(format="live", framework="paddle", version=str(private.the_paddle().__version__), how=how)


class Assembly:
    def __init__(self, recorder: Recorder, pools: Pools) -> None:
        self.recorder = recorder
        self.pools = pools
        self.builder = GraphBuilder(pools)
        self.warnings: list[str] = []
        self._steps = step_ends(recorder.steps)
        self._scopes = self._make_scopes()
        self._stacks: dict[int, int] = {}
        self.values: dict[int, int] = {}
        self._rows: dict[int, int] = {}  # call -> node
        self._again: dict[int, int] = {}  # a call that ran once more -> the call before
        self._placings: list[Placing] = []
        self.gradients: list[tuple[int, Edge]] = []

    def _make_scopes(self) -> list[int]:
        """Layers as they were called. Outside of all layers, calls are counted from zero in each training step."""
        scopes = self.recorder.layers.scopes
        began: dict[int, int] = {}
        for call in self.recorder.calls:
            scope = call.scope
            while scope > 0 and scope not in began:
                began[scope] = call.tick
                scope = scopes[scope].parent
        made = [0]
        calls: Counter[tuple[int, str]] = Counter()
        for number, scope in enumerate(scopes[1:], 1):
            parent, call = made[scope.parent], scope.call
            if self._steps and scope.parent == 0 and number in began:
                parent = self._step(began[number])
                call = calls[parent, scope.name]
                calls[parent, scope.name] += 1
            made.append(self.pools.scope(parent, scope.name, scope.cls, call))
        return made

    def _step(self, tick: float) -> int:
        """The scope of the training step at this time; 0 where there is only one."""
        return self.pools.scope(0, f"step {bisect_left(self._steps, tick) + 1}") if self._steps else 0

    def build(self, forward: bool = True) -> None:
        """All of it; without `forward`, the backward passes alone."""
        recorder = self.recorder
        self._find_recomputed()
        makers = {value for call in recorder.calls for value in call.makes}
        if forward:
            for index in range(len(recorder.values)):
                if index not in makers:
                    self._outer(index)
        rows: list[tuple[float, int, Any, int]] = []
        if forward:
            rows += [(float(call.tick), 0, None, i) for i, call in enumerate(recorder.calls)]
            for index in sorted(makers):
                self._inner(index)
        placings: list[tuple[Pass, Placing]] = []
        for number, watched in enumerate(recorder.passes):
            self._describe(watched, forward)
            placing = Placing(self.builder, watched.nodes)
            placings.append((watched, placing))
            self._placings.append(placing)
            order = in_order(watched.nodes, watched.times)
            last = float(watched.started)
            for i in order:
                last = watched.times.get(i, last)
                rows.append((last, number + 1, placing, i))
        rows.sort(key=lambda row: row[0])
        for _, _, placing, i in rows:
            if placing is None:
                self._emit(i, recorder.calls[i])
            else:
                placing.emit(i)
        for watched, placing in placings:
            self.gradients += placing.gradients
            self._link(watched, placing)
            self.warnings += [text for text in watched.problems() if text not in self.warnings]
        if forward:
            self._link_second(placings)
            for after, before in self._again.items():
                self.builder.link("recompute", self._rows[before], self._rows[after])

    # -- what was measured ------------------------------------------------------------------------

    def seconds(self) -> dict[int, float]:
        """By node. A gradient node's is the time from the end of the one before it."""
        found: dict[int, float] = {}
        if self.recorder.is_timed:
            found |= {self._rows[i]: seconds for i, seconds in enumerate(self.recorder.seconds) if i in self._rows}
            for watched, placing in zip(self.recorder.passes, self._placings, strict=True):
                found |= {placing.rows[i]: seconds for i, seconds in watched.seconds.items()}
        return found

    def measured(self) -> dict[int, Measured]:
        """By value: results of operators, and gradients."""
        found = {self.values[i]: row for i, row in self.recorder.measured.items() if i in self.values}
        by_edge = {edge: row for watched in self.recorder.passes for edge, row in watched.measured.items()}
        return found | {value: by_edge[id(edge)] for value, edge in self.gradients if id(edge) in by_edge}

    def figures(self) -> dict[int, Figures]:
        """The same with `values="stats"`."""
        taken = self.recorder.gradients  # by an optimizer: it saw what the backward pass had left
        found = {
            self._gradient(i) if i in taken else self.values[i]: row
            for i, row in self.recorder.figures.items()
            if i in self.values
        }
        by_edge = {edge: row for watched in self.recorder.passes for edge, row in watched.figures.items()}
        return found | {value: by_edge[id(edge)] for value, edge in self.gradients if id(edge) in by_edge}

    # -- values -----------------------------------------------------------------------------------

    def _type(self, index: int) -> int:
        value = self.recorder.values[index]
        return self.pools.type(value.dtype, value.shape)

    def _outer(self, index: int) -> None:
        value = self.recorder.values[index]
        self.values[index] = self.builder.input(self._type(index), name=value.name, role=value.role)

    def _inner(self, index: int) -> None:
        value = self.recorder.values[index]
        storage = self.values.get(value.storage) if value.storage >= 0 else None
        self.values[index] = self.builder.value(self._type(index), name=value.name, role=value.role)
        if storage is not None:
            self.builder.set_storage(self.values[index], storage)

    # -- rows -------------------------------------------------------------------------------------

    def _stack(self, place: int) -> int:
        if place not in self._stacks:
            self._stacks[place] = self.pools.stack(self.recorder.places.rows[place])
        return self._stacks[place]

    def _emit(self, index: int, call: Call) -> None:
        row = self.builder.node(
            call.op,
            [
                self._gradient(value) if value in self.recorder.gradients else self.values[value]
                for _, value in call.reads
            ],
            args=[word for word, _ in call.reads],
            scope=self._scope_of(index),
            stack=self._stack(call.place),
            attrs=call.attrs,
            phase=call.phase,
        )
        self._rows[index] = row
        for value in call.makes:
            self.builder.produce(row, self.values[value])

    def _gradient(self, value: int) -> int:
        """What an optimizer takes as gradient is what the last accumulation left."""
        name = self.recorder.gradients[value]
        found = [placing.leaf_values[name] for placing in self._placings if name in placing.leaf_values]
        return found[-1] if found else self.values[value]

    def _scope_of(self, index: int) -> int:
        """A part that runs once more is where it ran first: in the backward pass no layer is at work."""
        call = self.recorder.calls[self._again.get(index, index)]
        return self._scopes[call.scope] if call.scope or call.phase == "init" else self._step(call.tick)

    def _describe(self, watched: Pass, forward: bool) -> None:
        """Scope, stack and saved tensors of gradient nodes: those of the operator that they belong to."""
        unseen = 0
        owners = self.recorder.layers.owners()
        second = {hex(pointer) for other in self.recorder.passes for _, pointer in other.second}
        for node in watched.nodes:
            node.scope = self._step(watched.started)
            if node.is_leaf:
                node.scope = layer_scope(self.pools, owners.get(node.leaf, ()), node.scope)
            elif node.call >= 0:
                call = self.recorder.calls[node.call]
                node.scope, node.stack = self._scope_of(node.call), self._stack(call.place)
                kept = self._kept(call, node.name) if forward else []
                if kept:
                    node.saved = kept
                    node.attrs["saved by"] = "definition"
            elif node.ptr not in second:
                unseen += 1
        if unseen and forward:
            self.warnings.append(
                f"{unseen} gradient nodes belong to operators that ran before the recording or that were not seen"
            )

    def _kept(self, call: Call, gradient: str) -> list[tuple[str, int]]:
        """The tensors that Paddle defines this gradient to read (it does not show which ones it holds)."""
        inputs, outputs = KEPT.get(forward_op(gradient), ((), ()))
        given = dict(call.reads)
        kept = [(word, self.values[given[word]]) for word in inputs if word in given]
        return kept + [(word, self.values[call.makes[i]]) for i, word in outputs if i < len(call.makes)]

    def _link(self, watched: Pass, placing: Placing) -> None:
        for node, row in zip(watched.nodes, placing.rows, strict=True):
            if node.call in self._rows:
                self.builder.link("grad", self._rows[node.call], row)

    def _link_second(self, placings: list[tuple[Pass, Placing]]) -> None:
        """With create_graph, running a gradient node makes a gradient node of its own."""
        made: dict[str, int] = {}
        for watched, placing in placings:
            for i, node in enumerate(watched.nodes):
                source = made.get(node.ptr)
                if source is not None and node.call < 0 and not node.is_leaf:
                    self.builder.link("grad", source, placing.rows[i])
            for i, pointer in watched.second:
                made[hex(pointer)] = placing.rows[i]

    def _find_recomputed(self) -> None:
        """A part that runs once more runs the same operators in the same order, the latest part first."""
        calls = self.recorder.calls
        again = [i for i, call in enumerate(calls) if call.phase == "recompute"]
        start = 0
        used: set[int] = set()
        while start < len(again):
            end = start + 1
            while end < len(again) and again[end] == again[end - 1] + 1:
                end += 1
            block = again[start:end]
            names = [calls[i].op for i in block]
            found = self._same_before(names, block[0], used)
            for before, after in zip(found, block, strict=False):
                used.add(before)
                self._again[after] = before
            start = end

    def _same_before(self, names: list[str], before: int, used: set[int]) -> list[int]:
        calls = self.recorder.calls
        for start in range(before - len(names), -1, -1):
            window = range(start, start + len(names))
            if all(
                calls[i].phase == "forward" and i not in used and calls[i].op == name
                for i, name in zip(window, names, strict=True)
            ):
                return list(window)
        return []


def capture_of(assembly: Assembly, how: str, stage: str) -> Capture:
    graph = assembly.builder.freeze()
    capture = Capture(assembly.pools, [Stage(stage, graph)], origin=origin(how), warnings=assembly.warnings)
    table = gradient_table(assembly.gradients)
    if table is not None:
        capture.tables["gradients"] = table
    seconds, measured = assembly.seconds(), assembly.measured()
    if seconds:
        rows = range(graph.n_nodes)
        nanoseconds = [seconds.get(row, 0.0) * 1e9 for row in rows]
        capture.tables[TIMES] = times_table(0, "node", rows, nanoseconds, [row in seconds for row in rows])
    if measured:
        capture.tables[VALUES] = values_table(0, measured)
    if figures := assembly.figures():
        capture.tables[VALUES] = figures_table(0, figures)
    return capture
