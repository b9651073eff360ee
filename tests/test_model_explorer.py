"""Model Explorer's JSON, in and out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import opscope
from conftest import DATA
from effort import lines_run
from golden import round_trip
from opscope.export import model_explorer
from opscope.export.registry import Options
from opscope.ir import Capture, verify_capture
from opscope.ir.text import dump
from opscope.opening import from_bytes
from opscope.readers.model_explorer.texts import parse_type
from strategies import captures

JITTOR = DATA / "jittor"

# As other tools write it: attributes are text, some things are left out, edges name outputs by id.
FILE: dict[str, Any] = {
    "label": "m",
    "graphs": [
        {
            "id": "main",
            "nodes": [
                {"id": "x", "label": "input", "namespace": ""},
                {
                    "id": "split",
                    "label": "split",
                    "namespace": "net/block",
                    "attrs": [{"key": "axis", "value": "1"}],
                    "incomingEdges": [{"sourceNodeId": "x"}],
                    "outputsMetadata": [
                        {"id": "0", "attrs": [{"key": "tensor_shape", "value": "float32[1,4]"}]},
                        {
                            "id": "1",
                            "attrs": [
                                {"key": "tensor_shape", "value": "tensor<1x?xf16>"},
                                {"key": "tensor_name", "value": "right"},
                                {"key": "quantization", "value": "none"},
                            ],
                        },
                    ],
                    "style": {"backgroundColor": "red"},
                },
                {
                    "id": "add",
                    "label": "add",
                    "namespace": "net",
                    "subgraphIds": ["inner"],
                    "incomingEdges": [
                        {"sourceNodeId": "split", "sourceNodeOutputId": "1", "targetNodeInputId": "1"},
                        {"sourceNodeId": "split", "sourceNodeOutputId": "0", "targetNodeInputId": "0"},
                        {"sourceNodeId": "gone", "sourceNodeOutputId": "0", "targetNodeInputId": "2"},
                    ],
                },
            ],
            "groupNodeAttributes": {"": {"made by": "us"}, "net": {"params": "12", "kind": "Block"}},
        },
        {"id": "inner", "nodes": [{"id": "i", "label": "mul", "namespace": ""}]},
    ],
}


def opened(data: Any) -> opscope.Capture:
    capture = from_bytes("x.json", json.dumps(data).encode())
    verify_capture(capture)
    assert dump(round_trip(capture)) == dump(capture)
    return capture


def exported(capture: Capture, folder: Path) -> bytes:
    path = folder / "out.json"
    model_explorer.export(capture, path, Options())
    return path.read_bytes()


def test_reading() -> None:
    capture = opened(FILE)
    assert capture.origin.format == "model-explorer"
    (stage,) = capture.stages
    assert stage.name == "main"
    x, split, add = stage.graph.nodes
    assert [node.op for node in (x, split, add)] == ["input", "split", "add"]
    assert [node.name for node in (x, split, add)] == ["x", "split", "add"]
    assert split.path == "net/block"
    assert [str(value.type) for value in split.outputs] == ["float32[1,4]", "f16[1,?]"]
    assert split.outputs[1].name == "right"
    assert split.attrs["axis"] == "1"
    assert split.attrs["modelExplorer"] == {
        "style": {"backgroundColor": "red"},
        "outputs": {"1": {"quantization": "none"}},
    }
    assert add.inputs == [split.outputs[0], split.outputs[1], None]
    assert [(body.label, [node.op for node in body.graph.nodes]) for body in add.bodies] == [("inner", ["mul"])]
    assert "1 edges come from nodes or outputs that do not exist" in capture.warnings[0]
    table = capture.tables["group attributes"]
    paths = [capture.pools.scope_path(int(scope)) for scope in table.index]
    assert list(zip(paths, table.columns["key"].values, table.columns["value"].values, strict=True)) == [
        ("", "made by", "us"),
        ("net", "params", "12"),
        ("net", "kind", "Block"),
    ]


def test_collections_are_stages_and_order_is_execution_order() -> None:
    graph = {"id": "g", "nodes": [{"id": "b", "incomingEdges": [{"sourceNodeId": "a"}]}, {"id": "a", "label": "first"}]}
    capture = opened({"graphCollections": [{"label": "one", "graphs": [graph, graph]}, {"graphs": [graph]}]})
    assert [stage.name for stage in capture.stages] == ["one/g", "one/g (2)", "g"]
    assert [node.name for node in capture.graph.nodes] == ["a", "b"]
    assert opened([graph]).graph.n_nodes == 2
    assert opened(graph).graph.n_nodes == 2
    cycle = {"id": "g", "nodes": [{"id": i, "incomingEdges": [{"sourceNodeId": 1 - i}]} for i in (0, 1)]}
    assert "it has a cycle" in opened({"graphs": [cycle]}).warnings[0]


def test_bodies_named_twice_or_in_themselves_stay_stages() -> None:
    node = {"id": "n", "subgraphIds": ["b"]}
    twice = {"graphs": [{"id": "a", "nodes": [node, {**node, "id": "m"}]}, {"id": "b", "nodes": []}]}
    capture = opened(twice)
    assert [stage.name for stage in capture.stages] == ["a", "b"]
    assert capture.graph.node(0).attrs == {"modelExplorer": {"subgraphIds": ["b"]}}
    assert len(opened({"graphs": [{"id": "b", "nodes": [node]}]}).stages) == 1
    deep = [{"id": str(i), "nodes": [{"id": "n", "subgraphIds": [str(i + 1)]}]} for i in range(500)]
    assert len(opened({"graphs": deep}).stages) > 1


@pytest.mark.parametrize("name", ["simple_model_train.pkl", "resnet_train.pkl"])
def test_there_and_back(name: str, tmp_path: Path) -> None:
    before = opscope.open(JITTOR / name)
    before.save(tmp_path / "graph.json")
    after = opscope.open(tmp_path / "graph.json")
    assert [stage.name for stage in after.stages] == [stage.name for stage in before.stages]
    a, b = before.graph, after.graph
    assert (a.n_nodes, a.n_values, a.n_edges) == (b.n_nodes, b.n_values, b.n_edges)
    for x, y in zip(a.nodes, b.nodes, strict=True):
        assert (x.op, x.name, x.phase, x.path, x.scopes[-1:]) == (y.op, y.name, y.phase, y.path, y.scopes[-1:])
        assert x.attrs == y.attrs
        assert x.frames[-1:] == y.frames
        assert [(v.type, v.name, v.role) for v in x.outputs] == [(v.type, v.name, v.role) for v in y.outputs]
        assert [u.arg for u in x.uses] == [u.arg for u in y.uses]
        assert [v and (v.producer and v.producer.index, v.slot) for v in x.inputs] == [
            v and (v.producer and v.producer.index, v.slot) for v in y.inputs
        ]
    assert [a.value(int(v)).name for v in a.inputs] == [b.value(int(v)).name for v in b.inputs]
    assert len(a.outputs) == len(b.outputs)
    before_kernels, after_kernels = a.groups["kernel"], b.groups["kernel"]
    assert len(before_kernels) == len(after_kernels)
    for i in range(len(before_kernels)):
        assert a.pools.strings[int(before_kernels.name[i])] == b.pools.strings[int(after_kernels.name[i])]
        assert set(before_kernels.members(i).tolist()) == set(after_kernels.members(i).tolist())
    # Written and read once more, nothing changes any more.
    after.save(tmp_path / "again.json")
    again = opscope.open(tmp_path / "again.json")
    assert dump(again) == dump(after)


def test_what_is_written_is_the_schema(tmp_path: Path) -> None:
    opscope.open(JITTOR / "simple_model_train.pkl").save(tmp_path / "graph.json")
    data = json.loads((tmp_path / "graph.json").read_text())
    (graph,) = data["graphs"]
    ids = [node["id"] for node in graph["nodes"]]
    assert len(set(ids)) == len(ids)
    outputs = {node["id"]: {meta["id"] for meta in node.get("outputsMetadata", ())} for node in graph["nodes"]}
    for node in graph["nodes"]:
        assert {"id", "label", "namespace"} <= set(node)
        assert all(set(pair) == {"key", "value"} and isinstance(pair["value"], str) for pair in node["attrs"])
        for edge in node.get("incomingEdges", ()):
            assert edge["sourceNodeOutputId"] in outputs[edge["sourceNodeId"]]
            assert all(isinstance(value, str) for value in edge.values())
    assert graph["groupNodeAttributes"]["model"] == {"class": "Model"}


def test_ids_of_others_survive(tmp_path: Path) -> None:
    capture = opened(FILE)
    again = json.loads(exported(capture, tmp_path))
    assert [node["id"] for node in again["graphs"][0]["nodes"]] == ["x", "split", "add"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(captures())
def test_any_capture_is_written_and_read(tmp_path_factory: pytest.TempPathFactory, capture: Capture) -> None:
    if not capture.stages:
        return
    again = from_bytes("x.json", exported(capture, tmp_path_factory.mktemp("me")))
    verify_capture(again)
    before, after = capture.stages[0].graph, again.stages[0].graph
    assert (before.n_nodes, before.n_values, before.n_edges) == (after.n_nodes, after.n_values, after.n_edges)
    assert sorted(node.op for node in before.nodes) == sorted(node.op for node in after.nodes)
    dump(again)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float32[1,3]", ("float32", [1, 3])),
        ("[1, 3]", ("", [1, 3])),
        ("(1, 3) f32", ("f32", [1, 3])),
        ("(1,)", ("", [1])),
        ("[]", ("", [])),
        ("int64[]", ("int64", [])),
        ("?[s0,?]", ("", ["s0", None])),
        ("bf16[-1,4]", ("bf16", [None, 4])),
        ("float32[…]", ("float32", None)),
        ("tensor<f32>", ("f32", [])),
        ("tensor<1x3xbf16>", ("bf16", [1, 3])),
        ("1x3x224", ("", [1, 3, 224])),
        ("", None),
        ("((1, 2), (3, 4))", None),
        ("what", None),
        ("[" + "1," * 2000 + "1]", None),
    ],
)
def test_types(text: str, expected: Any) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"graphs": [', "bad JSON"),
        (b'{"graphs": [\xff]}', "byte 12 is not UTF-8"),
        (b'{"graphs": []}', "it has no graph"),
        (json.dumps({"graphs": [{}] * 10_001}).encode(), "it has 10,001 graphs; 10,000 are the most"),
        (b'{"graphs": [3]}', "graphs: entry 0 is not an object but int"),
        (b'{"graphs": [{"id": "g", "nodes": {}}]}', "nodes of graph 'g' is not a list but dict"),
        (b'{"graphs": [{"id": "g", "nodes": [{"label": "x"}]}]}', "graph 'g', node 0 has no id"),
        (b'{"graphs": [{"id": "g", "nodes": [{"id": "x"}, {"id": "x"}]}]}', "two nodes have the id 'x'"),
        (b'{"graphs": [{"nodes": [{"id": "x", "attrs": ["y"]}]}]}', "attrs: entry 0 is not an object but str"),
        (b'{"x": {"graphs": [ ]}}', "no 'graphs' and no 'graphCollections' in it (found: 'x')"),
        (b'{"graphs": ' + b"[" * 200_000, "nested too deep"),
    ],
)
def test_bad_files_give_one_clear_error(data: bytes, words: str) -> None:
    with pytest.raises(opscope.BadInput) as error:
        from_bytes("x.json", data)
    assert words in str(error.value)
    assert str(error.value).startswith("x.json: not a Model Explorer graph: ")
    assert "\n" not in str(error.value)


# Files of a size, each of a kind that a careless reader takes quadratic time for.
HOSTILE: dict[str, Callable[[int], Any]] = {
    "same ids": lambda n: [{"id": "a"}] * n,
    "a deep namespace": lambda n: [{"nodes": [{"id": str(i), "namespace": "a/" * 10 * n} for i in range(5)]}],
    "high outputs": lambda n: [
        {"nodes": [{"id": i, "incomingEdges": [{"sourceNodeId": i, "sourceNodeOutputId": "999"}]} for i in range(n)]}
    ],
    "many groups": lambda n: [{"groupNodeAttributes": {f"g{i}": {f"k{i}": "v"} for i in range(n)}}],
    "many owners": lambda n: [{"id": i, "nodes": [{"id": 0, "subgraphIds": [i + 1]}]} for i in range(n)],
    "many edges": lambda n: [{"nodes": [{"id": 0, "incomingEdges": [{"sourceNodeId": 0}] * 10 * n}]}],
}


def hostile(name: str, size: int) -> Capture:
    capture = from_bytes("x.json", json.dumps({"graphs": HOSTILE[name](size)}).encode())
    verify_capture(capture)
    return capture


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_of_twice_the_size_are_twice_the_work(name: str) -> None:
    hostile(name, 10)  # what is only done once
    assert lines_run(lambda: hostile(name, 800)) < 2.1 * lines_run(lambda: hostile(name, 400))


@pytest.mark.parametrize("name", HOSTILE)
def test_large_hostile_files_are_read(name: str) -> None:
    capture = hostile(name, 5_000)
    if len(capture.stages) < 100:
        assert round_trip(capture).stages


@pytest.mark.parametrize(
    "graph",
    [
        {"id": "\ud800</script>", "nodes": [{"id": "\u202e", "label": "x" * 100_000}]},
        {"groupNodeAttributes": {"\ud800": {"\ud801": "\ud802"}}},
    ],
    ids=["nodes", "groups"],
)
def test_odd_texts(graph: dict[str, Any]) -> None:
    capture = from_bytes("x.json", json.dumps({"graphs": [graph]}).encode())
    verify_capture(capture)
    assert round_trip(capture).stages


def test_long_numbers_are_no_trouble() -> None:
    text = (
        '{"graphs": [{"id": "g", "nodes": [{"id": "x", "attrs": [{"key": "k", "value": ' + "9" * 1_000_000 + "}]}]}]}"
    )
    assert opened(json.loads('{"graphs":[{"id":"g"}]}')).graph.n_nodes == 0
    assert from_bytes("x.json", text.encode()).graph.node(0).attrs == {"k": "Infinity"}
