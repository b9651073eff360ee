"""Model Explorer's graph JSON: `{graphs}` or `{graphCollections}`.

Each graph is a stage, but one that a single node names in `subgraphIds` is the body of that node.
Namespaces become scopes, edges become uses of the outputs that they name. What has no place in our model
(styles, metadata that we do not know) is kept in the attribute `modelExplorer` of its node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir import NULL, PHASES, ROLES, Capture, Frame, Graph, GraphBuilder, Origin, Pools, Stage, Table, column
from opscope.ir.columns import frozen
from opscope.ir.pools import Dim, clean

from .source import Options, Source

NAME = "model-explorer"
KEPT = "modelExplorer"  # the attribute with what we do not understand

_STARTS = re.compile(rb'"(graphs|graphCollections)"\s*:\s*\[')
_BARE = re.compile(rb'"(incomingEdges|namespace|outputsMetadata)"\s*:')
_LARGEST = 2 << 30
_DEEPEST = 200  # levels of a namespace; what is deeper stays one name
_DEEPEST_BODY = 4
_MOST_GRAPHS = 10_000
_MOST_SLOTS = 16  # a number of an output that nobody describes is believed up to here
_LONGEST_NUMBER = 300


def match(source: Source) -> bool:
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] not in (b"{", b"["):
        return False
    if b'"arguments"' in head:  # Hidet writes {"graphs": [{"inputs": [{"arguments": … for its own viewer
        return False
    return _STARTS.search(head) is not None or (_BARE.search(head) is not None and b'"nodes"' in head)


def read(source: Source, options: Options) -> Capture:
    try:
        if source.size > _LARGEST:
            raise BadInput(f"{source.size:,} bytes of JSON; {_LARGEST:,} are the most")
        data = _parsed(source.read())
        raw, ours = _graphs(data)
        return _capture([_RawGraph.of(name, graph) for name, graph in raw], ours)
    except BadInput as error:
        raise BadInput(f"{source.name}: not a Model Explorer graph: {error}") from None


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_int=_number)
    except UnicodeDecodeError as error:
        raise BadInput(f"byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise BadInput("its JSON is nested too deep") from None
    except ValueError as error:
        raise BadInput(f"bad JSON ({error}); it may have been cut off: copy or export it again") from None


def _number(digits: str) -> int | float:
    """Reading very long numbers takes quadratic time, and no attribute means them."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


# -- what is in the file ----------------------------------------------------------------------------


def _graphs(data: Any) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """(name, graph) of every graph, and whether opscope wrote the file."""
    top = _mapping(data) if isinstance(data, dict) else {}
    if "graphCollections" in top:
        collections = _objects(top["graphCollections"], "graphCollections")
    elif "graphs" in top:
        collections = [top]
    elif "nodes" in top:
        collections = [{"graphs": [top]}]
    elif isinstance(data, list):
        listed = _objects(data, "the list")
        collections = [entry if "graphs" in entry else {"graphs": [entry]} for entry in listed]
    else:
        found = ", ".join(repr(str(key))[:40] for key in list(top)[:6]) or _kind(data)
        raise BadInput(f"no 'graphs' and no 'graphCollections' in it (found: {found})")
    named: list[tuple[str, dict[str, Any]]] = []
    taken: dict[str, int] = {}
    for collection in collections:
        label = _str(collection.get("label"))
        for graph in _objects(collection.get("graphs", []), "graphs"):
            own = _str(graph.get("id")) or "graph"
            name = _unique(f"{label}/{own}" if len(collections) > 1 and label else own, taken)
            named.append((name, graph))
    if not named:
        raise BadInput("it has no graph")
    if len(named) > _MOST_GRAPHS:
        raise BadInput(f"it has {len(named):,} graphs; {_MOST_GRAPHS:,} are the most")
    return named, _str(top.get("producer")).startswith("opscope ")


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name, with a number behind it from the second time on."""
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name} ({taken[name]})"
    taken[found] = 1
    return found


@dataclass
class _RawGraph:
    """One graph of the file, its parts checked for what they are."""

    name: str
    nodes: list[_RawNode]
    by_id: dict[str, int]
    group_attributes: dict[str, dict[str, str]]
    own_id: str

    @staticmethod
    def of(name: str, graph: Mapping[str, Any]) -> _RawGraph:
        nodes = [
            _RawNode.of(entry, f"graph {name[:60]!r}, node {i}")
            for i, entry in enumerate(_objects(graph.get("nodes", []), f"nodes of graph {name[:60]!r}"))
        ]
        by_id: dict[str, int] = {}
        for i, node in enumerate(nodes):
            if by_id.setdefault(node.id, i) != i:
                raise BadInput(f"graph {name[:60]!r}: two nodes have the id {node.id[:60]!r}")
        groups = graph.get("groupNodeAttributes")
        attributes = {
            clean(space): {clean(key): _value_text(value) for key, value in _mapping(values).items()}
            for space, values in (_mapping(groups) if isinstance(groups, dict) else {}).items()
            if isinstance(values, dict)
        }
        return _RawGraph(name, nodes, by_id, attributes, _str(graph.get("id")))


@dataclass
class _RawNode:
    id: str
    label: str
    namespace: str
    attrs: dict[str, str]
    edges: list[tuple[str, str, str]]  # (source node, its output, our input)
    inputs: dict[str, dict[str, str]]  # input id -> its metadata
    outputs: dict[str, dict[str, str]]
    subgraphs: list[str]
    other: dict[str, Any] = field(default_factory=dict[str, Any])

    @staticmethod
    def of(entry: Mapping[str, Any], where: str) -> _RawNode:
        if not isinstance(entry.get("id"), str | int):
            raise BadInput(f"{where} has no id")
        edges = [
            (
                _str(edge.get("sourceNodeId")),
                _str(edge.get("sourceNodeOutputId", "0")),
                _str(edge.get("targetNodeInputId", "0")),
            )
            for edge in _objects(entry.get("incomingEdges"), f"{where}: incomingEdges")
        ]
        subgraphs = entry.get("subgraphIds")
        return _RawNode(
            id=_str(entry["id"]),
            label=_str(entry.get("label")),
            namespace=_str(entry.get("namespace")),
            attrs=_pairs(entry.get("attrs"), f"{where}: attrs"),
            edges=edges,
            inputs=_metadata(entry.get("inputsMetadata"), f"{where}: inputsMetadata"),
            outputs=_metadata(entry.get("outputsMetadata"), f"{where}: outputsMetadata"),
            subgraphs=[_str(s) for s in cast("list[Any]", subgraphs)] if isinstance(subgraphs, list) else [],
            other={key: entry[key] for key in ("style", "config") if key in entry},
        )


def _metadata(data: Any, where: str) -> dict[str, dict[str, str]]:
    return {
        _str(entry.get("id", str(i))): _pairs(entry.get("attrs"), where)
        for i, entry in enumerate(_objects(data, where))
    }


def _pairs(data: Any, where: str) -> dict[str, str]:
    """A list of {key, value}; values are text, in newer files also small objects."""
    return {_str(pair.get("key")): _value_text(pair.get("value")) for pair in _objects(data, where)}


def _objects(data: Any, where: str) -> list[dict[str, Any]]:
    if data is None:
        return []
    if not isinstance(data, list):
        raise BadInput(f"{where[:120]} is not a list but {_kind(data)}")
    entries = cast("list[Any]", data)
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise BadInput(f"{where[:120]}: entry {i} is not an object but {_kind(entry)}")
    return cast("list[dict[str, Any]]", entries)


def _kind(data: Any) -> str:
    return type(data).__name__


def _mapping(data: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", data)


def _str(data: Any) -> str:
    return clean(data) if isinstance(data, str) else str(data) if isinstance(data, int | float) else ""


def _value_text(data: Any) -> str:
    return clean(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":")))


# -- the capture ------------------------------------------------------------------------------------


def _capture(raws: Sequence[_RawGraph], ours: bool) -> Capture:
    pools = Pools()
    warnings: list[str] = []
    owner, depth = _owners(raws)
    inside: dict[int, list[int]] = {}
    for inner, outer in owner.items():
        inside.setdefault(outer, []).append(inner)
    built: dict[int, Graph] = {}
    tables: dict[str, Table] = {}
    stages: list[Stage] = []
    for i in sorted(range(len(raws)), key=lambda i: -depth[i]):  # bodies before the nodes they stand in
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
        origin=Origin(format=NAME, how="file"),
        warnings=warnings,
    )


def _owners(raws: Sequence[_RawGraph]) -> tuple[dict[int, int], list[int]]:
    """Graph -> the graph with the one node that names it, and how deep each stands.

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
    for i in list(owner):  # deleting above may have changed how deep others stand
        at, above = i, 0
        while at in owner:
            above, at = above + 1, owner[at]
        depth[i] = above
    return owner, depth


def _group_table(raw: _RawGraph, pools: Pools, stage: int, ours: bool) -> Table | None:
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


def _scope(pools: Pools, namespace: str, raw: _RawGraph, ours: bool) -> int:
    parts = [part for part in namespace.split("/", _DEEPEST) if part]
    scope, path = 0, ""
    for part in parts:
        path = f"{path}/{part}" if path else part
        cls = raw.group_attributes.get(path, {}).get("class", "") if ours else ""
        scope = pools.scope(scope, "" if ours and part == f"({cls})" else part, cls)
    return scope


class _Builder:
    """Builds one graph."""

    def __init__(self, raw: _RawGraph, pools: Pools, ours: bool, bodies: Mapping[str, Graph]) -> None:
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
                inputs.append((_place(node.attrs["input"]), values[i, slots[i][0]]))
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
                f"graph {raw.name[:60]!r}: {self.lost} edges come from nodes or outputs that are not there"
            )
        return b.freeze()

    def _is_value(self, node: _RawNode) -> bool:
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
        return [sorted(outputs, key=_by_number) for outputs in slots]

    def _order(self) -> Iterable[int]:
        """As they stand in the file, but no node before what it reads, unless the graph has a cycle."""
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
            self.warnings.append(f"graph {self.raw.name[:60]!r}: it has a cycle; its nodes stand as in the file")
            return range(len(nodes))
        return order

    def _node(self, i: int, slots: list[list[str]], values: Mapping[tuple[int, str], int]) -> int:
        node = self.raw.nodes[i]
        if node.namespace not in self.scopes:
            self.scopes[node.namespace] = _scope(self.pools, node.namespace, self.raw, self.ours)
        attrs: dict[str, Any] = dict(node.attrs)
        phase, stack, name = "other", 0, node.id
        if self.ours:
            attrs = {key: _from_text(value) for key, value in node.attrs.items() if not key.startswith("attr.")}
            phase = str(attrs.pop("phase", ""))
            phase = phase if phase in PHASES else "other"
            attrs.pop("kernel", None)  # becomes a group
            source = attrs.pop("source", None)
            stack = self.pools.stack([_frame(source)]) if isinstance(source, str) and source else 0
            name = str(attrs.pop("name", "" if node.id.isdigit() else node.id))
            attrs |= {k.removeprefix("attr."): _from_text(v) for k, v in node.attrs.items() if k.startswith("attr.")}
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
        self, node: _RawNode, slots: list[list[str]], values: Mapping[tuple[int, str], int]
    ) -> list[tuple[str, int]]:
        """(argument, value): in the order of the input ids, where these tell the inputs apart."""
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
        rows.sort(key=lambda row: _by_number(row[0]))
        return [(node.inputs.get(target, {}).get("__tensor_tag") or target, value) for target, value in rows]

    def _type(self, meta: Mapping[str, str]) -> int:
        dtype, shape = parse_type(meta.get("tensor_shape", "")) or ("", None)
        return self.pools.type(dtype or meta.get("dtype", ""), shape)

    def _role(self, meta: Mapping[str, str]) -> str:
        role = meta.get("role", "") if self.ours else ""
        return role if role in ROLES else "activation"

    def _kept(self, node: _RawNode, slots: Sequence[str]) -> dict[str, Any]:
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


# -- small texts ------------------------------------------------------------------------------------


def _by_number(text: str) -> tuple[int, int, str]:
    return (0, int(text), "") if text.isascii() and text.isdigit() and len(text) < 10 else (1, 0, text)


def _place(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _from_text(text: str) -> Any:
    if text[:1] not in tuple('"-0123456789[{tfnNI'):
        return text
    try:
        return json.loads(text, parse_int=_number)
    except (ValueError, RecursionError):
        return text


def _frame(text: str) -> Frame:
    """`file.py:12 function`, as our text dump writes a frame."""
    found = re.fullmatch(r"(.*?):(\d{1,9})(?: (.*))?", text, re.DOTALL)
    return Frame(found[1], int(found[2]), found[3] or "") if found else Frame(text, 0, "")


_DTYPE = r"[A-Za-z_][\w.:]*"
_BRACKETS = re.compile(rf"(?:({_DTYPE}|\?)\s*)?[\[(](.*)[\])]\s*(?:({_DTYPE}))?")
_MLIR = re.compile(rf"tensor<((?:(?:\d+|\?)x)*)({_DTYPE})>")
_CROSSES = re.compile(r"\d+(?:[x×]\d+)*")


def parse_type(text: str) -> tuple[str, list[Dim] | None] | None:
    """`float32[1,3]`, `(1, 3)`, `tensor<1x3xf32>`, `1x3`: dtype ("": not said) and shape; None: neither.

    >>> parse_type("float32[1,batch,?]")
    ('float32', [1, 'batch', None])
    """
    text = text.strip()
    if not text or len(text) > 1000:
        return None
    if found := _MLIR.fullmatch(text):
        return found[2], [_dim(part) for part in found[1].split("x")[:-1]]
    if _CROSSES.fullmatch(text):
        return "", [_dim(part) for part in re.split("[x×]", text)]
    if found := _BRACKETS.fullmatch(text):
        dtype = (found[1] or found[3] or "").replace("?", "")
        inner = found[2].strip()
        if inner == "…":
            return dtype, None
        if re.search(r"[\[\](){}<>\"]", inner):
            return None
        return dtype, [_dim(part) for part in inner.rstrip(",").split(",")] if inner else []
    return None


def _dim(text: str) -> Dim:
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    return None if text in ("?", "-1", "None", "") else text
