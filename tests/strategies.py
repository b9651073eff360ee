"""Hypothesis strategies: captures of every shape that the model allows, hostile names among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from opscope.ir import (
    NULL,
    PHASES,
    ROLES,
    Capture,
    Frame,
    Graph,
    GraphBuilder,
    Listing,
    Origin,
    Pools,
    Stage,
    StageLink,
    Table,
    add_listings,
    column,
)
from opscope.ir.columns import frozen
from opscope.ir.enumerations import EVIDENCE, STAGE_LINK_KINDS

texts = st.one_of(
    st.sampled_from(
        ["", "x", "weight", "</script>", 'a"b', "a b", "‮rtl", "层.卷积", "line\nbreak", "\x1b[31m", "\ud800"]
    ),
    st.text(max_size=12),
)
dims = st.one_of(st.integers(0, 4096), st.sampled_from(["s0", "batch"]), st.none())
shapes = st.one_of(st.none(), st.lists(dims, max_size=4))
attr_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), texts),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
attrs = st.dictionaries(texts, attr_values, max_size=3)
phases = st.sampled_from(PHASES)
roles = st.sampled_from(ROLES)


@st.composite
def graphs(draw: st.DrawFn, pools: Pools, depth: int = 1) -> Graph:
    b = GraphBuilder(pools)
    types = [0, *(pools.type(draw(texts), draw(shapes)) for _ in range(draw(st.integers(0, 3))))]
    scopes = [0]
    for _ in range(draw(st.integers(0, 4))):
        scopes.append(pools.scope(draw(st.sampled_from(scopes)), draw(texts), draw(texts), draw(st.integers(0, 2))))
    stacks = [0]
    for _ in range(draw(st.integers(0, 3))):
        frames = [Frame(draw(texts), draw(st.integers(0, 10**6)), draw(texts)) for _ in range(draw(st.integers(1, 3)))]
        stacks.append(pools.stack(frames))
    for _ in range(draw(st.integers(0, 2))):
        b.input(draw(st.sampled_from(types)), name=draw(texts), role=draw(roles))
    loose = [b.value(name="loose", role=draw(roles)) for _ in range(draw(st.integers(0, 2)))]
    for i in range(draw(st.integers(0, 8))):
        inputs = draw(st.lists(st.integers(NULL, b.n_values - 1), max_size=4))
        named = [draw(texts) for _ in inputs] if draw(st.booleans()) else None
        node = b.node(
            draw(texts),
            inputs,
            args=named,
            name=draw(texts),
            scope=draw(st.sampled_from(scopes)),
            stack=draw(st.sampled_from(stacks)),
            attrs=draw(attrs),
            phase=draw(phases),
        )
        for _ in range(draw(st.integers(0, 3))):
            owner = draw(st.one_of(st.none(), st.integers(0, b.n_values - 1))) if b.n_values else None
            value = b.output(node, draw(st.sampled_from(types)), name=draw(texts), role=draw(roles))
            if owner is not None:
                b.set_storage(value, owner)
        if loose and draw(st.booleans()):
            b.produce(node, loose.pop())
        if depth and i < 2 and draw(st.integers(0, 5)) == 0:
            inner = draw(graphs(pools, depth - 1))
            bound: list[tuple[int, int]] = []
            if inner.n_values and b.n_values:
                bound = [(draw(st.integers(0, inner.n_values - 1)), draw(st.integers(0, b.n_values - 1)))]
            b.body(node, draw(texts), inner, bound)
    if b.n_values:
        b.outputs += draw(st.lists(st.integers(0, b.n_values - 1), max_size=3))
    if b.n_nodes:
        member = st.integers(0, b.n_nodes - 1)
        for kind in draw(st.lists(st.sampled_from(["grad", "control", "</b>"]), max_size=4)):
            b.link(kind, draw(member), draw(member))
        for kind in draw(st.lists(st.sampled_from(["kernel", "partition"]), max_size=4)):
            members = draw(st.lists(member, max_size=5))
            b.group(kind, members, name=draw(texts), code=draw(texts), attrs=draw(attrs))
    return b.freeze()


@st.composite
def listings(draw: st.DrawFn, n_nodes: int) -> Listing:
    nodes = st.integers(0, n_nodes - 1) if n_nodes else st.nothing()
    pairs = st.lists(st.tuples(st.integers(1, 99), nodes), max_size=4) if n_nodes else st.just([])
    return Listing(draw(st.text(st.characters(exclude_categories=["Cs"]))), draw(pairs))


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    pools = Pools()
    stages: list[Stage] = []
    for i in range(draw(st.integers(0, 3))):
        same = stages and draw(st.booleans())
        graph = stages[-1].graph if same else draw(graphs(pools))
        stages.append(
            Stage(
                f"stage {i}",
                graph,
                draw(st.one_of(st.none(), st.integers(0, i - 1))) if i else None,
                draw(st.one_of(st.none(), st.floats(0, 1e6))),
                {},
                tuple(draw(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=2))),
            )
        )
    capture = Capture(pools=pools, stages=stages, origin=Origin("test", "none", "1", "hypothesis"))
    capture.sources = draw(st.dictionaries(st.text("abc/.py", min_size=1, max_size=8), st.just("x = 1\n"), max_size=2))
    capture.warnings = draw(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=2))
    for number, stage in enumerate(stages):
        texts = st.dictionaries(st.sampled_from(["code", "native"]), listings(stage.graph.n_nodes))
        add_listings(capture, number, draw(texts))
    if len(stages) > 1 and stages[0].graph.n_nodes and stages[1].graph.n_nodes:
        capture.stage_links.append(
            StageLink(
                0, 1, draw(st.sampled_from(STAGE_LINK_KINDS)), frozen([0]), frozen([0]), draw(st.sampled_from(EVIDENCE))
            )
        )
    if stages and stages[0].graph.n_nodes:
        count = stages[0].graph.n_nodes
        known = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        numbers = np.array(draw(st.lists(st.floats(allow_nan=False), min_size=count, max_size=count)))
        capture.tables["figures"] = Table(
            0,
            "node",
            frozen(range(count)),
            {
                "number": column(numbers, "ms", known),
                "whole": column(np.arange(count)),
                "word": column([f"w{i}" for i in range(count)], known=known),
                "list": column([[float(i)] * i for i in range(count)]),
            },
        )
    return capture
