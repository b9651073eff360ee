"""Softmax and layer norm where a framework writes them as several operators.

They are found by what is computed, from the exponential or the square root outwards, whatever reshapes, broadcasts and
casts lie between. Every operator that computes a part of one carries its kind, so that `kind:softmax` finds the
whole and a table by kind adds up its cost. What each of them costs does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from opscope.ir.graph import Graph
from opscope.ir.pools import Dim

_PASSED = frozenset(("view", "expand", "cast", "identity"))  # the same numbers
_SOURCES = ("exp", "sqrt")


Shape: TypeAlias = tuple[Dim, ...]


class _Op(NamedTuple):
    node: int
    kind: str
    reads: tuple[int, ...]  # values, past what only passes them on
    makes: int  # a value


class _Variance(NamedTuple):
    """Of what, around which mean (both values), and the operators that compute it."""

    x: int
    mean: int
    parts: set[int]


def composed(graph: Graph, kinds: Mapping[int, str]) -> dict[int, str]:
    """The kinds of operators that are parts of a softmax, log-softmax or layer norm. `kinds`: by string of an op."""
    sources = {op for op, kind in kinds.items() if kind in _SOURCES}
    found: dict[int, str] = {}
    if sources:
        search = _Search(graph, kinds)
        for node, op in enumerate(graph.node_op.tolist()):
            if op in sources:
                kind, parts = search.softmax(node) if kinds[op] == "exp" else search.layer_norm(node)
                found.update(dict.fromkeys(parts, kind))
    return found


class _Search:
    def __init__(self, graph: Graph, kinds: Mapping[int, str]) -> None:
        self.graph, self.kinds = graph, kinds

    # -- softmax ----------------------------------------------------------------------------------------

    def softmax(self, node: int) -> tuple[str, set[int]]:
        """exp(a) / sum(exp(a)), or a - log(sum(exp(a))), where a is mostly x - max(x)."""
        exp = self.op(node)
        if len(exp.reads) != 1:
            return "", set()
        a = exp.reads[0]
        shifted = self.shifted(a)
        for total in self.readers(exp.makes, "sum"):
            for ratio in self.readers(total.makes, "div"):
                if ratio.reads == (exp.makes, total.makes):
                    return "softmax", {*shifted, exp.node, total.node, ratio.node}
            for log in self.readers(total.makes, "log"):
                for difference in self.readers(log.makes, "sub"):
                    if difference.reads == (a, log.makes) and shifted:
                        return "log_softmax", {*shifted, exp.node, total.node, log.node, difference.node}
        return "", set()

    def shifted(self, value: int) -> set[int]:
        """The operators of x - max(x)."""
        difference = self.maker(value, "sub")
        if difference is None or len(difference.reads) != 2:
            return set()
        x, most = difference.reads
        maximum = self.maker(most, "amax")
        return {difference.node, maximum.node} if maximum is not None and maximum.reads[:1] == (x,) else set()

    # -- layer norm -------------------------------------------------------------------------------------

    def layer_norm(self, node: int) -> tuple[str, set[int]]:
        """(x - mean) / sqrt(variance + eps) over the last axes, with a weight and a bias that span these axes."""
        root = self.op(node)
        shifted = self.maker(root.reads[0], "add") if root.reads else None
        for value in shifted.reads if shifted is not None else ():
            positive = self.maker(value, "maximum")  # against rounding
            for inner in positive.reads if positive is not None else (value,):
                found = self.of_squares(inner) or self.of_differences(inner)
                last = self.last(found.x, found.mean) if found is not None else None
                if found is None or last is None or shifted is None:
                    continue
                scaled = self.scaled(root, found, last)
                above = {op.node for op in (root, shifted, positive) if op is not None}
                return ("layer_norm", above | found.parts | scaled) if scaled else ("", set())
        return "", set()

    def of_squares(self, value: int) -> _Variance | None:
        """mean(x²) - mean(x)²."""
        difference = self.maker(value, "sub")
        if difference is None or len(difference.reads) != 2:
            return None
        average, squared = self.maker(difference.reads[0], "mean"), self.maker(difference.reads[1], "mul")
        if average is None or squared is None or not _is_square(squared):
            return None
        squares, mean = self.maker(average.reads[0], "mul"), self.maker(squared.reads[0], "mean")
        if squares is None or mean is None or not _is_square(squares) or squares.reads[0] != mean.reads[0]:
            return None
        parts = {op.node for op in (difference, average, squared, squares, mean)}
        return _Variance(mean.reads[0], mean.makes, parts)

    def of_differences(self, value: int) -> _Variance | None:
        """mean((x - mean(x))²)."""
        average = self.maker(value, "mean")
        squares = self.maker(average.reads[0], "mul") if average is not None else None
        centred = self.maker(squares.reads[0], "sub") if squares is not None and _is_square(squares) else None
        mean = self.maker(centred.reads[1], "mean") if centred is not None and len(centred.reads) == 2 else None
        if average is None or squares is None or centred is None or mean is None or mean.reads[0] != centred.reads[0]:
            return None
        return _Variance(mean.reads[0], mean.makes, {op.node for op in (average, squares, centred, mean)})

    def last(self, x: int, mean: int) -> Shape | None:
        """The sizes of the axes that a mean is taken over, if they are the last ones and not all."""
        full, reduced = self.shape(x), self.shape(mean)
        for first in range(len(full or ()) - 1, 0, -1):
            kept = (full or ())[:first]
            if reduced in (kept, (*kept, *[1] * (len(full or ()) - first))):
                return (full or ())[first:]
        return None

    def scaled(self, root: _Op, found: _Variance, last: Shape) -> set[int]:
        """Behind the square root: x·w + (bias - mean·w) with w = weight / root, or (x - mean) / root·weight + bias."""
        x, mean = found.x, found.mean
        for ratio in self.readers(root.makes, "div"):
            if len(ratio.reads) != 2 or ratio.reads[1] != root.makes:
                continue
            centred = self.maker(ratio.reads[0], "sub")
            if centred is not None and centred.reads == (x, mean):
                return {ratio.node, centred.node, *self.affine(ratio, last)}
            if not self.spans(ratio, 0, last):
                continue
            products = list(self.readers(ratio.makes, "mul"))
            of_mean = [op for op in products if set(op.reads) == {mean, ratio.makes}]
            of_x = [op for op in products if set(op.reads) == {x, ratio.makes}]
            for moved in (found for op in of_mean for found in self.readers(op.makes, "sub")):
                for result in self.readers(moved.makes, "add"):
                    both = [op for op in of_x if set(result.reads) == {op.makes, moved.makes}]
                    if both and self.spans(moved, 0, last):
                        return {ratio.node, *(op.node for op in (of_mean[0], both[0], moved, result))}
        return set()

    def affine(self, ratio: _Op, last: Shape) -> Iterator[int]:
        """The weight and the bias behind a normalized tensor, as far as there are any."""
        made = ratio.makes
        for kind in ("mul", "add"):
            for op in self.readers(made, kind):
                other = next((i for i, value in enumerate(op.reads) if value != made), None)
                if len(op.reads) == 2 and other is not None and self.spans(op, other, last):
                    yield op.node
                    made = op.makes
                    break

    def spans(self, op: _Op, place: int, last: Shape) -> bool:
        """An argument has one number for each place on the last axes, or one number in all."""
        graph = self.graph
        value = int(graph.use_value[graph.use_start[op.node] + place])
        node = int(graph.value_producer[value])
        if node >= 0 and self.kinds[int(graph.node_op[node])] == "expand":
            value = int(graph.use_value[graph.use_start[node]])
        shape = self.shape(value)
        while shape and shape[0] == 1:
            shape = shape[1:]
        return shape is not None and shape in ((), last)

    # -- the graph --------------------------------------------------------------------------------------

    def op(self, node: int) -> _Op:
        graph = self.graph
        values = graph.use_value[graph.use_start[node] : graph.use_start[node + 1]].tolist()
        made = graph.node_outputs.row(node).tolist()
        reads = tuple(self.origin(value) for value in values if value >= 0)
        return _Op(node, self.kinds[int(graph.node_op[node])], reads, made[0] if made else -1)

    def origin(self, value: int) -> int:
        """The value that has these numbers first."""
        graph = self.graph
        while (node := int(graph.value_producer[value])) >= 0:
            if self.kinds[int(graph.node_op[node])] not in _PASSED:
                break
            reads = graph.use_value[graph.use_start[node] : graph.use_start[node + 1]]
            if not len(reads) or reads[0] < 0:
                break
            value = int(reads[0])
        return value

    def maker(self, value: int, kind: str) -> _Op | None:
        """The operator that makes a value, if it is of this kind."""
        node = int(self.graph.value_producer[value])
        if node < 0 or self.kinds[int(self.graph.node_op[node])] != kind:
            return None
        op = self.op(node)
        return op if op.reads else None

    def readers(self, value: int, kind: str) -> Iterator[_Op]:
        """The operators of a kind that read a value, past what only passes it on."""
        graph = self.graph
        waiting, seen = [value], {value}
        while waiting:
            for row in graph.value_uses.row(waiting.pop()).tolist():
                node = int(graph.use_node[row])
                of = self.kinds[int(graph.node_op[node])]
                if of == kind:
                    yield self.op(node)
                elif of in _PASSED and row == graph.use_start[node]:
                    made = [made for made in graph.node_outputs.row(node).tolist() if made not in seen]
                    seen.update(made)
                    waiting += made

    def shape(self, value: int) -> Shape | None:
        return self.graph.pools.types[int(self.graph.value_type[value])].shape


def _is_square(op: _Op) -> bool:
    return len(op.reads) == 2 and op.reads[0] == op.reads[1]
