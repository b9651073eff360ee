"""An example of an opscope plugin: a reader of graphs written as lists of edges.

    #edges 1
    x conv h
    h relu y
    x,y add z

Each line names what an operator reads, the operator, and what it makes. Copy this file and pyproject.toml
to begin a reader of your own: once it is installed, `opscope.open` and the command line know the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opscope.errors import BadInput
from opscope.ir import Capture, GraphBuilder, Origin, Stage

if TYPE_CHECKING:
    from opscope.readers.source import Options, Source

NAME = "edges"
FIRST_LINE = "#edges 1"


def match(source: Source) -> bool:
    """Whether this is our format, recognised by the first bytes and never by the name."""
    return source.head.split(b"\n", 1)[0].rstrip() == FIRST_LINE.encode()


def read(source: Source, options: Options) -> Capture:
    try:
        lines = source.read().decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise BadInput(f"{source.name}: not an edge list: byte {error.start} is not UTF-8") from None
    capture = Capture(origin=Origin(format=NAME, how="file"))
    build = GraphBuilder(capture.pools)
    values: dict[str, int] = {}
    unread: dict[str, int] = {}  # made by an operator and read by none: the outputs of the graph
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        words = line.split()
        reads = words[0].split(",")
        if len(words) != 3 or "" in reads:
            raise BadInput(
                f"{source.name}:{number}: expected 'inputs operator output' (such as 'x,y add z'), found {line!r}"
            )
        op, made = words[1:]
        for name in reads:
            if name not in values:
                values[name] = build.input(name=name)
            unread.pop(name, None)
        if made in values:
            raise BadInput(f"{source.name}:{number}: {made!r} was read or made before; every output needs a new name")
        node = build.node(op, [values[name] for name in reads])
        values[made] = unread[made] = build.output(node, name=made)
    build.outputs.extend(unread.values())
    capture.stages.append(Stage("edges", build.freeze()))
    return capture
