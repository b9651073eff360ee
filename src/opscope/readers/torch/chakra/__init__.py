"""Chakra execution traces: the JSON of `torch.profiler.ExecutionTraceObserver`.

A trace records every call, one inside the other: `conv2d` calls `convolution`, that `_convolution`, that a kernel's
wrapper, that `empty`. The operators that we show are those that autograd and the dispatcher saw (`convolution`): of a
composite operator its parts, otherwise the outermost. What they call in turn is kept as an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

import numpy as np

from opscope.errors import BadInput
from opscope.ir import Capture, Origin, Stage, Table, column
from opscope.ir.columns import frozen
from opscope.ir.facts import IDS
from opscope.ir.pools import clean
from opscope.readers.source import Options, Source
from opscope.readers.torch.archive import reading
from opscope.readers.torch.pt2 import parsed

from .build import Build
from .calls import Call, calls_in

NAME = "chakra"
_STARTS = re.compile(rb'^\s*\{\s*"schema"\s*:\s*"[0-9.]+(?:-chakra[^"]*)?"')


def match(source: Source) -> bool:
    head = source.head
    return _STARTS.match(head) is not None and (b"chakra" in head[:200] or b'"rf_id"' in head or b'"nodes"' in head)


def read(source: Source, options: Options) -> Capture:
    text = source.read()
    return reading(source, "not a Chakra execution trace", lambda: _read(text))


def _read(text: bytes) -> Capture:
    data = parsed(text)
    nodes = data.get("nodes")
    if not isinstance(nodes, list):
        raise BadInput(f"no list 'nodes' in it (found: {', '.join(repr(key)[:40] for key in list(data)[:6])})")
    calls = calls_in(cast("list[object]", nodes))
    if not calls:
        raise BadInput("its list 'nodes' has no calls")
    building = Build(calls)
    graph = building.run()
    schema = data.get("schema")
    ids = Table(
        0,
        "node",
        frozen(range(graph.n_nodes)),
        {
            "id": column([str(call.id) for call in building.shown]),
            "rf_id": column([call.text("rf_id") for call in building.shown]),
            "thread": column([call.text("tid") for call in building.shown]),
        },
    )
    return Capture(
        pools=building.pools,
        stages=[Stage("trace", graph, warnings=tuple(building.warnings))],
        tables={"chakra ids": ids, "ids": _numbers(building.shown)},
        origin=Origin(
            format=NAME,
            framework="torch",
            how=f"execution trace {clean(schema)[:60]}" if isinstance(schema, str) else "",
        ),
    )


def _numbers(calls: Sequence[Call]) -> Table:
    """By which a profile of the same run calls them."""
    texts = [call.text("rf_id") for call in calls]
    known = [text.isdecimal() and len(text) < 19 for text in texts]
    numbers = np.array([int(text) if good else -1 for text, good in zip(texts, known, strict=True)], dtype=np.int64)
    return Table(0, "node", frozen(range(len(calls))), {"id": column(numbers, known=known)}, IDS.name)
