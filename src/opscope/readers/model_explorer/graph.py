"""The graphs of a Model Explorer file as stages, and as bodies of the nodes that name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from opscope.ir import NULL, PHASES, ROLES, Capture, Graph, GraphBuilder, Origin, Pools, Stage, Table, column
from opscope.ir.columns import frozen

from .raw import RawGraph, RawNode
from .texts import by_number, frame, from_text, parse_type, place

KEPT = "modelExplorer"  # the attribute with what we do not understand
_DEEPEST = 200  # levels of a namespace; what is deeper stays one name
_DEEPEST_BODY = 4
_MOST_SLOTS = 16  # the number of an output without a description is believed up to here


def capture(raws: Sequence[RawGraph], ours: bool, origin: Origin) -> Capture:
    pools = Pools()
    warnings: list[str] = []
    owner, depth = _owners(raws)
    inside: dict[int, list[int]] = {}
    for inner, outer in owner.items():
        inside.setdefault(outer, []).append(inner)
    built: dict[int, Graph] = {}
    tables: dict[str, Table] = {}
    stages: list[Stage] = []
    for i in sorted(range(len(raws)), key=lambda i: -depth[i]):  # bodies before the nodes that hold them
        bodies = {raws[j].own_id: built[j] for j in inside.get(i, ())}
        builder = _Builder(raws[i], pools, ours, bodies)
        built[i] = builder.build()
        warnings += builder.warnings
    for i, raw in enumerate(raws):
        if i not in owner:
            stages.append(Stage(raw.name, built[i]))
            table = _group_table(raw, pools, len(stages) - 1, ours)
            if table is not None:
                tables["group attributes" if len(stages) == 1 else f"group attributes: {raw.name}"] = table
    return Capture(
        pools=pools,
        stages=stages,
        tables=tables,
        origin=origin,
        warnings=warnings,
    )


def _owners(raws: Sequence[RawGraph]) -> tuple[dict[int, int], list[int]]:
    """Graph -> the graph with the one node that names it, and how deep each is.

    Graphs that several nodes name stay stages, and so does what is nested too deep or in itself.
    """
    by_id: dict[str, list[int]] = {}
    for i, raw in enumerate(raws):
        by_id.setdefault(raw.own_id, []).append(i)
    named: dict[int, list[int]] = {}
    for i, raw in enumerate(raws):
        for node in raw.nodes:
            for name in node.subgraphs:
                if len(by_id.get(name, ())) == 1:
                    named.setdefault(by_id[name][0], []).append(i)
    owner = {inner: outers[0] for inner, outers in named.items() if len(outers) == 1}
    depth = [0] * len(raws)
    for i in range(len(raws)):
        above, at = 0, i
        while at in owner and above <= _DEEPEST_BODY:
            above, at = above + 1, owner[at]
        if above > _DEEPEST_BODY:
            del owner[i]
        else:
            depth[i] = above
    for i in list(owner):  # deleting above may have changed how deep others are
        at, above = i, 0
        while at in owner:
            above, at = above + 1, owner[at]
        depth[i] = above
    return owner, depth


def _group_table(raw: RawGraph, pools: Pools, stage: int, ours: bool) -> Table | None:
    """groupNodeAttributes: one row for each attribute of a group; "" is the graph itself."""
    rows = [
        (_scope(pools, space, raw, ours), key, value)
        for space, values in raw.group_attributes.items()
        for key, value in values.items()
        if not (ours and key == "class")
    ]
    if not rows:
        return None
    keys, values = [key for _, key, _ in rows], [value for _, _, value in rows]
    return Table(
        stage, "scope", frozen([scope for scope, _, _ in rows]), {"key": column(keys), "value": column(values)}
    )


def _scope(pools: Pools, namespace: str, raw: RawGraph, ours: bool) -> int:
    parts = [part for part in namespace.split("/", _DEEPEST) if part]
    scope, path = 0, ""
    for part in parts:
        path = f"{path}/{part}" if path else part
        cls = raw.group_attributes.get(path, {}).get("class", "") if ours else ""
        scope = pools.scope(scope, "" if ours and part == f"({cls})" else part, cls)
    return scope


class _Builder:
    """Builds one graph."""

    def __init__(self, raw: RawGraph, pools: Pools, ours: bool, bodies: Mapping[str, Graph]) -> None:
        self.raw = raw
        self.pools = pools
        self.ours = ours
        self.bodies = bodies
        self.b = GraphBuilder(pools)
        self.warnings: list[str] = []
        self.scopes: dict[str, int] = {}
        self.kernels: dict[int, tuple[str, list[int]]] = {}
        self.lost = 0  # edges from nodes that are not there

    def build(self) -> Graph:
        raw, b = self.raw, self.b
        slots = self._slots()
        values: dict[tuple[int, str], int] = {}
        outside = {i for i, node in enumerate(raw.nodes) if self._is_value(node)}
        ends = {i for i, node in enumerate(raw.nodes) if self.ours and node.attrs.get("role") == "outputs"}
        inputs: list[tuple[int, int]] = []
        for i, node in enumerate(raw.nodes):  # values first: an edge may come from a node further down
            for output in slots[i]:
                meta = node.outputs.get(output, {})
                type_, name, role = self._type(meta), meta.get("tensor_name", ""), self._role(meta)
                values[i, output] = b.value(type_, name=name, role=node.attrs["role"] if i in outside else role)
            if i in outside and "input" in node.attrs and slots[i]:
                inputs.append((place(node.attrs["input"]), values[i, slots[i][0]]))
        b.inputs.extend(value for _, value in sorted(inputs))
        rows: dict[int, int] = {}
        for i in self._order():
            if i not in outside and i not in ends:
                rows[i] = self._node(i, slots, values)
        for i in sorted(rows):
            for output in slots[i]:
                b.produce(rows[i], values[i, output])
        for i in ends:
            b.outputs.extend(v for _, v in self._uses(raw.nodes[i], slots, values) if v != NULL)
        for number in sorted(self.kernels):
            name, members = self.kernels[number]
            b.group("kernel", members, name=name)
        if self.lost:
            self.warnings.append(
                f"graph {raw.name[:60]!r}: {self.lost} edges come from nodes or outputs that do not exist"
            )
        return b.freeze()

    def _is_value(self, node: RawNode) -> bool:
        """A node that we wrote for a value without a producer."""
        return self.ours and node.id.startswith("%") and node.attrs.get("role") in ROLES and not node.edges

    def _slots(self) -> list[list[str]]:
        """The outputs of every node: those it describes, and those that edges name."""
        slots: list[dict[str, None]] = [dict.fromkeys(node.outputs) for node in self.raw.nodes]
        for node in self.raw.nodes:
            for source, output, _ in node.edges:
                at = self.raw.by_id.get(source)
                if at is not None and output not in slots[at]:
                    if output.isascii() and output.isdigit() and len(output) < 4 and int(output) < _MOST_SLOTS:
                        slots[at] |= dict.fromkeys(str(i) for i in range(int(output) + 1))
                    else:
                        slots[at][output] = None
        return [sorted(outputs, key=by_number) for outputs in slots]

    def _order(self) -> Iterable[int]:
        """In the order of the file, but no node before what it reads, unless the graph has a cycle."""
        nodes, by_id = self.raw.nodes, self.raw.by_id
        reads = [{by_id[source] for source, _, _ in node.edges if source in by_id} for node in nodes]
        if all(not before or max(before) < i for i, before in enumerate(reads)):
            return range(len(nodes))
        readers: list[list[int]] = [[] for _ in nodes]
        missing = [0] * len(nodes)
        for i, before in enumerate(reads):
            for source in before - {i}:
                readers[source].append(i)
                missing[i] += 1
        ready = [i for i, count in enumerate(missing) if not count]
        heapify(ready)
        order: list[int] = []
        while ready:
            i = heappop(ready)
            order.append(i)
            for reader in readers[i]:
                missing[reader] -= 1
                if not missing[reader]:
                    heappush(ready, reader)
        if len(order) < len(nodes):
            self.warnings.append(f"graph {self.raw.name[:60]!r}: it has a cycle; its nodes are in file order")
            return range(len(nodes))
        return order

    def _node(self, i: int, slots: list[list[str]], values: Mapping[tuple[int, str], int]) -> int:
        node = self.raw.nodes[i]
        if node.namespace not in self.scopes:
            self.scopes[node.namespace] = _scope(self.pools, node.namespace, self.raw, self.ours)
        attrs: dict[str, Any] = dict(node.attrs)
        phase, stack, name = "other", 0, node.id
        if self.ours:
            attrs = {key: from_text(value) for key, value in node.attrs.items() if not key.startswith("attr.")}
            phase = str(attrs.pop("phase", ""))
            phase = phase if phase in PHASES else "other"
            attrs.pop("kernel", None)  # becomes a group
            source = attrs.pop("source", None)
            stack = self.pools.stack([frame(source)]) if isinstance(source, str) and source else 0
            name = str(attrs.pop("name", "" if node.id.isdigit() else node.id))
            attrs |= {k.removeprefix("attr."): from_text(v) for k, v in node.attrs.items() if k.startswith("attr.")}
        kept = self._kept(node, slots[i])
        if kept:
            attrs[KEPT] = kept
        uses = self._uses(node, slots, values)
        row = self.b.node(
            node.label,
            [value for _, value in uses],
            args=[arg for arg, _ in uses],
            name=name,
            scope=self.scopes[node.namespace],
            stack=stack,
            attrs=attrs,
            phase=phase,
        )
        if self.ours:
            for number, kernel in re.findall(r"^#(\d{1,9}) ?(.*)$", node.attrs.get("kernel", ""), re.MULTILINE):
                self.kernels.setdefault(int(number), (kernel, []))[1].append(row)
        for graph in node.subgraphs:
            if graph in self.bodies:
                self.b.body(row, graph, self.bodies[graph])
        return row

    def _uses(
        self, node: RawNode, slots: list[list[str]], values: Mapping[tuple[int, str], int]
    ) -> list[tuple[str, int]]:
        """(argument, value): in the order of the input ids, where these distinguish the inputs."""
        rows: list[tuple[str, int]] = []
        for source, output, target in node.edges:
            at = self.raw.by_id.get(source, -1)
            value = values.get((at, output), NULL)
            self.lost += value == NULL
            rows.append((target, value))
        given = {target for target, _ in rows}
        if len(given) < len(rows):
            return [(str(i), value) for i, (_, value) in enumerate(rows)]
        rows += [(target, NULL) for target in node.inputs if target not in given]
        rows.sort(key=lambda row: by_number(row[0]))
        return [(node.inputs.get(target, {}).get("__tensor_tag") or target, value) for target, value in rows]

    def _type(self, meta: Mapping[str, str]) -> int:
        dtype, shape = parse_type(meta.get("tensor_shape", "")) or ("", None)
        return self.pools.type(dtype or meta.get("dtype", ""), shape)

    def _role(self, meta: Mapping[str, str]) -> str:
        role = meta.get("role", "") if self.ours else ""
        return role if role in ROLES else "activation"

    def _kept(self, node: RawNode, slots: Sequence[str]) -> dict[str, Any]:
        kept = dict(node.other)
        lost_bodies = [graph for graph in node.subgraphs if graph not in self.bodies]
        if lost_bodies:
            kept["subgraphIds"] = lost_bodies
        known = {"tensor_name", "tensor_shape", "role"} if self.ours else {"tensor_name", "tensor_shape", "dtype"}
        outputs = {
            output: rest
            for output, meta in node.outputs.items()
            if (
                rest := {k: v for k, v in meta.items() if k not in known or (k == "tensor_shape" and not parse_type(v))}
            )
        }
        inputs = {
            target: rest
            for target, meta in node.inputs.items()
            if (rest := {k: v for k, v in meta.items() if k != "__tensor_tag"})
        }
        if outputs:
            kept["outputs"] = outputs
        if inputs:
            kept["inputs"] = inputs
        if list(slots) != [str(i) for i in range(len(slots))]:
            kept["outputIds"] = list(slots)
        return kept
