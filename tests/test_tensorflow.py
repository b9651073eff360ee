"""TensorFlow's graphs and TensorFlow Lite's models, without TensorFlow."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

import golden
import opscope
from conftest import DATA
from opscope.analysis.values import value_figures
from opscope.readers.tensorflow.schema import SCHEMA
from opscope.readers.tensorflow.shapes import inferred
from opscope.readers.tensorflow.text import parse

FILES = DATA / "tensorflow"
CONV = 2 * 4 * 4 * 8 * (3 * 3 * 4)
LAST = 2 * 8 * 5
STRIDED = {"strides": [1, 2, 2, 1]}


@pytest.mark.parametrize("name", ["frozen.pb", "frozen.pbtxt", "net.tflite", "quantized.tflite"])
def test_files_are_read_as_before(name: str, overwrite: bool) -> None:
    golden.check(FILES / name, f"tensorflow/{name}.txt", overwrite)


def test_a_saved_model_is_a_folder_and_its_signatures_are_stages() -> None:
    capture = opscope.open(FILES / "saved")
    assert [stage.name for stage in capture.stages] == ["serving_default"]
    graph = capture.graph
    assert not any("PartitionedCall" in node.op for node in graph.nodes)  # what they call stands in their place
    (branches,) = (node for node in graph.nodes if node.op == "StatelessIf")
    assert [body.label for body in graph.bodies_by_node[branches.index]] == ["then_branch", "else_branch"]
    assert capture.stats().total.macs == CONV + LAST
    assert {value.name for value in graph.values if value.role == "parameter"} == {"kernel", "bias", "fc"}


def test_text_and_bytes_are_the_same_graph() -> None:
    one, other = opscope.open(FILES / "frozen.pb"), opscope.open(FILES / "frozen.pbtxt")
    assert opscope.diff(one.graph, other.graph).is_empty


def test_rings_of_a_frozen_loop_are_closed() -> None:
    capture = opscope.open(FILES / "frozen.pb")
    assert not any("nothing makes" in text for text in capture.all_warnings())
    graph = capture.graph
    (merge,) = (node for node in graph.nodes if node.name == "while/merge/_14")
    assert None not in merge.inputs


@pytest.mark.parametrize(("name", "macs"), [("net.tflite", CONV + LAST), ("quantized.tflite", CONV + LAST)])
def test_costs_of_tensorflow_lite(name: str, macs: int) -> None:
    assert opscope.open(FILES / name).stats().total.macs == macs


def test_quantization_is_told_by_value() -> None:
    capture = opscope.open(FILES / "quantized.tflite", weights=True)
    table = capture.tables["quantization"]
    by_name = {capture.graph.value(int(v)).name: row for row, v in enumerate(table.index)}
    row = by_name["conv/Conv2D"]
    assert table.columns["scales"].values[row] == 8
    assert table.columns["zero point"].values[by_name["Mean"]] == -128
    assert value_figures(capture, 0)["max"].known.any()


def test_files_that_are_packed(tmp_path: Path) -> None:
    packed = tmp_path / "net.tflite.gz"
    packed.write_bytes(gzip.compress((FILES / "net.tflite").read_bytes()))
    assert opscope.open(packed).graph.n_nodes == 7
    shutil.make_archive(str(tmp_path / "saved"), "zip", FILES, "saved")
    assert opscope.open(tmp_path / "saved.zip").stages[0].name == "serving_default"
    shutil.make_archive(str(tmp_path / "saved"), "tar", FILES, "saved")
    assert opscope.open(tmp_path / "saved.tar").stages[0].name == "serving_default"


@pytest.mark.parametrize(
    ("op", "shapes", "values", "attrs", "expected"),
    [
        ("Conv2D", [(1, 9, 9, 3), (3, 3, 3, 8)], [None, None], STRIDED | {"padding": "SAME"}, (1, 5, 5, 8)),
        ("Conv2D", [(1, 9, 9, 3), (3, 3, 3, 8)], [None, None], {"padding": "VALID"}, (1, 7, 7, 8)),
        ("DepthwiseConv2dNative", [(1, 9, 9, 3), (3, 3, 3, 2)], [None, None], {"padding": "SAME"}, (1, 9, 9, 6)),
        ("MaxPool", [(1, 8, 8, 3)], [None], STRIDED | {"padding": "VALID", "ksize": [1, 2, 2, 1]}, (1, 4, 4, 3)),
        ("MatMul", [(4, 2), (3, 4)], [None, None], {"transpose_a": True, "transpose_b": True}, (2, 3)),
        ("BatchMatMulV2", [(5, 1, 2, 3), (6, 3, 4)], [None, None], {}, (5, 6, 2, 4)),
        ("Mean", [(2, 3, 4), None], [None, [1, -1]], {"keep_dims": True}, (2, 1, 1)),
        ("Reshape", [(2, 3, 4), None], [None, [-1, 6]], {}, (4, 6)),
        ("ConcatV2", [(2, 3), (2, 4), ()], [None, None, 1], {}, (2, 7)),
        ("AddV2", [(2, 1, None), (5, 1)], [None, None], {}, (2, 5, None)),
        ("Conv2D", [None, (3, 3, 3, 8)], [None, None], {"padding": "SAME"}, None),
        ("Transpose", [(2, 3), (2,)], [None, [5, 6]], {}, None),
    ],
)  # fmt: skip
def test_shapes_that_follow(op: str, shapes: list, values: list, attrs: dict, expected: tuple | None) -> None:
    assert inferred(op, shapes, values, attrs) == expected


def test_text_of_protocol_buffers() -> None:
    found = parse(
        'node { name: "a\\tb\\303\\251" op: \'Add\' input: ["x", "y:1"] # so\n'
        ' attr < key: "T" value { type: DT_HALF } >; future { deep { x: 1 } } } versions { producer: 0x10 }',
        SCHEMA,
        "GraphDef",
    )
    assert found["node"][0]["name"] == "a\tbé"
    assert found["node"][0]["input"] == ["x", "y:1"]
    assert found["node"][0]["attr"] == [{"key": "T", "value": {"type": 19}}]
    assert found["versions"] == {"producer": 16}


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x.pbtxt", b'node { name: "a" op: "b"', "cut off or damaged"),
        ("x.pbtxt", b"node { name: 'a' \x01 }", "is no part of a text protocol buffer"),
        ("x.tflite", b"\xff\xff\xff\x7fTFL3" + bytes(30), "leads out of the file"),
    ],
)
def test_damage_is_said_in_one_line(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(opscope.BadInput, match=words):
        opscope.open(path)
