"""Only some phases of a capture."""

from __future__ import annotations

import numpy as np
import pytest

import opscope
from conftest import DATA
from opscope.analysis.phases import only_phases
from opscope.ir import (
    PHASES,
    Capture,
    GraphBuilder,
    Listing,
    Pools,
    Stage,
    StageLink,
    Table,
    add_listings,
    column,
    lines_of,
    verify_capture,
)
from opscope.ir.columns import frozen

TRAIN = DATA / "jittor" / "resnet_train.pkl"


def test_a_real_training_step():
    whole = opscope.open(TRAIN)
    part = only_phases(whole, ["backward"])
    verify_capture(part)
    assert isinstance(part, opscope.Capture)
    old = [node for node in whole.graph.nodes if node.phase == "backward"]
    new = list(part.graph.nodes)
    assert [(n.op, n.name, n.path, n.frames) for n in new] == [(n.op, n.name, n.path, n.frames) for n in old]
    assert [[u.arg for u in n.uses] for n in new] == [[u.arg for u in n.uses] for n in old]
    types = [[v and (v.name, v.type, v.role) for v in n.inputs] for n in new]
    assert types == [[v and (v.name, v.type, v.role) for v in n.inputs] for n in old]
    made = {n.index for n in old}
    inside = [[v is not None and v.producer is not None for v in n.inputs] for n in new]
    assert inside == [
        [v is not None and v.producer is not None and v.producer.index in made for v in n.inputs] for n in old
    ]
    kernels, before = part.graph.groups["kernel"], whole.graph.groups["kernel"]
    assert kernels.member.size == sum(node in made for node in before.member.tolist())
    assert np.diff(kernels.start).min() > 0
    assert len(part.graph.links_of("grad")) == sum(
        {int(a), int(b)} <= made
        for a, b in zip(whole.graph.links_of("grad").source, whole.graph.links_of("grad").target, strict=True)
    )


def test_all_phases_are_the_same_graph():
    whole = opscope.open(TRAIN)
    part = only_phases(whole, PHASES)
    for name, before in whole.graph.columns().items():
        assert np.array_equal(part.graph.columns()[name], before), name


def small() -> Capture:
    """Two stages. In the first, x -> f -> y -> b -> g, where the memory of y is that of a view of it."""
    pools = Pools()
    stages = []
    for name in ("one", "two"):
        b = GraphBuilder(pools)
        x, unused = b.input(name="x"), b.input(name="unused")
        f = b.node("f", [x], phase="forward")
        y = b.output(f, name="y")
        view = b.node("view", [y], phase="forward")
        z = b.output(view, name="z", storage=y)
        if name == "one":
            g = b.node("g", [z, z, -1], phase="backward")
            w = b.output(g, name="w", storage=y)
            b.link("grad", view, g)
            b.outputs.append(w)
        assert unused == 1
        stages.append(
            Stage(
                name,
                b.freeze(),
                after=len(stages) - 1 if stages else None,
            )
        )
    link = StageLink(0, 1, "lowers", frozen([0, 1]), frozen([0, 1]), "name")
    tables = {
        "nodes": Table(0, "node", frozen([0, 2]), {"time": column(np.array([1.0, 2.0])), "word": column(["a", "b"])}),
        "values": Table(1, "value", frozen([2]), {"mean": column(np.array([5.0]))}),
    }
    capture = Capture(pools, stages, [link], tables)
    for number in range(len(stages)):
        add_listings(capture, number, {"t": Listing("a\nb", [(1, 0), (2, 1)])})
    return capture


def test_stages_tables_links_and_storages():
    capture = small()
    part = only_phases(capture, ["backward"])
    verify_capture(part)
    assert [stage.name for stage in part.stages] == ["one"]
    assert part.stage_links == []
    assert [(value.name, value.producer is None) for value in part.graph.values] == [
        ("unused", True), ("z", True), ("w", False),
    ]  # fmt: skip
    assert [value.storage.name for value in part.graph.values] == ["unused", "z", "z"]
    assert [value.name for value in (part.graph.value(i) for i in part.graph.outputs.tolist())] == ["w"]
    assert [part.graph.value(i).name for i in part.graph.inputs.tolist()] == ["unused"]
    assert list(part.tables) == ["nodes", "lines"]
    assert part.tables["nodes"].index.tolist() == [0]
    assert part.tables["nodes"].columns["word"].values == ["b"]
    assert part.graph.links_of("grad").source.size == 0
    assert part.stages[0].listings == {"t": "a\nb"}
    assert lines_of(part, 0, "t") == []
    assert part.warnings == ["only backward: 4 of 5 operators, of other phases, were left out"]

    part = only_phases(capture, ["forward"])
    verify_capture(part)
    assert [stage.after for stage in part.stages] == [None, 0]
    assert part.stage_links[0].source.tolist() == [0, 1]
    assert [part.graph.value(i).name for i in part.graph.outputs.tolist()] == ["z"]  # it is not read any more


@pytest.mark.parametrize(
    ("phase", "words"),
    [("sideways", "'sideways' is not a phase"), ("recompute", r"phase recompute \(there are: forward, backward\)")],
)
def test_phases_that_are_not_there(phase: str, words: str):
    with pytest.raises(opscope.OpscopeError, match=words):
        only_phases(small(), [phase])
