"""Whether two ranks compute the same: their graphs, operator by operator, without what only says which rank it is.

Two ranks are of one class if they run the same operators in the same order, on the same arguments, of the same types,
with the same attributes, and keep the same memory. What a rank calls itself does not count: of a group, its dimension
and its size say who communicates; of a peer, how far it is away in the group; of a root, whether it is this rank. Names
of modules and variables, and the lines of the program, do not count either: the stages of a pipeline hold other layers,
and compute the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from opscope.ir import Graph
from opscope.ir.attributes import GROUP, INSIDE, WITHOUT_RECORDER
from opscope.ops.formulas.communication import group_of

_PEERS = ("dst", "src", "root_rank")  # by their place in the group
_CUTS = ("aten.split", "aten.chunk", "aten.unbind", "aten.tensor_split", "aten.unsafe_split", "aten.unsafe_chunk")
_MESH = "torch/distributed/device_mesh.py"
_OWN_PLACE = {"fsdp.all_gather_copy_in": ("rank",)}  # where the place in the group is an argument


def signature(graph: Graph) -> str:
    """The same text for graphs that compute the same, and for no others."""
    found = hashlib.sha256()

    def add(name: str, column: npt.NDArray[Any]) -> None:
        found.update(f"{name} {len(column)} ".encode())
        found.update(np.ascontiguousarray(column, dtype=np.int64).tobytes())

    def add_words(name: str, ids: npt.NDArray[Any], word: Callable[[int], str]) -> None:
        words, numbers = _in_order_of_words(ids, word)
        add(name, numbers)
        found.update("\0".join(words).encode("utf-8", "backslashreplace"))

    strings, types = graph.pools.strings, graph.pools.types
    add("phase", graph.node_phase)
    add("uses", graph.use_start)
    add("values", _whichever_part(graph)[graph.use_value])
    add("producer", graph.value_producer)
    add("slot", graph.value_slot)
    add("storage", graph.value_storage)
    add_words("op", graph.node_op, strings.__getitem__)
    add_words("arg", graph.use_arg, strings.__getitem__)
    add_words("type", graph.value_type, lambda i: str(types[i]))
    texts = _attribute_texts(graph)
    add("attrs", texts.numbers)
    found.update("\0".join(texts.words).encode("utf-8", "backslashreplace"))
    for kind in sorted(graph.links):
        add(f"{kind} from", graph.links[kind].source)
        add(f"{kind} to", graph.links[kind].target)
    for body in graph.bodies:
        found.update(f"{body.node} {body.label} {body.bindings} {signature(body.graph)}".encode())
    return found.hexdigest()


def outline(graph: Graph) -> str:
    """The same text for graphs with the same operators that make the same types, in the same groups: numbers among the
    arguments may differ, such as the part of a vocabulary that a rank has."""
    found = hashlib.sha256()
    texts = graph.pools.attr_texts
    groups = {
        attrs: plain_group(graph.pools.attrs_of(attrs))
        for attrs in np.unique(graph.node_attrs).tolist()
        if f'"{GROUP}"' in texts[attrs]
    }
    start, item = graph.node_outputs
    types = [str(one) for one in graph.pools.types]
    made: list[int] = graph.value_type[item].tolist()
    begin: list[int] = start.tolist()
    for i, (op, attrs) in enumerate(zip(graph.node_op.tolist(), graph.node_attrs.tolist(), strict=True)):
        words = " ".join([types[t] for t in made[begin[i] : begin[i + 1]]])
        found.update(f"{graph.pools.strings[op]} {words} {groups.get(attrs, '')}\n".encode())
    return found.hexdigest()


def plain_group(attrs: dict[str, Any]) -> str:
    own = group_of(attrs)
    return f"{own.get('dimension')} {own.get('size')}"


def _whichever_part(graph: Graph) -> npt.NDArray[np.int64]:
    """By value, the value that it counts as. A tensor is cut into as many equal parts as a group has ranks, and one of
    them is read: which one only says which rank it is. The row behind the last is that of no value."""
    counts_as = np.append(np.arange(graph.n_values, dtype=np.int64), -1)
    texts = graph.pools.attr_texts
    sizes: set[Any] = set()
    for attrs in np.unique(graph.node_attrs).tolist():
        if f'"{GROUP}"' in texts[attrs]:
            sizes.add(group_of(graph.pools.attrs_of(attrs)).get("size"))
    strings = graph.pools.strings
    cuts = {i for i in np.unique(graph.node_op).tolist() if strings[i].startswith(_CUTS)}
    if not sizes or not cuts:
        return counts_as
    is_read = np.zeros(graph.n_values + 1, dtype=bool)
    is_read[graph.use_value] = True
    start, item = graph.node_outputs
    for node in np.flatnonzero(np.isin(graph.node_op, list(cuts))).tolist():
        made = item[start[node] : start[node + 1]]
        is_even = len(made) in sizes and len(np.unique(graph.value_type[made])) == 1
        if is_even and np.count_nonzero(is_read[made]) == 1:
            counts_as[made] = made[0]
    return counts_as


class _Texts:
    """What the attributes of each operator say, as numbers of texts."""

    def __init__(self, words: list[str], numbers: npt.NDArray[np.int64]) -> None:
        self.words = words
        self.numbers = numbers


def _attribute_texts(graph: Graph) -> _Texts:
    """Attributes of operators without what only says which rank it is. They depend on the operator, too."""
    strings = graph.pools.strings
    key = (graph.node_attrs.astype(np.int64) * len(strings) + graph.node_op) * 2 + _finds_its_place(graph)
    kinds, of_node = np.unique(key, return_inverse=True)
    said: list[str] = []
    for kind in kinds.tolist():
        attrs, op = divmod(kind // 2, len(strings))
        said.append("" if kind % 2 else plain_attributes(strings[op], graph.pools.attrs_of(attrs)))
    words, numbers = _in_order_of_words(of_node, said.__getitem__)
    return _Texts(words, numbers)


def _finds_its_place(graph: Graph) -> npt.NDArray[np.int64]:
    """Operators by which torch looks for a rank in the mesh: their arguments say which rank it is, and nothing else."""
    stacks = np.unique(graph.node_stack).tolist()
    frames = {stack: graph.pools.innermost(stack) for stack in stacks}
    mesh = [stack for stack, frame in frames.items() if frame is not None and _path(frame.file).endswith(_MESH)]
    return np.isin(graph.node_stack, mesh).astype(np.int64)


def _path(file: str) -> str:
    return file.replace("\\", "/")


def plain_attributes(op: str, attrs: dict[str, Any]) -> str:
    """The attributes of an operator as text, without what only says which rank it is."""
    told = {name: value for name, value in attrs.items() if name not in _OWN_PLACE.get(op, ())}
    for name in (INSIDE, WITHOUT_RECORDER):
        told.pop(name, None)  # notes for the reader
    group = told.get(GROUP)
    if isinstance(group, dict):
        own = cast("dict[str, Any]", group)
        size, index = own.get("size"), own.get("index")
        told[GROUP] = {"dimension": own.get("dimension"), "size": size}
        for name in _PEERS:
            peer = told.get(name)
            if isinstance(peer, int) and isinstance(size, int) and isinstance(index, int) and size > 0:
                told[name] = peer == index if name == "root_rank" or _is_broadcast(op) else (peer - index) % size
    return json.dumps(told, sort_keys=True, default=str)


def _is_broadcast(op: str) -> bool:
    return "broadcast" in op


def _in_order_of_words(ids: npt.NDArray[Any], word: Callable[[int], str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The words that occur, sorted, and which of them stands in each row: pools number them as they come."""
    used, rows = np.unique(ids, return_inverse=True)
    said = [word(int(i)) for i in used.tolist()]
    order = sorted(set(said))
    place = {text: i for i, text in enumerate(order)}
    return order, np.array([place[text] for text in said], dtype=np.int64)[rows] if said else np.zeros(0, np.int64)


# -- what differs ------------------------------------------------------------------------------------------


def steps_of(graph: Graph, attributes: bool = True) -> list[str]:
    """Every operator as text: its name, what it makes, and its attributes."""
    texts = _attribute_texts(graph)
    if not attributes:
        texts = _Texts([""], np.zeros(graph.n_nodes, np.int64))
    types = graph.pools.types
    words = [str(types[i]) for i in range(len(types))]
    start, item = graph.node_outputs
    made: list[int] = graph.value_type[item].tolist()
    begin: list[int] = start.tolist()
    ops = [graph.pools.strings[op] for op in graph.node_op.tolist()]
    said = texts.numbers.tolist()
    return [
        f"{ops[i]} → {', '.join(words[t] for t in made[begin[i] : begin[i + 1]])} {texts.words[said[i]]}"
        for i in range(graph.n_nodes)
    ]


def difference(graph: Graph, other: Graph) -> str:
    """In one line, where a graph first differs from another one, and by how many operators; empty: it does not.
    Another operator says more than another argument of the same one."""
    own, others = steps_of(graph, False), steps_of(other, False)
    first = _first(own, others)
    if first is not None:
        return f"{_at(graph, own, first)} where the other has {_at(other, others, first)}{_counts(graph, other)}"
    first = _first(steps_of(graph), steps_of(other))
    if first is None:
        return _by_flow(graph, other)
    return f"{_name(graph, first)} has other arguments: {_arguments(graph, other, first)}"


def _first(own: list[str], others: list[str]) -> int | None:
    found = next((i for i, (a, b) in enumerate(zip(own, others, strict=False)) if a != b), None)
    return min(len(own), len(others)) if found is None and len(own) != len(others) else found


def _arguments(graph: Graph, other: Graph, node: int) -> str:
    own, others = graph.node(node).attrs, other.node(node).attrs
    apart = [name for name in (*own, *others) if own.get(name) != others.get(name)]
    return ", ".join(f"{name} {own.get(name)} and not {others.get(name)}" for name in list(dict.fromkeys(apart))[:3])


def _by_flow(graph: Graph, other: Graph) -> str:
    """Of graphs with the same operators: what these read, or keep."""
    if signature(graph) == signature(other):
        return ""
    same = graph.use_start.shape == other.use_start.shape and bool((graph.use_start == other.use_start).all())
    if same and (apart := np.flatnonzero(graph.use_value != other.use_value)).size:
        node = int(graph.use_node[apart[0]])
        return f"{_name(graph, node)} reads another tensor"
    return "the same operators, which keep or read other memory"


def _at(graph: Graph, steps: list[str], node: int) -> str:
    return _name(graph, node) if node < len(steps) else "nothing more"


def _name(graph: Graph, node: int) -> str:
    handle = graph.node(node)
    frame = graph.pools.innermost(int(graph.node_stack[node]))
    made = ", ".join(str(value.type) for value in handle.outputs)
    where = f" in {handle.path}" if handle.path else ""
    line = f" at {frame.file.replace(chr(92), '/').rpartition('/')[2]}:{frame.line}" if frame is not None else ""
    return f"#{node} {handle.op} → {made}{where}{line}"


def _counts(graph: Graph, other: Graph) -> str:
    own, others = _by_op(graph), _by_op(other)
    apart = {op: own.get(op, 0) - others.get(op, 0) for op in {*own, *others}}
    apart = {op: count for op, count in apart.items() if count}
    if not apart:
        return "; as many of every operator, in another order or of other sizes"
    shown = sorted(apart.items(), key=lambda item: (-abs(item[1]), item[0]))
    listed = ", ".join(f"{count:+,} {op}" for op, count in shown[:4])
    return f"; {listed}" + (f", and {len(shown) - 4} other kinds" if len(shown) > 4 else "")


def _by_op(graph: Graph) -> dict[str, int]:
    counts = np.bincount(graph.node_op, minlength=1)
    return {graph.pools.strings[op]: int(counts[op]) for op in _nonzero(counts)}


def _nonzero(counts: npt.NDArray[Any]) -> Iterable[int]:
    return np.flatnonzero(counts).tolist()
