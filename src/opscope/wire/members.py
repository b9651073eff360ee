"""The members of an .opscope file: which table holds what. docs/file-format.md describes the same in words."""

from __future__ import annotations

import json
from typing import Any

import arro3.core as ac
import numpy as np

from opscope.errors import BadInput
from opscope.ir import Body, Frame, Graph, Groups, Links, Pools, Scope, Type
from opscope.ir.columns import Int32, frozen
from opscope.ir.pools import Interned, Stack, Strings, clean

from .arrow import Columns, ReadTable, to_array

NODE_COLUMNS = ("op", "name", "scope", "stack", "attrs")
VALUE_COLUMNS = ("producer", "slot", "type", "name", "storage")


# -- pools ----------------------------------------------------------------------------------------


def pool_tables(pools: Pools) -> dict[str, Columns]:
    scopes, frames, stacks, types = (
        list(pools.scopes),
        list(pools.frames),
        list(pools.stacks),
        list(pools.types),
    )
    return {
        "pools/strings": {"text": pools.strings.rows()},
        "pools/attrs": {"json": pools.attr_texts.rows()},
        "pools/types": {"dtype": [t.dtype for t in types], "shape": [json.dumps(t.shape) for t in types]},
        "pools/scopes": {
            "parent": _ints([s.parent for s in scopes]),
            "name": [s.name for s in scopes],
            "class": [s.cls for s in scopes],
            "call": _ints([s.call for s in scopes]),
        },
        "pools/frames": {
            "file": [f.file for f in frames],
            "line": _ints([f.line for f in frames]),
            "function": [f.function for f in frames],
        },
        "pools/stacks": {
            "parent": _ints([s.parent for s in stacks]),
            "frame": _ints([s.frame for s in stacks]),
        },
    }


def read_pools(table: Any) -> Pools:
    """`table(name)` gives a ReadTable. Strings and attributes stay bytes until they are asked for."""
    pools = Pools()
    strings: ReadTable = table("pools/strings")
    pools.strings = Strings.loaded(len(strings), strings.text_column("text").rows)
    attrs: ReadTable = table("pools/attrs")
    pools.attr_texts = Interned[str].loaded(len(attrs), attrs.text_column("json").rows)
    types: ReadTable = table("pools/types")
    pools.types = _interned(
        [Type(d, _shape(s)) for d, s in zip(types.texts("dtype"), types.texts("shape"), strict=True)]
    )
    scopes: ReadTable = table("pools/scopes")
    rows = zip(_list(scopes, "parent"), scopes.texts("name"), scopes.texts("class"), _list(scopes, "call"), strict=True)
    pools.scopes = _interned([Scope(*row) for row in rows])
    frames: ReadTable = table("pools/frames")
    lines = zip(frames.texts("file"), _list(frames, "line"), frames.texts("function"), strict=True)
    pools.frames = _interned([Frame(*row) for row in lines])
    stacks: ReadTable = table("pools/stacks")
    pools.stacks = _interned([Stack(*row) for row in zip(_list(stacks, "parent"), _list(stacks, "frame"), strict=True)])
    return pools


def _interned(rows: list[Any]) -> Interned[Any]:
    return Interned[Any].loaded(len(rows), lambda: rows)


def _shape(text: str) -> tuple[int | str | None, ...] | None:
    try:
        shape = json.loads(text)
    except ValueError:
        shape = 0
    if shape is None:
        return None
    if not isinstance(shape, list) or not all(d is None or isinstance(d, int | str) for d in shape):  # pyright: ignore[reportUnknownVariableType]
        raise BadInput(f"member pools/types: {text[:60]!r} is not a shape")
    return tuple(shape)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _list(table: ReadTable, column: str) -> list[int]:
    return table.ints(column).tolist()


def _ints(values: list[int]) -> Int32:
    return np.array(values, dtype=np.int32)


# -- graphs ---------------------------------------------------------------------------------------


def graph_tables(graph: Graph) -> dict[str, Columns]:
    tables: dict[str, Columns] = {
        "nodes": {**{name: getattr(graph, f"node_{name}") for name in NODE_COLUMNS}, "phase": graph.node_phase},
        "uses": {"node": graph.use_node, "value": graph.use_value, "arg": graph.use_arg},
        "values": {**{name: getattr(graph, f"value_{name}") for name in VALUE_COLUMNS}, "role": graph.value_role},
        "inputs": {"value": graph.inputs},
        "outputs": {"value": graph.outputs},
    }
    for i, links in enumerate(graph.links.values()):
        tables[f"links/{i}"] = {"source": links.source, "target": links.target}
    for i, groups in enumerate(graph.groups.values()):
        tables[f"groups/{i}"] = {"name": groups.name, "code": groups.code, "attrs": groups.attrs}
        owner = np.repeat(np.arange(len(groups), dtype=np.int32), np.diff(groups.start))
        tables[f"groups/{i}/members"] = {"group": owner, "node": groups.member}
    return tables


def read_graph(
    table: Any, pools: Pools, link_kinds: list[str], group_kinds: list[str], bodies: tuple[Body, ...]
) -> Graph:
    nodes: ReadTable = table("nodes")
    uses: ReadTable = table("uses")
    values: ReadTable = table("values")
    links: dict[str, Links] = {}
    for i, kind in enumerate(link_kinds):
        pairs: ReadTable = table(f"links/{i}")
        links[kind] = Links(kind, pairs.ints("source"), pairs.ints("target"))
    groups: dict[str, Groups] = {}
    for i, kind in enumerate(group_kinds):
        sets: ReadTable = table(f"groups/{i}")
        members: ReadTable = table(f"groups/{i}/members")
        start = _starts(members, "group", len(sets))
        name, code, attrs = (sets.ints(column) for column in ("name", "code", "attrs"))
        groups[kind] = Groups(kind, name, code, attrs, start, members.ints("node"))
    return Graph(
        pools=pools,
        **{f"node_{name}": nodes.ints(name) for name in NODE_COLUMNS},
        node_phase=nodes.ints("phase", np.int8),
        use_start=_starts(uses, "node", len(nodes)),
        use_value=uses.ints("value"),
        use_arg=uses.ints("arg"),
        **{f"value_{name}": values.ints(name) for name in VALUE_COLUMNS},
        value_role=values.ints("role", np.int8),
        inputs=table("inputs").ints("value"),
        outputs=table("outputs").ints("value"),
        links=links,
        groups=groups,
        bodies=bodies,
    )


def _starts(table: ReadTable, column: str, count: int) -> Int32:
    """Where the rows of each owner start; the owners must stand in order."""
    owner = table.ints(column)
    if len(owner) and (owner[0] < 0 or owner[-1] >= count or (owner[1:] < owner[:-1]).any()):
        raise BadInput(f"member {table.name}: column {column!r} does not rise within 0 to {count - 1}")
    start = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(np.bincount(owner, minlength=count), out=start[1:])
    return frozen(start)


def text_columns(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> dict[str, ac.Array]:
    return {name: to_array([clean(row[i]) for row in rows]) for i, name in enumerate(names)}
