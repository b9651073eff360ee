"""compare(before, after): what is different between two graphs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opscope.ir import Graph, StageLink
from opscope.ir.columns import frozen
from opscope.ir.enumerations import CHANGE_CLASSES

from .changes import Change, Diff
from .details import counted, differences, listed, translated
from .exported import plain_label
from .fingerprints import Side, Vocabulary, mixed, scramble, side_of, sums
from .inline import fused_body, inlined
from .matching import Matcher
from .regions import Groups, places

_RANK = {kind: rank for rank, kind in enumerate(CHANGE_CLASSES)}
_MIRROR = {"added": "removed", "removed": "added", "fused": "split", "split": "fused"}


def compare(
    before: Graph,
    after: Graph,
    links: Sequence[StageLink] = (),
    words: Vocabulary | None = None,
    frameworks: tuple[str, str] | None = None,
) -> Diff:
    """What is different. `links` say what became what, where the compiler reported it; the rest is found by
    structure, never by name. Exchanging the two graphs gives the same changes, the other way round. `words` are kept
    by those who compare many graphs, one with the next. `frameworks`: of graphs of two frameworks, which have other
    words for the same operation, attributes and arguments."""
    words = words or Vocabulary()
    a, b = words.side(before), words.side(after)
    if _key(b) < _key(a):
        turned = frameworks and (frameworks[1], frameworks[0])
        found = _Comparison(b, a, [_turned(link) for link in links], words, True, turned).run()
    else:
        found = _Comparison(a, b, list(links), words, False, frameworks).run()
    return found


def _key(side: Side) -> tuple[int, ...]:
    """Something to order two graphs by, so that it does not matter which is given first."""
    rows = scramble(side.exact + np.arange(side.size, dtype=np.uint64))
    edges = scramble((side.source * 31 + side.target * 7 + side.port).astype(np.uint64))
    return side.n_nodes, side.size, int(side.exact.sum()), int(rows.sum()), int(edges.sum())


def _turned(link: StageLink) -> StageLink:
    return StageLink(link.after, link.before, link.kind, link.target, link.source, link.evidence)


@dataclass
class _Opened:
    """The graphs as they were compared: with those fused operators opened that had no counterpart."""

    match: Matcher
    owner_a: Sequence[int]
    owner_b: Sequence[int]
    open_a: set[int]
    open_b: set[int]


class _Comparison:
    def __init__(
        self,
        a: Side,
        b: Side,
        links: list[StageLink],
        words: Vocabulary,
        turned: bool,
        frameworks: tuple[str, str] | None = None,
    ) -> None:
        self.a, self.b, self.words, self.turned, self.frameworks = a, b, words, turned, frameworks
        self.evidence: dict[tuple[str, int], str] = {}
        self.given, self.told = self._told(links)

    def run(self) -> Diff:
        barred = (
            [node for before, _, _ in self.told for node in before],
            [n for _, after, _ in self.told for n in after],
        )
        match = Matcher(self.a, self.b)
        match.run(self.given, barred)
        opened = self._open(match, barred)
        changes = [self._group(before, after, evidence) for before, after, evidence in self.told]
        pairs: list[tuple[int, int]] = []
        if opened is None:
            groups = self._places(match, barred)
            pairs = _node_pairs(match)
            changes += [self._group(before, after) for before, after in groups.sets()]
        else:
            groups, pairs = self._folded(opened)
            changes += [self._group(before, after) for before, after in groups.sets()]
        renamed, moved = self._modules(pairs)
        changes += self._pairs(match, pairs, groups, moved, opened is None)
        to_b = np.full(self.a.n_nodes, -1, dtype=np.int32)
        for x, y in pairs:
            to_b[x] = y
        return self._finished(changes, to_b, renamed)

    # -- what was reported ------------------------------------------------------------------------

    def _told(self, links: list[StageLink]) -> tuple[list[tuple[int, int]], list[tuple[list[int], list[int], str]]]:
        """Pairs, and groups of more than two nodes."""
        sources = [link.source for link in links]
        targets = [link.target for link in links]
        if all(len(np.unique(np.concatenate(side))) == sum(map(len, side)) for side in (sources, targets) if side):
            for link in links:  # each node once, as where little changed
                self.evidence |= {("a", source): link.evidence for source in link.source.tolist()}
            columns = zip(sources, targets, strict=True)
            return sorted(pair for s, t in columns for pair in zip(s.tolist(), t.tolist(), strict=True)), []
        joined = Groups()
        evidence: dict[tuple[str, int], str] = {}
        for link in links:
            for source, target in zip(link.source.tolist(), link.target.tolist(), strict=True):
                joined.join(("a", source), ("b", target))
                evidence["a", source] = link.evidence
        pairs: list[tuple[int, int]] = []
        groups: list[tuple[list[int], list[int], str]] = []
        for before, after in joined.sets():
            known = evidence["a", before[0]]
            if len(before) == 1 and len(after) == 1:
                pairs.append((before[0], after[0]))
                self.evidence["a", before[0]] = known
            else:
                groups.append((before, after, known))
        return pairs, groups

    # -- fused operators --------------------------------------------------------------------------

    def _open(self, match: Matcher, barred: tuple[list[int], list[int]]) -> _Opened | None:
        """Where a fused operator has no counterpart, compare what is inside of it."""
        open_a = {x for x in _free(match.to_b, self.a, barred[0]) if fused_body(self.a.graph, x)}
        open_b = {y for y in _free(match.to_a, self.b, barred[1]) if fused_body(self.b.graph, y)}
        if not open_a and not open_b:
            return None
        graph_a, owner_a = inlined(self.a.graph, open_a)
        graph_b, owner_b = inlined(self.b.graph, open_b)
        first_a, first_b = _places_of(owner_a), _places_of(owner_b)
        inner = Matcher(side_of(graph_a, self.words), side_of(graph_b, self.words))
        known = [(first_a[x], first_b[y]) for x, y in _node_pairs(match)]
        kept = [first_a[x] for x in barred[0]], [first_b[y] for y in barred[1]]
        inner.run(known, kept)
        return _Opened(inner, owner_a, owner_b, open_a, open_b)

    def _folded(self, opened: _Opened) -> tuple[Groups, list[tuple[int, int]]]:
        """From the opened graphs back to the real ones: all that went into one operator is one group."""
        match, groups = opened.match, Groups()
        for node in opened.open_a:
            groups.add(("a", node))
        for node in opened.open_b:
            groups.add(("b", node))
        told_a = {node for before, _, _ in self.told for node in before}
        told_b = {node for _, after, _ in self.told for node in after}
        barred = (
            [i for i, owner in enumerate(opened.owner_a) if owner in told_a],
            [i for i, owner in enumerate(opened.owner_b) if owner in told_b],
        )
        pairs: list[tuple[int, int]] = []
        for i, j in _node_pairs(match):
            x, y = opened.owner_a[i], opened.owner_b[j]
            if x in opened.open_a or y in opened.open_b:
                groups.join(("a", x), ("b", y))
            else:
                pairs.append((x, y))
        for before, after in self._places(match, barred).sets():
            members = [("a", opened.owner_a[i]) for i in before] + [("b", opened.owner_b[j]) for j in after]
            for member in members:
                groups.join(members[0], member)
        return groups, pairs

    @staticmethod
    def _places(match: Matcher, barred: tuple[list[int], list[int]]) -> Groups:
        left_a = _free(match.to_b, match.a, barred[0])
        left_b = _free(match.to_a, match.b, barred[1])
        return places(match, np.array(left_a, dtype=np.int64), np.array(left_b, dtype=np.int64))

    # -- changes ----------------------------------------------------------------------------------

    def _group(self, before: list[int], after: list[int], evidence: str = "structure") -> Change:
        a, b = self.a.graph, self.b.graph
        if not after:
            return Change("removed", tuple(before), (), evidence, counted(a, before))
        if not before:
            return Change("added", (), tuple(after), evidence, counted(b, after))
        if len(before) == 1 and len(after) == 1:
            return Change("changed", tuple(before), tuple(after), evidence, self._difference(before[0], after[0]))
        if len(after) == 1:
            order = _as_inside(a, before, b, after[0])
            return Change("fused", tuple(order), tuple(after), evidence, self._arrow(listed(a, order), b, after))
        if len(before) == 1:
            order = _as_inside(b, after, a, before[0])
            return Change("split", tuple(before), tuple(order), evidence, self._arrow(listed(b, order), a, before))
        texts = counted(a, before), counted(b, after)
        return Change("rewritten", tuple(before), tuple(after), evidence, _joined(*texts, self.turned))

    def _arrow(self, many: str, graph: Graph, one: Sequence[int]) -> str:
        single = graph.node(one[0]).op
        before_is_many = graph is self.b.graph
        return f"{many} → {single}" if before_is_many != self.turned else f"{single} → {many}"

    def _difference(self, x: int, y: int) -> str:
        one, other = self.a.graph.node(x), self.b.graph.node(y)
        if self.frameworks is not None:
            found = translated(one, other, *self.frameworks, turned=self.turned)
        else:
            found = differences(other, one) if self.turned else differences(one, other)
        return "; ".join(found)

    def _pairs(
        self, match: Matcher, pairs: list[tuple[int, int]], groups: Groups, moved: dict[int, str], exact: bool
    ) -> Iterator[Change]:
        """Counterparts that are not equal."""
        if not pairs:
            return
        xs, ys = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
        suspect = self.a.exact[xs] != self.b.exact[ys]
        suspect |= _differently_wired(match, xs, ys)
        for i in np.flatnonzero(suspect).tolist():
            x, y = int(xs[i]), int(ys[i])
            found = self._difference(x, y)
            wiring = self._rewired(match, groups, x, y) if exact and self.frameworks is None else []
            evidence = self.evidence.get(("a", x), "structure")
            if found or (self.frameworks is None and self.a.exact[x] != self.b.exact[y]):
                detail = "; ".join([text for text in (found or "what is inside", *wiring, moved.get(x)) if text])
                yield Change("changed", (x,), (y,), evidence, detail)
                moved.pop(x, None)
            elif wiring:
                yield Change("moved", (x,), (y,), evidence, "; ".join([*wiring, *filter(None, [moved.pop(x, "")])]))
        to_b = dict(pairs) if moved else {}
        for x, text in moved.items():
            yield Change("moved", (x,), (to_b[x],), self.evidence.get(("a", x), "structure"), text)

    def _rewired(self, match: Matcher, groups: Groups, x: int, y: int) -> list[str]:
        """Arguments that come from elsewhere, unless what was put in between or taken out explains it."""
        found: list[str] = []
        others = {port: (source, slot) for port, source, slot in self.b.reads[y]}
        for port, source, slot in self.a.reads[x]:
            other = others.get(port)
            if other is None or (match.to_b[source] == other[0] and slot == other[1]):
                continue
            if not self._explained(match, groups, source, other[0]):
                arg = self.a.graph.node(x).uses[port].arg if port < len(self.a.graph.node(x).uses) else str(port)
                texts = _item(self.a, source), _item(self.b, other[0])
                found.append(f"argument {arg} reads {_instead(*texts, self.turned)}")
        if (x in self.a.outputs) != (y in self.b.outputs):
            is_now = (y in self.b.outputs) != self.turned
            found.append("is an output of the graph" if is_now else "is no output of the graph any more")
        return found

    def _explained(self, match: Matcher, groups: Groups, source: int, other: int) -> bool:
        if match.to_b[source] >= 0 and match.to_a[other] >= 0:
            return False
        if groups.together(("a", source), ("b", other)):
            return True
        if source >= self.a.n_nodes and other >= self.b.n_nodes:
            return True  # two weights: their types are compared
        before = {int(match.to_b[item]) for item in _above(match.a, match.to_b, source)}
        after = _above(match.b, match.to_a, other)
        return not before or not after or not before.isdisjoint(after)

    # -- modules ----------------------------------------------------------------------------------

    def _modules(self, pairs: list[tuple[int, int]]) -> tuple[dict[str, str], dict[int, str]]:
        """Modules that have another name, and nodes that are in another module than the others of theirs."""
        a, b = self.a.graph, self.b.graph
        if not pairs:
            return {}, {}
        xs, ys = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
        scopes = np.stack([a.node_scope[xs], b.node_scope[ys]])
        combos, place, counts = np.unique(scopes, axis=1, return_inverse=True, return_counts=True)
        label = plain_label if self.frameworks is not None else None
        paths = [
            (a.pools.scope_path(int(combos[0, i]), label), b.pools.scope_path(int(combos[1, i]), label))
            for i in range(combos.shape[1])
        ]
        home = _homes(paths, counts.tolist())
        renamed = {old: new for old, new in (paths[i] for i in home) if old and new and old != new}
        # No module often means that it is not known: passes make operators without.
        away = [i for i in range(len(paths)) if i not in home and "" not in paths[i] and paths[i][0] != paths[i][1]]
        moved: dict[int, str] = {}
        for i in away:
            for row in np.flatnonzero(place.reshape(-1) == i).tolist():
                moved[int(xs[row])] = f"module: {_joined(*paths[i], self.turned)}"
        return renamed, moved

    # -- the end ----------------------------------------------------------------------------------

    def _finished(self, changes: Iterable[Change], to_b: Any, renamed: dict[str, str]) -> Diff:
        a, b = self.a.graph, self.b.graph
        if self.turned:
            changes = [Change(_MIRROR.get(c.kind, c.kind), c.after, c.before, c.evidence, c.detail) for c in changes]
            to_a = np.full(b.n_nodes, -1, dtype=np.int32)
            matched = np.flatnonzero(to_b >= 0)
            to_a[to_b[matched]] = matched
            a, b, to_b = b, a, to_a
            renamed = {new: old for old, new in renamed.items()}
        ordered = sorted(changes, key=lambda c: (_RANK[c.kind], c.after or (1 << 30,), c.before))
        return Diff(a, b, tuple(ordered), frozen(to_b), renamed)


def _homes(paths: list[tuple[str, str]], counts: list[int]) -> set[int]:
    """The pairs of modules that belong together: for both, most nodes go to the other."""
    most_a: dict[str, int] = {}
    most_b: dict[str, int] = {}
    # An equal path wins a draw; then the more nodes.
    order = sorted(range(len(paths)), key=lambda i: (counts[i], paths[i][0] == paths[i][1]), reverse=True)
    for i in order:
        most_a.setdefault(paths[i][0], i)
        most_b.setdefault(paths[i][1], i)
    return {i for i in most_a.values() if most_b[paths[i][1]] == i}


def _differently_wired(match: Matcher, xs: Any, ys: Any) -> Any:
    """Pairs of which not every argument comes from counterparts, or that are an output on one side only."""
    a, b = match.a, match.b
    if len(xs) == 0 or a.n_nodes <= int(xs.max()) or b.n_nodes <= int(ys.max()):
        return np.zeros(len(xs), dtype=bool)
    reads_a = _wiring(a, match.to_b[a.source])
    reads_b = _wiring(b, b.source)
    out_a, out_b = np.zeros(a.size, dtype=bool), np.zeros(b.size, dtype=bool)
    out_a[a.is_output] = True
    out_b[b.is_output] = True
    return (reads_a[xs] != reads_b[ys]) | (out_a[xs] != out_b[ys])


def _wiring(side: Side, sources: Any) -> Any:
    """By node: a number for what it reads."""
    place = scramble((side.slot * 4096 + side.port).astype(np.uint64))
    return sums(mixed(scramble(sources.astype(np.uint64)), place), side.target, side.size)


def _above(side: Side, matched: Any, item: int) -> set[int]:
    """The items with counterparts that an item is made from, through those without."""
    found: set[int] = set()
    todo, seen = [item], {item}
    while todo:
        here = todo.pop()
        if matched[here] >= 0:
            found.add(here)
            continue
        for _, source, _ in side.reads[here]:
            if source not in seen:
                seen.add(source)
                todo.append(source)
    return found


def _free(matched: Any, side: Side, barred: Iterable[int]) -> list[int]:
    left = matched[: side.n_nodes] < 0
    left[list(barred)] = False
    return np.flatnonzero(left).tolist()


def _node_pairs(match: Matcher) -> list[tuple[int, int]]:
    xs = np.flatnonzero(match.to_b[: match.a.n_nodes] >= 0)
    return list(zip(xs.tolist(), match.to_b[xs].tolist(), strict=True))


def _places_of(owner: Sequence[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for place, node in enumerate(owner):
        found.setdefault(node, place)
    return found


def _as_inside(many: Graph, nodes: list[int], one: Graph, node: int) -> list[int]:
    """The nodes in the order in which the fused operator names its own, where they are the same operators."""
    body = fused_body(one, node)
    if body is None:
        return nodes
    waiting: dict[str, list[int]] = defaultdict(list)
    for candidate in nodes:
        waiting[many.node(candidate).op].append(candidate)
    inner = [entry.op for entry in body.graph.nodes]
    if Counter(inner) != Counter(many.node(n).op for n in nodes):
        return nodes
    return [waiting[op].pop(0) for op in inner]


def _item(side: Side, item: int) -> str:
    if item >= side.n_nodes:
        value = side.graph.value(int(side.leaves[item - side.n_nodes]))
        return f"{value.role} {value.name or value.type}"
    node = side.graph.node(item)
    return f"{node.op} in {node.path}" if node.path else node.op


def _instead(before: str, after: str, turned: bool) -> str:
    return f"{before} instead of {after}" if turned else f"{after} instead of {before}"


def _joined(before: str, after: str, turned: bool) -> str:
    return f"{after} → {before}" if turned else f"{before} → {after}"
