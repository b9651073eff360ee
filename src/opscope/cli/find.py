"""opscope find X QUERY: the operators that match a query."""

from __future__ import annotations

from typing import Any

import click

from opscope.capture import Capture
from opscope.ir import Node
from opscope.ir.places import users_frame

from .common import STAGE, opened
from .streams import to_json


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
    nodes = capture.find(" ".join(query), stage)
    shown = nodes[:limit]
    if as_json:
        rows = {"found": len(nodes), "nodes": [_row(node) for node in shown]}
        click.echo(to_json(rows))
        return
    from .table import print_nodes

    print_nodes(shown)
    more = f", {len(shown):,} of them shown" if len(shown) < len(nodes) else ""
    click.echo(f"{len(nodes):,} operator{'' if len(nodes) == 1 else 's'} found{more}", err=True)


def _row(node: Node) -> dict[str, Any]:
    place = users_frame(node.frames)
    return {
        "node": node.index,
        "op": node.op,
        "name": node.name,
        "phase": node.phase,
        "scope": node.path,
        "outputs": [{"name": v.name, "dtype": v.type.dtype or None, "shape": v.type.shape} for v in node.outputs],
        "file": None if place is None else place.file,
        "line": None if place is None else place.line or None,
    }
