"""One of two recordings that are compared: its tensors by their statistics, and how they depend on each other."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from opscope.analysis.shaped import reads_shape_alone
from opscope.errors import OpscopeError
from opscope.ir import NULL, PHASES, ROLES, Capture, Graph
from opscope.ir.dtypes import find
from opscope.ir.facts import VALUES
from opscope.ir.rows import Rows

from .results import Place

Floats = npt.NDArray[np.float64]

FIGURES = ("mean", "rms", "min", "max")
MOST_ASKED = 64  # tensors, on the way back from one
_HUGE = 1e30  # what masks add instead of −inf: statistics of such a tensor say nothing about its other numbers
_MOST_STEPS = 256  # operators whose rounding is believed to add up in one that was compiled
_CASTS, _MOST_READ = 3, 8  # operators from a weight to where it is cast: a division by a scale, a cast, a view
_SUMS = re.compile(r"(?:^|\.)(?:add|sub)_?(?:\.|$)")
_OVERWRITES = re.compile(r"(?:^|\.)(?:copy_|zero_|fill_|normal_|uniform_|_foreach_copy_|_foreach_zero_)(?:\.|$)")
_KEEPING = ("aten.detach", "aten.alias", "aten.view")  # what keeps tensors for the backward pass


class Side:
    """One recording, by value: size, statistics, precision, hash."""

    def __init__(self, capture: Capture, stage: int = 0) -> None:
        self.graph = graph = capture.stages[stage].graph
        self.rows = Rows(graph)
        count = graph.n_values
        self.figures: Floats = np.full((count, len(FIGURES)), np.nan)
        self.has_inf = np.zeros(count, dtype=bool)
        self.hash: list[str] = [""] * count
        found = False
        for table in capture.facts(VALUES.name, stage):
            for place, name in enumerate(FIGURES):
                column = table.columns.get(name)
                if column is not None:
                    rows = table.index[column.known]
                    self.figures[rows, place] = np.asarray(column.values, dtype=np.float64)[column.known]
                    found = True
            infinite = table.columns.get("inf")
            if infinite is not None:
                self.has_inf[table.index[infinite.known]] = np.asarray(infinite.values)[infinite.known] > 0
            hashes = table.columns.get("hash")
            for row, value in enumerate(table.index.tolist()):
                if hashes is not None and hashes.known[row]:
                    self.hash[value] = str(hashes.values[row])
        if not found:
            raise OpscopeError(
                "a capture holds no statistics of tensors: record both with values='stats' "
                "(opscope trace --values stats)"
            )
        self.size, self.precision = self._types(graph)
        self.scale = np.maximum(np.abs(self.figures[:, 1]), 1e-30)
        spread = self.figures[:, 3] - self.figures[:, 2]
        is_measured = ~np.isnan(self.figures[:, 1])
        # What can be told apart from other tensors: not a number, not whole numbers, not the same number everywhere.
        is_mask = np.nan_to_num(self.figures[:, 2]) < -_HUGE
        self.telling = is_measured & (self.size > 1) & (self.precision > 0) & (spread > 0) & ~is_mask & ~self.has_inf
        self.numbers = is_measured & (self.size == 1) & (self.precision > 0)
        self.reached = self._reached()
        self.is_compiled = any(node.op.startswith("compiled.") for node in graph.nodes)
        made = self.precision[(graph.value_producer >= 0) & self.telling]
        # The precision that it computes in: that of most results, or of the weights, where these are coarser.
        self.usual = max(float(np.median(made)) if len(made) else 0.0, self._of_weights())

    def _types(self, graph: Graph) -> tuple[npt.NDArray[np.int64], Floats]:
        sizes: list[int] = []
        precisions: list[float] = []
        for type_ in graph.pools.types:
            sizes.append(type_.elements if type_.elements is not None else -1)
            precisions.append(_precision(type_.dtype))
        own = graph.value_type
        return np.array(sizes, dtype=np.int64)[own], np.array(precisions)[own]

    def _reached(self) -> npt.NDArray[np.bool_]:
        """What takes part: read by an operator, or made by one."""
        graph = self.graph
        used = np.zeros(graph.n_values, dtype=bool)
        names = graph.pools.strings
        writes = np.array([_OVERWRITES.search(name) is not None for name in names], dtype=bool)
        is_read = graph.use_value >= 0
        # What is only written over is not read: what a model held before its state was loaded.
        first = np.zeros(len(graph.use_value), dtype=bool)
        first[graph.use_start[:-1][np.diff(graph.use_start) > 0]] = True
        is_read &= ~(first & writes[graph.node_op[graph.use_node]])
        used[graph.use_value[is_read]] = True
        return used | (graph.value_producer >= 0)

    def _of_weights(self) -> float:
        """The precision that is left of most weights: that of their type, or of one that they are soon cast to."""
        graph = self.graph
        dtypes = [type_.dtype for type_ in graph.pools.types]
        held = [coarseness(dtype) for dtype in dtypes]
        found: list[float] = []
        for value in np.flatnonzero(graph.value_producer < 0).tolist():
            type_ = graph.pools.types[int(graph.value_type[value])]
            if ROLES[int(graph.value_role[value])] not in ("parameter", "buffer") or len(type_.shape or ()) < 2:
                continue
            coarsest, level = held[int(graph.value_type[value])], [value]
            for _ in range(_CASTS):
                level = [made for one in level for node in self.readers(one) for made in self.rows.made(node)]
                level = [made for made in level if self.size[made] == self.size[value]][:_MOST_READ]
                coarsest = max([coarsest, *(held[int(graph.value_type[made])] for made in level)])
            if coarsest > 0:
                found.append(coarsest)
        return float(np.median(found)) if found else 0.0

    def lost(self, has: npt.NDArray[np.bool_], rounding: float) -> list[int]:
        """The values that tell something and have no counterpart, and from which nothing is computed that has one;
        in the order of the operators, values from outside first. `rounding` is how far equal results may be apart."""
        graph = self.graph
        recovers = has & self.telling
        for node in range(graph.n_nodes - 1, -1, -1):
            if any(recovers[value] for value in self.rows.made(node)):
                for place, value in enumerate(self.rows.used(node)):
                    if value >= 0 and self._is_told_by(value, node, place) and self._shows(value, node, rounding):
                        recovers[value] = True
        wanted = (self.telling | self.numbers) & self.reached & ~has & ~recovers
        values = np.flatnonzero(wanted)
        return sorted(values.tolist(), key=lambda value: (int(graph.value_producer[value]), value))

    def _is_told_by(self, value: int, node: int, place: int) -> bool:
        """Whether what an operator makes says that a tensor it reads is right. A step of an optimizer is too small to
        say so of a gradient; nor does the backward pass of what the forward pass itself went on with."""
        graph = self.graph
        producer = int(graph.value_producer[value])
        phase = int(graph.node_phase[node])
        if reads_shape_alone(graph.node(node).op, place):
            return False
        if producer < 0 or (own := int(graph.node_phase[producer])) == phase:
            return True
        if PHASES[phase] == "optimizer":
            return False
        return not any(int(graph.node_phase[reader]) == own for reader in self.readers(value))

    def _shows(self, value: int, node: int, rounding: float) -> bool:
        """Of a summand: whether a result as large as this would be another one without it. Twice as large a branch
        beside a residual makes the sum larger by the square of their ratio."""
        if _SUMS.search(self.graph.node(node).op) is None:
            return True
        made = max((float(self.scale[one]) for one in self.rows.made(node) if self.telling[one]), default=0.0)
        return not self.telling[value] or float(self.scale[value]) ** 2 > rounding * made**2

    def steps(self, value: int, other: Side) -> int:
        """How many operators' rounding is in what its operator makes of what it reads."""
        node = int(self.graph.value_producer[value])
        is_compiled = node >= 0 and self.graph.node(node).op.startswith("compiled.")
        return min(other.graph.n_nodes, _MOST_STEPS) if is_compiled else int(node >= 0)

    def lost_ends(self, has: npt.NDArray[np.bool_]) -> list[int]:
        """Of what comes to stay (the result, what a variable holds, gradients of parameters, what is written to these)
        that without counterpart. What a compiler fused has none in between, and keeps other tensors for the backward
        pass."""
        graph = self.graph
        names = graph.pools.strings
        outputs = {value for value in graph.outputs.tolist() if names[int(graph.value_name[value])]}
        forward: list[int] = np.flatnonzero(graph.node_phase == PHASES.index("forward")).tolist()
        last = next((node for node in reversed(forward) if graph.node(node).op not in _KEEPING), None)
        if last is not None:
            outputs.update(self.rows.made(last)[:1])
        found: list[int] = []
        for value in np.flatnonzero((self.telling | self.numbers) & ~has & (graph.value_producer >= 0)).tolist():
            is_gradient = names[int(graph.value_name[value])].endswith(".grad")
            is_kept = ROLES[int(graph.value_role[graph.value_storage[value]])] in ("parameter", "buffer", "state")
            if value in outputs or is_gradient or (is_kept and not self.readers(value)):
                found.append(value)
        return sorted(found, key=lambda value: (int(graph.value_producer[value]), value))

    def place(self, value: int) -> Place:
        graph = self.graph
        node = int(graph.value_producer[value])
        if node >= 0:
            at = graph.node(node)
            frame = self.rows.users_frame(node) or self.rows.frame(node)
            file, line = (frame.file, frame.line) if frame is not None else ("", 0)
            return Place(at.op, at.path, file, line, at.phase, node)
        readers = np.flatnonzero(graph.use_value == value)
        first = int(graph.use_node[readers[0]]) if len(readers) else -1
        path = graph.node(first).path if first >= 0 else ""
        phase = PHASES[int(graph.node_phase[first])] if first >= 0 else ""
        name = graph.pools.strings[int(graph.value_name[value])]
        return Place(ROLES[int(graph.value_role[value])], path, "", 0, phase, -1, name)

    def telling_inputs(self, value: int) -> list[int]:
        """What its operator reads; instead of a tensor that tells nothing, what that was made of."""
        found: list[int] = []
        todo, seen = self.inputs(value), {value}
        while todo and len(seen) < MOST_ASKED:
            used = todo.pop(0)
            if used in seen:
                continue
            seen.add(used)
            if self.telling[used]:
                found.append(used)
            else:
                todo += self.inputs(used)
        return found

    def readers(self, value: int) -> list[int]:
        start, use = self.graph.value_uses
        return self.graph.use_node[use[start[value] : start[value + 1]]].tolist()

    def inputs(self, value: int) -> list[int]:
        node = int(self.graph.value_producer[value])
        return [used for used in self.rows.used(node) if used != NULL] if node >= 0 else []


def coarseness(dtype: str) -> float:
    """The precision of numbers that are stored in a type: also of whole ones, to which weights are quantized."""
    found = find(dtype)
    if (
        found is not None
        and found.family in ("int", "uint", "quantized")
        and found.bits is not None
        and found.bits <= 8
    ):
        return 2.0 ** (1 - found.bits)
    return _precision(dtype)


def _precision(dtype: str) -> float:
    """The distance of neighbouring numbers around 1; 0: no floating-point numbers."""
    known = {"float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23, "complex64": 2.0**-23}
    if dtype in known:
        return known[dtype]
    found = find(dtype)
    if found is None or found.family not in ("float", "complex"):
        return 0.0
    if dtype == "bfloat16":
        return 2.0**-7
    if found.bits is not None and found.bits >= 16:
        return 2.0**-10
    return 2.0**-2 if "e5m2" in dtype or (found.bits or 0) < 8 else 2.0**-3
