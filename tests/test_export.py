"""Drawings and tables: right in content, valid for the tools that read them."""

from __future__ import annotations

import gzip
import importlib
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pydot
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opscope
from conftest import DATA
from opscope.analysis.collapse import collapse, readable
from opscope.export import dot, mermaid, registry
from opscope.ir import Capture, Graph, GraphBuilder, Pools
from opscope.opening import from_bytes
from strategies import captures

JITTOR = DATA / "jittor"


@pytest.fixture(scope="module")
def train() -> opscope.Capture:
    return opscope.open(JITTOR / "resnet_train.pkl")


def test_collapsing_loses_no_node_and_no_edge(train: opscope.Capture) -> None:
    graph = train.graph
    whole = collapse(graph, 99)
    for depth in (1, 2, 3):
        drawn = collapse(graph, depth)
        assert sum(box.nodes for box in drawn.boxes) == graph.n_nodes
        inside = graph.n_edges - sum(n for *_, n in drawn.edges)
        assert 0 < inside <= graph.n_edges
        assert len(drawn.boxes) <= len(whole.boxes)
    names = {graph.pools.scope_path(box.scope) for box in collapse(graph, 2).boxes if box.phase == "forward"}
    assert {"resnet18/conv1", "resnet18/layer1", "resnet18/fc"} <= names


def test_a_readable_drawing_is_small(train: opscope.Capture) -> None:
    drawn = readable(train.graph)
    assert 10 < len(drawn.boxes) <= 40
    assert drawn.depth >= 2


def test_mermaid_shows_the_modules(train: opscope.Capture, tmp_path: Path) -> None:
    out = tmp_path / "train.mmd"
    train.save(out)
    text = out.read_text(encoding="utf-8")
    assert text.startswith("flowchart TD\n")
    assert "resnet18/layer1/0 <i>BasicBlock</i>" in text
    assert text.count(" --> ") + text.count(" -->|") < 300
    boxes = set(re.findall(r"^    (b\d+)\[", text, re.MULTILINE))
    ends = set(re.findall(r"\bb\d+\b", "\n".join(line for line in text.splitlines() if "-->" in line)))
    assert ends <= boxes


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(captures())
def test_drawings_of_anything_are_well_formed(capture: Capture) -> None:
    for stage in capture.stages:
        check_mermaid(stage.graph)
        lines = [*dot._whole(stage.graph), *dot._boxes(stage.graph, 1)]  # pyright: ignore[reportPrivateUsage]
        for line in lines:
            unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
            assert '"' not in unquoted, line
        assert sum(line.count("{") - line.count("}") for line in map(_outside_quotes, lines)) == 0


def _outside_quotes(line: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', "", line)


def check_mermaid(graph: Graph) -> None:
    for line in mermaid.render(graph).splitlines():
        label = re.fullmatch(r'    b\d+\["([^"]*)"\]:::\w+', line)
        if line.startswith("    b"):
            assert label is not None, line
            assert not re.search(r"<(?!/?i>|br/>)", label[1]), line


def test_dot_is_what_graphviz_reads(train: opscope.Capture, tmp_path: Path) -> None:
    simple = opscope.open(JITTOR / "simple_model_train.pkl")
    simple.save(tmp_path / "simple.dot")
    (graph,) = pydot.graph_from_dot_file(tmp_path / "simple.dot", encoding="utf-8") or []
    clusters = {cluster.get_label() for cluster in _clusters(graph)}
    assert {'"model (Model)"', '"linear1 (Linear)"', '"opt (SGD)"'} <= clusters
    assert len(graph.get_edges()) == 137 + 14  # uses, and the dotted pairs of gradients
    train.save(tmp_path / "train.dot", depth=2)
    (small,) = pydot.graph_from_dot_file(tmp_path / "train.dot", encoding="utf-8") or []
    assert len([node for node in small.get_nodes() if node.get_name().startswith("b")]) == len(
        collapse(train.graph, 2).boxes
    )


def _clusters(graph: pydot.Graph) -> list[pydot.Subgraph]:
    inner = graph.get_subgraphs()
    return inner + [deeper for cluster in inner for deeper in _clusters(cluster)]


def test_an_unknown_ending_lists_the_known_ones(train: opscope.Capture) -> None:
    with pytest.raises(opscope.OpscopeError, match=r"cannot write \.xyz \(it writes \.opscope, ") as refused:
        train.save("x.xyz")
    assert str(refused.value).endswith(f"{', '.join(registry.endings())})")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([".dot"], "a plugin has an exporter of .dot, which opscope writes itself"),
        ([".xyz", ".xyz"], "two plugins have an exporter of .xyz"),
        (["xyz"], "the exporter 'xyz' of a plugin is not named by an ending"),
    ],
)
def test_an_exporter_plugin_has_an_ending_of_its_own(
    names: list[str], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entries = [EntryPoint(name, "some.module", registry.GROUP) for name in names]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    with pytest.raises(opscope.OpscopeError, match=re.escape(words)):
        opscope.open(JITTOR / "simple_model.pkl").save(tmp_path / "graph.xyz")


@pytest.mark.parametrize("ending", registry.BUILT_IN)
def test_every_ending_has_an_exporter(ending: str) -> None:
    assert callable(importlib.import_module(registry.BUILT_IN[ending]).export)


def test_a_box_is_split_where_a_module_is_left_and_entered_again():
    """A default .mge dump has names for some operators only. Drawn by modules, it stays a chain."""
    data = gzip.decompress((DATA / "megengine" / "resnet18_w8.default.mge.gz").read_bytes())
    found = from_bytes("resnet18.mge", data)
    assert any("28 of 53 operators have lost that of their module" in text for text in found.all_warnings())
    graph = found.graph
    for depth in (1, 2, 3):
        drawn = collapse(graph, depth)
        assert sum(box.nodes for box in drawn.boxes) == graph.n_nodes
        assert is_acyclic(len(drawn.boxes), drawn.edges), depth
    names = [graph.pools.scope_path(box.scope) for box in collapse(graph, 1).boxes]
    assert [name for name in names if name] == ["maxpool", "layer1", "layer2", "layer3", "layer4", "fc"]
    assert names.count("") == 7


@given(st.data())
def test_a_drawing_by_modules_has_no_cycle(data: st.DataObject):
    pools = Pools()
    b = GraphBuilder(pools)
    scopes = [0]
    for name in "abcd":
        scopes.append(pools.scope(data.draw(st.sampled_from(scopes)), name, "M"))
    values = [b.input()]
    for _ in range(data.draw(st.integers(1, 40))):
        read = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
        values.append(b.output(b.node("op", read, scope=data.draw(st.sampled_from(scopes)), phase="forward")))
    graph = b.freeze()
    for depth in (1, 2, 5):
        drawn = collapse(graph, depth)
        assert sum(box.nodes for box in drawn.boxes) == graph.n_nodes
        assert is_acyclic(len(drawn.boxes), drawn.edges)


def is_acyclic(count: int, edges: list[tuple[int, int, int]]) -> bool:
    waiting = [sum(target == box for _, target, _ in edges) for box in range(count)]
    todo = [box for box in range(count) if not waiting[box]]
    for box in todo:
        for source, target, _ in edges:
            if source == box:
                waiting[target] -= 1
                if not waiting[target]:
                    todo.append(target)
    return len(todo) == count
