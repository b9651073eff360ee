"""What a Model Explorer file says, its parts checked for what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from opscope.errors import BadInput
from opscope.ir.pools import clean

_MOST_GRAPHS = 10_000


def graphs(data: Any) -> tuple[list[RawGraph], bool]:
    """Every graph, and whether opscope wrote the file."""
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
    ours = _str(top.get("producer")).startswith("opscope ")
    return [RawGraph.of(name, graph) for name, graph in named], ours


def _unique(name: str, taken: dict[str, int]) -> str:
    """The name, with a number appended from the second time on."""
    found = name
    while found in taken:
        taken[name] += 1
        found = f"{name} ({taken[name]})"
    taken[found] = 1
    return found


@dataclass
class RawGraph:
    """One graph of the file, its parts checked for what they are."""

    name: str
    nodes: list[RawNode]
    by_id: dict[str, int]
    group_attributes: dict[str, dict[str, str]]
    own_id: str

    @staticmethod
    def of(name: str, graph: Mapping[str, Any]) -> RawGraph:
        nodes = [
            RawNode.of(entry, f"graph {name[:60]!r}, node {i}")
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
        return RawGraph(name, nodes, by_id, attributes, _str(graph.get("id")))


@dataclass
class RawNode:
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
    def of(entry: Mapping[str, Any], where: str) -> RawNode:
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
        return RawNode(
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
