"""What became what where one framework's program was exported to another's: a `.pt2` and its `.onnx`.

Operators have other names there, so structure alone finds nothing. What exporters keep does: the name of the operator
that each was made from, the module and the line it stands on. What an exporter folded into a neighbour, such as a batch
norm into a convolution, belongs to the one that reads what it made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from opscope.ir import Graph, StageLink
from opscope.ir.attributes import EXPORTED_FROM
from opscope.ir.columns import frozen
from opscope.ir.pools import Scope

from .regions import Groups, Member

_ROUNDS = 1000  # of handing on: a chain of operators that is folded is not longer


def crossing(before: Graph, after: Graph) -> list[StageLink]:
    """Pairs and groups of operators of two graphs, by all that was kept; none where nothing was."""
    joined, evidence = Groups(), dict[Member, str]()
    sides = {"a": before, "b": after}
    for x, y in _by_name(before, after):
        joined.join(("a", x), ("b", y))
        evidence["a", x] = evidence["b", y] = "reported"
    if not evidence and not _share_modules(before, after):
        return []
    for with_lines in (True, False):
        for members in _by_place(sides, evidence, with_lines):
            for member in members:
                joined.join(members[0], member)
                evidence[member] = "name"
    for name, graph in sides.items():
        _hand_on(name, graph, joined, evidence)
    return _links(joined, evidence)


def _by_name(before: Graph, after: Graph) -> Iterator[tuple[int, int]]:
    """Pairs of which one side says which value of the other it was made from. Exporters rename what they decompose:
    one counts only where operator, module and line are the same, and where one of the operators that it became makes
    what it made."""
    for one, other, turned in ((before, after, True), (after, before, False)):
        makers = _makers(other)
        became: dict[int, list[int]] = defaultdict(list)
        for node in range(one.n_nodes):
            name, _, op = _said(one, node).partition(" = ")
            maker = makers.get(name) if name else None
            if maker is not None and op == other.node(maker).op and _place(one, node) == _place(other, maker):
                became[maker].append(node)
        for maker, nodes in became.items():
            if {_made(other, maker)} & {_made(one, node) for node in nodes}:
                yield from ((node, maker) if turned else (maker, node) for node in nodes)


def _made(graph: Graph, node: int) -> str:
    outputs = graph.node(node).outputs
    return str(outputs[0].type) if outputs else ""


def _makers(graph: Graph) -> dict[str, int]:
    strings = graph.pools.strings
    named = zip(graph.value_name.tolist(), graph.value_producer.tolist(), strict=True)
    return {strings[name]: node for name, node in named if node >= 0 and name}


def _said(graph: Graph, node: int) -> str:
    text = graph.pools.attr_texts[int(graph.node_attrs[node])]
    return (
        str(graph.pools.attrs_of(int(graph.node_attrs[node])).get(EXPORTED_FROM, "")) if EXPORTED_FROM in text else ""
    )


def _place(graph: Graph, node: int, with_lines: bool = True) -> Hashable:
    """The module, whichever call of it, and the line."""
    pools, stack = graph.pools, int(graph.node_stack[node])
    path = pools.scope_path(int(graph.node_scope[node]), plain_label)
    return path, tuple((f.file, f.line) for f in pools.frames_of(stack)) if with_lines else ()


def plain_label(scope: Scope) -> str:
    """A module's name without the number of its call, which exporters do not keep."""
    return scope.name or f"({scope.cls})"


def _share_modules(before: Graph, after: Graph) -> bool:
    paths = [
        {graph.pools.scope_path(int(scope)) for scope in set(graph.node_scope.tolist())} for graph in (before, after)
    ]
    return bool((paths[0] & paths[1]) - {""})


def _by_place(sides: dict[str, Graph], evidence: dict[Member, str], with_lines: bool) -> Iterator[list[Member]]:
    """What is left of a module, and of a line in it, where both sides have some."""
    found: dict[Hashable, list[Member]] = defaultdict(list)
    for name, graph in sides.items():
        for node in range(graph.n_nodes):
            if (name, node) not in evidence and (graph.node_stack[node] or not with_lines):
                found[_place(graph, node, with_lines)].append((name, node))
    for members in found.values():
        if {name for name, _ in members} == {"a", "b"}:
            yield members


def _hand_on(name: str, graph: Graph, joined: Groups, evidence: dict[Member, str]) -> None:
    """What is left belongs to who reads what it makes, or to who made what it reads."""
    readers: dict[int, list[int]] = defaultdict(list)
    makers: dict[int, list[int]] = defaultdict(list)
    for value, node in zip(graph.use_value.tolist(), graph.use_node.tolist(), strict=True):
        maker = int(graph.value_producer[value]) if value >= 0 else -1
        if maker >= 0 and maker != node:
            readers[maker].append(node)
            makers[node].append(maker)
    left = [node for node in range(graph.n_nodes) if (name, node) not in evidence]
    for following in (readers, makers):
        for _ in range(_ROUNDS):
            rest: list[int] = []
            for node in reversed(left):
                near = next((other for other in following[node] if (name, other) in evidence), None)
                if near is None:
                    rest.append(node)
                else:
                    joined.join((name, near), (name, node))
                    evidence[name, node] = "structure"
            left, done = rest[::-1], len(rest) == len(left)
            if done:
                break


def _links(joined: Groups, evidence: dict[Member, str]) -> list[StageLink]:
    """A group is said by linking its first node with all of the other side, and all others with the other's first."""
    by_kind: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for before, after in joined.sets():
        if before and after:
            kind = min((evidence["a", node] for node in before), key=("structure", "name", "reported").index)
            pairs = [(before[0], node) for node in after] + [(node, after[0]) for node in before[1:]]
            by_kind[kind] += pairs
    return [
        StageLink(0, 0, "lowers", frozen([x for x, _ in pairs]), frozen([y for _, y in pairs]), kind)
        for kind, pairs in by_kind.items()
    ]
