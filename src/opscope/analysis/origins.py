"""Where numbers that are not finite were born: the operators that made them of finite ones, in order.

An operator that gets NaN or an infinite number and hands it on only spreads it. Some infinite numbers are meant: a mask
holds −inf, a search for a minimum begins with inf. They count only once they become NaN, or come out at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from opscope.errors import OpscopeError
from opscope.ir import NULL, PHASES, ROLES, Capture, Graph
from opscope.ir.facts import VALUES
from opscope.ir.pools import text_to_attrs
from opscope.ir.rows import Rows

from .origin import Origin as Origin
from .origin import Seen as Seen
from .shaped import reads_shape_alone

_FINITE, _MEANT, _BAD = range(3)
_FILLS = re.compile(
    r"(?:^|\.)(?:masked_fill|full|full_like|new_full|fill|fill_diagonal|scalar_tensor|where|constant_pad_nd|lift_fresh"
    r"|lift_fresh_copy|_assert_\w+|tensor|index_fill|masked_scatter|triu|tril)_?(?:\.|$)"
)
_KEPT = ("parameter", "buffer", "state")
_SHOWN = ("min", "max", "mean", "rms", "nan", "inf", "zeros")


class _Figures(NamedTuple):
    """What is known of each value: how many numbers are NaN, infinite, negative infinite; -1: not measured."""

    nan: Any
    inf: Any
    negative: Any
    columns: dict[str, Any]


def origins(capture: Capture, stage: int = 0, *, absorbed: bool = False) -> list[Origin]:
    """The origins in a recording with `values=True` or `values="stats"`, the first one first. Those that went nowhere
    are left out where others did go somewhere and do not depend on them, and where they are usual (a formula of a
    gradient that masks its own division by zero, −inf of a mask), unless `absorbed` asks for them."""
    graph = capture.stages[stage].graph
    figures = _figures(capture, stage, graph)
    if figures is None:
        raise OpscopeError(
            "the capture holds no statistics of tensors: record with values='stats' "
            "(opscope trace --values stats, or opscope nan SCRIPT)"
        )
    return _Search(graph, figures).found(absorbed)


def _figures(capture: Capture, stage: int, graph: Graph) -> _Figures | None:
    columns: dict[str, Any] = {name: np.full(graph.n_values, np.nan) for name in (*_SHOWN, "neginf")}
    seen = False
    for table in capture.facts(VALUES.name, stage):
        for name, found in columns.items():
            column = table.columns.get(name)
            if column is not None:
                rows = table.index[column.known]
                found[rows] = np.asarray(column.values, dtype=np.float64)[column.known]
                seen = seen or name in ("nan", "inf")
    if not seen:
        return None
    nan, inf, negative = (np.nan_to_num(columns[name], nan=-1) for name in ("nan", "inf", "neginf"))
    return _Figures(nan, inf, negative, columns)


class _Search:
    def __init__(self, graph: Graph, figures: _Figures) -> None:
        self.graph, self.figures, self.rows = graph, figures, Rows(graph)
        self.state = np.zeros(graph.n_values, dtype=np.int8)
        self.blame = np.full(graph.n_values, -1, dtype=np.int64)  # the origin that a value's state comes from
        self.origins: list[tuple[int, int, str]] = []  # node or -1, value, kind
        self.spread: list[int] = []
        self.meant: list[tuple[int, int]] = []  # fills with infinite numbers: node, value

    def found(self, absorbed: bool) -> list[Origin]:
        rows = self.rows
        for value in np.flatnonzero(self.graph.value_producer < 0).tolist():
            if ROLES[int(self.graph.value_role[value])] != "gradient":
                self._from_outside(value)
        for node in range(self.graph.n_nodes):
            self._visit(node, [value for value in rows.used(node) if value >= 0], rows.made(node))
        if not self.origins:
            self._meant_after_all()
        stays = self._stays()
        keeps = range(len(self.origins)) if absorbed else self._worth_telling(stays)
        order = sorted(keeps, key=lambda i: (self.origins[i][0] >= 0, i))
        return [self._origin(*self.origins[i], self.spread[i], absorbed=not stays[i]) for i in order]

    def _is(self, value: int) -> tuple[bool, bool]:
        """(has NaN, has infinite numbers)"""
        return self.figures.nan[value] > 0, self.figures.inf[value] > 0

    def _from_outside(self, value: int) -> None:
        nan, inf = self._is(value)
        if not nan and not inf:
            return
        role = ROLES[int(self.graph.value_role[value])]
        if not nan and role not in ("parameter", "state"):
            # A mask that is added to scores, or a limit: all of it negative, or a single number.
            only_negative = self.figures.negative[value] >= self.figures.inf[value]
            if only_negative or self._is_number(value):
                self.state[value] = _MEANT
                self.meant.append((-1, value))
                return
        self.state[value] = _BAD
        self.blame[value] = self._add(-1, value, "nan" if nan else "inf")

    def _is_number(self, value: int) -> bool:
        return self.graph.value(value).type.shape == ()

    def _handed_on(self, value: int) -> None:
        """A gradient that an engine keeps has no operator that made it. After an origin it comes from there; before
        any, it was there when the recording began."""
        if not self.origins:
            self._from_outside(value)
        elif any(self._is(value)):
            self.state[value], self.blame[value] = _BAD, len(self.origins) - 1

    def _visit(self, node: int, used: list[int], made: list[int]) -> None:
        for value in used:
            is_new = self.graph.value_producer[value] < 0 and self.state[value] == _FINITE
            if is_new and ROLES[int(self.graph.value_role[value])] == "gradient":
                self._handed_on(value)
        states = [int(self.state[value]) for value in used]
        worst = max(states, default=_FINITE)
        blamed = next((int(self.blame[v]) for v, s in zip(used, states, strict=True) if s == _BAD), -1)
        is_new, kind, at = False, "inf", -1
        for value in made:
            nan, inf = self._is(value)
            if self.figures.nan[value] < 0:  # not measured: what it shows is what was read
                self.state[value], self.blame[value] = worst, blamed
            elif not nan and not inf:
                self.state[value] = _FINITE
            elif worst == _BAD:
                self.state[value], self.blame[value] = _BAD, blamed
            elif not nan and self._may_be_meant(node, value, worst):
                self.state[value] = _MEANT
                if worst == _FINITE:
                    self.meant.append((node, value))
            else:
                is_new, at = True, value if at < 0 else at
                kind = "nan" if nan else kind
                self.state[value] = _BAD
        if worst == _BAD and blamed >= 0 and any(self.state[value] == _BAD for value in made):
            self.spread[blamed] += 1
        if is_new:
            number = self._add(node, at, kind)
            for value in made:
                if self.state[value] == _BAD and self.blame[value] < 0:
                    self.blame[value] = number

    def _may_be_meant(self, node: int, value: int, worst: int) -> bool:
        """Infinite numbers, none NaN: written down as a mask or a limit is, or handed on."""
        if ROLES[self.graph.value_role[self.graph.value_storage[value]]] in _KEPT:
            return False  # nobody means infinite weights
        if worst == _MEANT:
            return True
        if _FILLS.search(self.graph.node(node).op) is None:
            return False
        attrs = text_to_attrs(self.graph.pools.attr_texts[int(self.graph.node_attrs[node])])
        return any(isinstance(item, float) and math.isinf(item) for item in _numbers(attrs))

    def _stays(self) -> list[bool]:
        """Of each origin whether something that it made is kept, comes out, or is read by nothing that computes."""
        graph = self.graph
        stays = [False] * len(self.origins)
        outputs = set(graph.outputs.tolist())
        for value in np.flatnonzero(self.state == _BAD).tolist():
            blamed = int(self.blame[value])
            if blamed < 0 or stays[blamed]:
                continue
            is_kept = ROLES[graph.value_role[graph.value_storage[value]]] in _KEPT
            stays[blamed] = is_kept or value in outputs or self._is_end(value)
        return stays

    def _is_end(self, value: int) -> bool:
        """Nothing in its own pass computes numbers of it; a backward pass reads results of the forward pass, too."""
        graph = self.graph
        producer = int(graph.value_producer[value])
        phase = int(graph.node_phase[producer]) if producer >= 0 else -1
        for node in self._readers(value):
            if phase >= 0 and int(graph.node_phase[node]) != phase:
                continue
            if not reads_shape_alone(graph.node(node).op) and any(
                self.figures.nan[made] >= 0 and self._is_float(made) for made in self.rows.made(node)
            ):
                return False
        return True

    def _readers(self, value: int) -> list[int]:
        start, use = self.graph.value_uses
        return self.graph.use_node[use[start[value] : start[value + 1]]].tolist()

    def _is_float(self, value: int) -> bool:
        return self.graph.value(value).type.dtype.startswith(("float", "bfloat", "complex"))

    def _worth_telling(self, stays: list[bool]) -> list[int]:
        """Those that stay, and the absorbed ones that these depend on: by data, or as their forward operators."""
        kept = {i for i, one in enumerate(stays) if one}
        if not kept:
            return [i for i in range(len(stays)) if not self._is_usual(i)]
        wanted = {self.origins[i][0] for i in kept}
        wanted |= {node for i in kept if (node := self._forward_node(self.origins[i][0])) >= 0}
        behind = self._before(wanted)
        return [i for i in range(len(stays)) if i in kept or (kept and self._is_before(i, wanted, behind))]

    def _is_usual(self, origin: int) -> bool:
        """What went nowhere as it should: a gradient formula that masks its own division by zero, −inf of a mask."""
        node, value, kind = self.origins[origin]
        if node >= 0 and (forward := self._forward_node(node)) >= 0:
            bad = np.flatnonzero((self.state == _BAD) & (self.blame == origin)).tolist()
            return all(self._forward_node(reader) == forward for one in bad for reader in self._readers(one))
        return kind == "inf" and self.figures.negative[value] >= self.figures.inf[value]

    def _is_before(self, origin: int, wanted: set[int], behind: set[int]) -> bool:
        node, value, _ = self.origins[origin]
        return node in wanted or node in behind if node >= 0 else any(n in behind for n in self._readers(value))

    def _before(self, nodes: set[int]) -> set[int]:
        """The operators that some operators depend on, and these themselves."""
        found, todo = set(nodes), list(nodes)
        producer = self.graph.value_producer
        while todo:
            for value in self.rows.used(todo.pop()):
                if value >= 0 and (above := int(producer[value])) >= 0 and above not in found:
                    found.add(above)
                    todo.append(above)
        return found

    def _forward_node(self, node: int) -> int:
        links = self.graph.links_of("grad")
        found: list[int] = links.source[links.target == node].tolist() if node >= 0 else []
        return found[0] if found else -1

    def _meant_after_all(self) -> None:
        """Nothing went wrong on the way, but what comes out, or is kept, is infinite: then it was the fills."""
        kept = [int(self.graph.value_storage[v]) for v in range(self.graph.n_values) if self.state[v] == _MEANT]
        ends = [int(v) for v in self.graph.outputs if self.state[v] == _MEANT and self._is_number(int(v))]
        if ends or any(ROLES[self.graph.value_role[owner]] in _KEPT for owner in kept):
            for node, value in self.meant:
                self._add(node, value, "inf")

    def _add(self, node: int, value: int, kind: str) -> int:
        self.origins.append((node, value, kind))
        self.spread.append(0)
        return len(self.origins) - 1

    # -- what to say of one -----------------------------------------------------------------------

    def _origin(self, node: int, value: int, kind: str, spread: int, absorbed: bool) -> Origin:
        graph = self.graph
        if node < 0:
            return self._outside(value, kind, spread, absorbed)
        at = graph.node(node)
        forward = self._forward(node) if at.phase in ("backward", "recompute") else None
        file, line = self._line(node)
        return Origin(
            op=at.op,
            path=at.path,
            phase=at.phase,
            file=file,
            line=line,
            kind=kind,
            inputs=[self._seen(v, name) for v, name in self._inputs(node)],
            outputs=[self._seen(v, "") for v in self.rows.made(node)],
            node=node,
            forward=forward,
            spread=spread,
            absorbed=absorbed,
            value=value,
            story=self._story(node, value),
        )

    def _outside(self, value: int, kind: str, spread: int, absorbed: bool) -> Origin:
        """What came with them; its place is the operator that read it first."""
        graph = self.graph
        first = min(self._readers(value), default=-1)
        path = graph.node(first).path if first >= 0 else ""
        seen = self._seen(value, "")
        phase = PHASES[int(graph.node_phase[first])] if first >= 0 else "forward"
        role = ROLES[int(graph.value_role[value])]
        role = "input" if role == "constant" else role  # a tensor that no variable holds: of a data loader, perhaps
        file, line = self._line(first) if first >= 0 else ("", 0)
        story = self._story(first, value)
        return Origin(
            role, path, phase, file, line, kind, [], [seen], seen.name, -1, None, spread, absorbed, value, story
        )

    def _story(self, node: int, value: int) -> list[int]:
        """The shortest way that its numbers took to the last place that they reached: the loss, or a weight."""
        came: dict[int, int] = {value: -1}
        todo, last = [value], value
        while todo:
            value = todo.pop(0)
            last = max(last, value, key=self._weight)
            for reader in self._readers(value):
                for made in self.rows.made(reader):
                    if self.state[made] == _BAD and made not in came:
                        came[made] = value
                        todo.append(made)
        way: list[int] = []
        while last >= 0:
            way.append(int(self.graph.value_producer[last]))
            last = came[last]
        return list(dict.fromkeys(at for at in (node, *reversed(way)) if at >= 0))

    def _weight(self, value: int) -> tuple[bool, bool, int]:
        """How well a story ends here: at what is kept, at the loss, or else at the last operator."""
        graph = self.graph
        is_kept = ROLES[graph.value_role[graph.value_storage[value]]] in _KEPT
        producer = int(graph.value_producer[value])
        is_forward = producer >= 0 and PHASES[int(graph.node_phase[producer])] == "forward"
        return is_kept and producer >= 0, is_forward and self._is_number(value), producer

    def _inputs(self, node: int) -> Iterator[tuple[int, str]]:
        strings = self.rows.strings
        for value, name in zip(self.rows.used(node), self.rows.arguments(node), strict=True):
            if value != NULL:
                yield value, strings[name]

    def _seen(self, value: int, name: str) -> Seen:
        graph = self.graph
        own = graph.pools.strings[int(graph.value_name[value])]
        figures = {key: float(self.figures.columns[key][value]) for key in _SHOWN}
        known = {key: figure for key, figure in figures.items() if not math.isnan(figure)}
        return Seen(own or name, str(graph.value(value).type), known)

    def _line(self, node: int) -> tuple[str, int]:
        frame = self.rows.users_frame(node) or self.rows.frame(node)
        return (frame.file, frame.line) if frame is not None else ("", 0)

    def _forward(self, node: int) -> Origin | None:
        if (found := self._forward_node(node)) < 0:
            return None
        at = self.graph.node(found)
        file, line = self._line(at.index)
        inputs = [self._seen(v, name) for v, name in self._inputs(at.index)]
        outputs = [self._seen(v, "") for v in self.rows.made(at.index)]
        return Origin(at.op, at.path, at.phase, file, line, "", inputs, outputs, node=at.index)


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _numbers(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _numbers(item)
    else:
        yield value
