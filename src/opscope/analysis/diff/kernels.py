"""Two compiled captures: which fused kernel was split, which were merged, where, and why.

Operators are counterparts by what they are and by their module, in order; a kernel is what it computes. The reason is
the compiler's own where it gave one for the two kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opscope.ir import Capture, Graph
from opscope.ir.facts import BREAKS, NOT_FUSED, RECOMPILES

from .sequence import align

_LAST_GRAPH = "post-grad "  # stages whose groups are the kernels of what runs
_LAUNCHES = "kernels "
_LIBRARY = "library"
_MOST_NAMED = 6


@dataclass(frozen=True, order=True)
class Operator:
    """An operator of a graph that runs."""

    stage: int
    node: int


@dataclass(frozen=True)
class Kernel:
    stage: int
    number: int  # of its group, and of its launch
    name: str
    language: str
    members: frozenset[Operator]


@dataclass
class Compiled:
    """What of a capture runs: its kernels and their operators, forward or backward."""

    capture: Capture
    operators: list[Operator] = field(default_factory=list[Operator])
    keys: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    kernels: list[Kernel] = field(default_factory=list[Kernel])

    def op(self, operator: Operator) -> str:
        return self.capture.stages[operator.stage].graph.node(operator.node).op

    def module(self, operators: Iterable[Operator]) -> str:
        """The innermost module that all of them are in."""
        paths = [self.capture.stages[o.stage].graph.node(o.node).path.split("/") for o in operators]
        shared = paths[0] if paths else []
        for path in paths[1:]:
            while path[: len(shared)] != shared:
                shared = shared[:-1]
        return "/".join(shared)


@dataclass(frozen=True)
class KernelChange:
    """One place where kernels are cut otherwise."""

    kind: str  # split, merged, regrouped, changed, added, removed
    before: tuple[str, ...]  # kernels
    after: tuple[str, ...]
    module: str
    stage: str  # of the later capture; of the earlier one for what was removed
    reason: str  # "" where nobody says it
    evidence: str  # reported: the compiler's words; structure
    added: tuple[str, ...]  # operators there that have no counterpart
    removed: tuple[str, ...]

    def sentence(self) -> str:
        was, now = _some(self.before), _some(self.after)
        words = {
            "split": f"{was} was split into {now}",
            "merged": f"{was} were merged into {now}",
            "regrouped": f"{was} became {now}",
            "changed": f"{was} is {now}" if self.before != self.after else f"{was} computes something else",
            "added": f"{now} is new",
            "removed": f"{was} is gone",
        }
        text = words[self.kind] + (f", in {self.module}" if self.module else "")
        extra = [f"new there: {_some(self.added)}"] if self.added else []
        extra += [f"no longer there: {_some(self.removed)}"] if self.removed else []
        extra += [f"because {self.reason}"] if self.reason else []
        return "; ".join([text, *extra])


@dataclass(frozen=True)
class KernelDiff:
    before: int  # kernels launched
    after: int
    changes: tuple[KernelChange, ...]
    breaks: tuple[str, ...]  # that were not there before
    recompiles: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "breaks": list(self.breaks),
            "recompiles": list(self.recompiles),
            "changes": [
                {
                    "class": change.kind,
                    "before": list(change.before),
                    "after": list(change.after),
                    "module": change.module,
                    "stage": change.stage,
                    "added": list(change.added),
                    "removed": list(change.removed),
                    "reason": change.reason,
                    "evidence": change.evidence,
                }
                for change in self.changes
            ],
        }


def is_compiled(capture: Capture) -> bool:
    return any(stage.name.startswith(_LAST_GRAPH) and "kernel" in stage.graph.groups for stage in capture.stages)


def compare_kernels(before: Capture, after: Capture) -> KernelDiff | None:
    """None where one of them is not compiled."""
    if not (is_compiled(before) and is_compiled(after)):
        return None
    breaks = [text for text in _breaks(after) if text not in set(_breaks(before))]
    changes: list[KernelChange] = []
    counts = [0, 0]
    for words in (("forward", "inference"), ("backward",)):
        a, b = _compiled(before, words), _compiled(after, words)
        counts = [counts[0] + len(a.kernels), counts[1] + len(b.kernels)]
        changes += _Comparison(a, b, breaks).changes()
    return KernelDiff(counts[0], counts[1], tuple(changes), tuple(breaks), (_rows(before), _rows(after)))


def kernel_stages(capture: Capture) -> Iterator[int]:
    """The stages whose kernel groups say what runs: the last graph of each compilation, without its passes."""
    for number, stage in enumerate(capture.stages):
        name = stage.name.partition(" [")[0]
        is_last = name.startswith(_LAST_GRAPH) and ":" not in name and " before " not in name
        if is_last and "kernel" in stage.graph.groups:
            yield number


def _compiled(capture: Capture, words: tuple[str, ...]) -> Compiled:
    found = Compiled(capture)
    for number in kernel_stages(capture):
        stage = capture.stages[number]
        if not stage.name.removeprefix(_LAST_GRAPH).startswith(words):
            continue
        graph = stage.graph
        for node in range(graph.n_nodes):
            found.operators.append(Operator(number, node))
            found.keys.append((graph.node(node).op, graph.node(node).path.partition("/")[2]))
        found.kernels += _kernels(graph, number)
    return found


def _kernels(graph: Graph, stage: int) -> Iterator[Kernel]:
    groups, strings = graph.groups["kernel"], graph.pools.strings
    for i in range(len(groups)):
        members = frozenset(Operator(stage, int(node)) for node in groups.members(i))
        attrs = graph.pools.attrs_of(int(groups.attrs[i]))
        yield Kernel(stage, i, strings[int(groups.name[i])], str(attrs.get("language", "")), members)


class _Comparison:
    def __init__(self, before: Compiled, after: Compiled, breaks: list[str]) -> None:
        self.before, self.after, self.breaks = before, after, breaks
        self.image = self._counterparts()
        self.known = set(self.image.values())
        self.reasons = _reasons(after.capture), _reasons(before.capture)

    def _counterparts(self) -> dict[Operator, Operator]:
        a, b = self.before, self.after
        numbers: dict[tuple[str, str], int] = {}
        left = [numbers.setdefault(key, len(numbers)) for key in a.keys]
        right = [numbers.setdefault(key, len(numbers)) for key in b.keys]
        pairs = dict(align(left, right))
        waiting: dict[int, list[int]] = {}
        taken = set(pairs.values())
        for j in range(len(right) - 1, -1, -1):
            if j not in taken:
                waiting.setdefault(right[j], []).append(j)
        for i, key in enumerate(left):
            if i not in pairs and waiting.get(key):
                pairs[i] = waiting[key].pop()
        return {a.operators[i]: b.operators[j] for i, j in pairs.items()}

    def changes(self) -> Iterator[KernelChange]:
        old = [kernel for kernel in self.before.kernels if kernel.members]
        new = [kernel for kernel in self.after.kernels if kernel.members]
        images = {kernel: frozenset(self.image[o] for o in kernel.members if o in self.image) for kernel in old}
        # What computes the same stays out of it, one for one.
        same: dict[frozenset[Operator], list[Kernel]] = {}
        for kernel in new:
            same.setdefault(kernel.members, []).append(kernel)
        left: list[Kernel] = []
        for kernel in old:
            whole = len(images[kernel]) == len(kernel.members)
            if whole and same.get(images[kernel]):
                same[images[kernel]].pop()
            else:
                left.append(kernel)
        right = [kernel for kernels in same.values() for kernel in kernels]
        right.sort(key=lambda kernel: (kernel.stage, kernel.number))
        for olds, news in _pieces(left, right, images):
            yield self._change(olds, news)

    def _change(self, old: list[Kernel], new: list[Kernel]) -> KernelChange:
        a, b = self.before, self.after
        gone = [o for kernel in old for o in sorted(kernel.members) if o not in self.image]
        fresh = [o for kernel in new for o in sorted(kernel.members) if o not in self.known]
        kind = _kind(old, new)
        fresh = fresh or self._beside(new)
        whose, kernels = (b, new) if new else (a, old)
        reason, evidence = self._reason(kind, old, new)
        return KernelChange(
            kind,
            tuple(kernel.name for kernel in old),
            tuple(kernel.name for kernel in new),
            whose.module([o for kernel in kernels for o in sorted(kernel.members)]),
            whose.capture.stages[kernels[0].stage].name,
            reason,
            evidence,
            tuple(dict.fromkeys(b.op(o) for o in fresh)),
            tuple(dict.fromkeys(a.op(o) for o in gone)),
        )

    def _beside(self, kernels: list[Kernel]) -> list[Operator]:
        """New operators that these kernels read from, or that read from them: they may stand between."""
        found: list[Operator] = []
        for stage in {kernel.stage for kernel in kernels}:
            graph = self.after.capture.stages[stage].graph
            inside = {o.node for kernel in kernels if kernel.stage == stage for o in kernel.members}
            read = np.flatnonzero(graph.use_value >= 0)
            source, target = graph.value_producer[graph.use_value[read]].tolist(), graph.use_node[read].tolist()
            around = {a for a, b in zip(source, target, strict=True) if b in inside}
            around |= {b for a, b in zip(source, target, strict=True) if a in inside}
            found += [o for node in sorted(around - inside - {-1}) if (o := Operator(stage, node)) not in self.known]
        return found

    def _reason(self, kind: str, old: list[Kernel], new: list[Kernel]) -> tuple[str, str]:
        """Why the pieces are not one kernel: of a split the new ones, of a merge the old ones."""
        pieces, said, whose = new, self.reasons[0], self.after
        if kind == "merged":
            pieces, said, whose = old, self.reasons[1], self.before
        told: list[str] = []
        for i, x in enumerate(pieces):
            for y in pieces[i + 1 :]:
                pair = x.stage, min(x.number, y.number), max(x.number, y.number)
                if x.stage == y.stage and pair in said:
                    told.append(f"{x.name} and {y.name}: {said[pair]}")
        if told:
            return _some(told), "reported"
        if len({kernel.stage for kernel in pieces}) > 1:
            broken = f"a graph break lies between: {self.breaks[0]}" if self.breaks else "they are in two graphs"
            return broken, "structure"
        libraries = dict.fromkeys(kernel.name for kernel in pieces if kernel.language == _LIBRARY)
        if libraries:
            return f"{_some(libraries)} is a call of a library, which nothing is fused with", "structure"
        neighbours = self._said_of_neighbours(pieces, said)
        if neighbours:
            return neighbours, "reported"
        between = self._between(pieces, whose)
        return (f"{between} stands between" if between else ""), "structure"

    def _said_of_neighbours(self, pieces: list[Kernel], said: dict[tuple[int, int, int], str]) -> str:
        """What the compiler said of one of the pieces and a kernel with new operators."""
        if not any(map(self._has_new, self.after.kernels)):
            return ""
        numbers = {(kernel.stage, kernel.number): kernel for kernel in pieces}
        names = {(kernel.stage, kernel.number): kernel for kernel in self.after.kernels}
        for (stage, a, b), reason in said.items():
            for one, other in ((a, b), (b, a)):
                kernel, near = numbers.get((stage, one)), names.get((stage, other))
                is_new = near is not None and (stage, other) not in numbers and self._has_new(near)
                if kernel is not None and near is not None and is_new:
                    return f"{kernel.name} and {near.name}: {reason}"
        return ""

    def _has_new(self, kernel: Kernel) -> bool:
        return not kernel.members <= self.known

    def _between(self, pieces: list[Kernel], whose: Compiled) -> str:
        """The kernel that is launched after one of the pieces and before another, and has operators that are new."""
        if len(pieces) < 2:
            return ""
        first, last = min(kernel.number for kernel in pieces), max(kernel.number for kernel in pieces)
        for kernel in whose.kernels:
            is_between = kernel.stage == pieces[0].stage and first < kernel.number < last and kernel not in pieces
            if is_between and self._has_new(kernel):
                return f"{kernel.name}{', a call of a library,' if kernel.language == _LIBRARY else ''}"
        return ""


def _kind(old: list[Kernel], new: list[Kernel]) -> str:
    if not old or not new:
        return "added" if new else "removed"
    if len(old) == 1:
        return "split" if len(new) > 1 else "changed"
    return "merged" if len(new) == 1 else "regrouped"


def _pieces(
    old: list[Kernel], new: list[Kernel], images: dict[Kernel, frozenset[Operator]]
) -> Iterator[tuple[list[Kernel], list[Kernel]]]:
    """Kernels that share operators, directly or by way of others. What is computed more than once joins the kernels
    that compute most of it, so that it does not join everything."""
    by_operator: dict[Operator, list[Kernel]] = {}
    for kernel in new:
        for operator in kernel.members:
            by_operator.setdefault(operator, []).append(kernel)
    group: dict[Kernel, int] = {}
    members: list[tuple[list[Kernel], list[Kernel]]] = []
    often = {o for o, kernels in by_operator.items() if len(kernels) > 1}
    for kernel in old:
        sure = {other for o in images[kernel] - often for other in by_operator.get(o, ())}
        sure = sure or {other for o in images[kernel] for other in by_operator.get(o, ())}
        numbers = sorted({group[other] for other in sure if other in group})
        number = numbers[0] if numbers else len(members)
        if not numbers:
            members.append(([], []))
        for joined in numbers[1:]:
            for other in (*members[joined][0], *members[joined][1]):
                group[other] = number
            members[number][0].extend(members[joined][0])
            members[number][1].extend(members[joined][1])
            members[joined] = ([], [])
        group[kernel] = number
        members[number][0].append(kernel)
        for other in sorted(sure, key=lambda k: (k.stage, k.number)):
            if other not in group:
                group[other] = number
                members[number][1].append(other)
    members += [([], [kernel]) for kernel in new if kernel not in group]
    yield from (piece for piece in members if piece[0] or piece[1])


def _reasons(capture: Capture) -> dict[tuple[int, int, int], str]:
    """By stage of the graph, and the numbers of two launches: what the compiler said."""
    found: dict[tuple[int, int, int], str] = {}
    graph_of = {i: stage.after for i, stage in enumerate(capture.stages) if stage.name.startswith(_LAUNCHES)}
    for table in capture.tables.values():
        stage = graph_of.get(table.stage)
        if table.fact != NOT_FUSED.name or stage is None:
            continue
        columns = table.columns
        rows = zip(
            np.asarray(columns["kernel"].values).tolist(),
            np.asarray(columns["other"].values).tolist(),
            list(columns["reason"].values),
            strict=True,
        )
        for a, b, reason in rows:
            found[stage, min(a, b), max(a, b)] = str(reason)
    return found


def _breaks(capture: Capture) -> list[str]:
    found: list[str] = []
    for table in capture.tables.values():
        if table.fact == BREAKS.name:
            columns = table.columns
            rows = zip(columns["file"].values, columns["line"].values, columns["reason"].values, strict=True)
            found += [f"{file}:{line}: {reason}" for file, line, reason in rows]
    return list(dict.fromkeys(found))


def _rows(capture: Capture) -> int:
    return sum(len(table.index) for table in capture.tables.values() if table.fact == RECOMPILES.name)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more
