"""opscope find X QUERY: the operators that match a query."""

from __future__ import annotations

from typing import Any

import click

from opscope.analysis.search.conditions import Measured
from opscope.analysis.search.find import find as found
from opscope.capture import Capture
from opscope.ir.rows import Rows

from .common import STAGE, opened
from .rows import print_rows
from .table import print_nodes


@click.command()
@opened
@click.argument("query", nargs=-1, required=True)
@STAGE
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Print at most N operators.")
def command(capture: Capture, query: tuple[str, ...], stage: str | None, as_json: bool, limit: int | None) -> None:
    """Search X with the same query language as the page. Put QUERY in single quotes.

    \b
    'layer4 conv'                      words; all must occur in op, name, module or class
    'op:conv phase:backward -relu'     fields, and an excluded word
    'shape:64x* dtype:float16'         shapes with wildcards
    'op:/^add|^mul/'                   regular expressions
    'matmul -> * -> softmax'           paths: * is any operator, ** any number of them
    'kind:matmul time:>1ms'            measured times; figures of measured tensors, such as nan:>0

    \b
    Fields: op kind name scope class phase role dtype shape attr file line kernel
            time norm min max mean std nan inf
    """
    chosen = capture.stage(stage)
    graph = chosen.graph
    measured = Measured.of(capture, capture.stages.index(chosen))
    nodes = found(graph, " ".join(query), capture.origin.framework, measured)
    shown = nodes[:limit].tolist()
    if as_json:
        rows = Rows(graph)
        click.echo(f'{{\n  "found": {len(nodes)},\n  "nodes": ', nl=False)
        print_rows((_row(rows, node) for node in shown), "  ")
        click.echo("\n}")
        return
    print_nodes(graph, shown)
    more = f", {len(shown):,} of them shown" if len(shown) < len(nodes) else ""
    click.echo(f"{len(nodes):,} operator{'' if len(nodes) == 1 else 's'} found{more}", err=True)


def _row(rows: Rows, node: int) -> dict[str, Any]:
    place, types = rows.users_frame(node), rows.graph.pools.types
    outputs = [(rows.strings[rows.value_name[v]], types[rows.value_type[v]]) for v in rows.made(node)]
    return {
        "node": node,
        "op": rows.strings[rows.op[node]],
        "name": rows.strings[rows.name[node]],
        "phase": rows.phase(node),
        "scope": rows.path(rows.scope[node]),
        "outputs": [{"name": name, "dtype": type_.dtype or None, "shape": type_.shape} for name, type_ in outputs],
        "file": None if place is None else place.file,
        "line": None if place is None else place.line or None,
    }
