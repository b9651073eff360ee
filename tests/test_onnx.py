"""ONNX models without ONNX: goldens of real files, bodies, roles, modules, times, and files that lie."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

import golden
import opscope
from conftest import DATA
from opscope.readers import protobuf
from opscope.readers.pages import Whole

FILES = DATA / "onnx"


@pytest.mark.parametrize("name", ["mobile", "mobile-quantized", "attention-fused", "attention-old", "bodies", "kinds"])
def test_files_are_read_as_before(name: str, overwrite: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.readers.onnx.infer._inferred", lambda *_: None)  # where onnx is installed
    golden.check(FILES / f"{name}.onnx", f"onnx/{name}.txt", overwrite)


def test_nodes_have_modules_and_lines_of_the_program_that_was_exported() -> None:
    capture = opscope.open(FILES / "mobile.onnx")
    conv = next(node for node in capture.graph.nodes if node.name == "node_conv2d")
    assert conv.path == "expand"
    assert conv.scopes[-1].cls == "Conv2d"
    assert [Path(frame.file).name for frame in conv.frames] == ["models.py", "conv.py"]
    assert conv.attrs["exported from"] == "conv2d = aten.conv2d"
    assert capture.stats().total.macs == 117_888
    assert not capture.all_warnings()


def test_a_body_is_bound_to_what_it_reads_outside() -> None:
    graph = opscope.open(FILES / "bodies.onnx").graph
    loop = next(node for node in graph.nodes if node.op == "Loop")
    (body,) = graph.bodies_by_node[loop.index]
    bound = {body.graph.value(inside).name: graph.value(outside).name for inside, outside in body.bindings}
    assert bound == {"h": "chosen", "scaled": "scaled", "weight": "weight"}
    (call,) = (node for node in graph.nodes if node.op == "local.twice")
    (function,) = graph.bodies_by_node[call.index]
    assert [node.op for node in function.graph.nodes] == ["local.product", "Constant", "Mul"]
    assert function.graph.node(1).attrs == {"value_float": "@factor"}


def test_operators_of_a_vendor_are_listed_as_unknown() -> None:
    capture = opscope.open(FILES / "bodies.onnx", sizes={"N": 8})
    assert capture.stats().to_dict()["total"]["unknown_ops"]["vendor.ops.Special"] == 1


def test_times_of_onnx_runtime_stand_on_the_operators() -> None:
    capture = opscope.open(FILES / "attention-fused.onnx", profile=FILES / "attention-fused.profile.json")
    (times,) = capture.facts("times", 0)
    assert len(times.index) == capture.graph.n_nodes == 45
    assert set(times.columns["runs"].values.tolist()) == {2}
    (coverage,) = capture.facts("profile", 0)
    assert coverage.columns["evidence"].values == ["by name"]
    assert coverage.columns["kernels"].values.tolist() == [45]


def test_a_profile_of_another_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(opscope.BadInput, match="a profile of another model: none of its 45 operators"):
        opscope.open(FILES / "bodies.onnx", profile=FILES / "attention-fused.profile.json")
    capture = opscope.open(FILES / "attention.onnx", profile=FILES / "attention-fused.profile.json")
    assert "operators of the profile are not in this model" in " ".join(capture.warnings)
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{"cat": "Node", "name": "x_fence_before", "dur": 3}]))
    with pytest.raises(opscope.BadInput, match="not a profile of ONNX Runtime"):
        opscope.open(FILES / "bodies.onnx", profile=other)
    with pytest.raises(opscope.BadInput, match="a profile of ONNX Runtime: open the model that it ran"):
        opscope.open(FILES / "attention-fused.profile.json")


def test_the_optimized_form_of_onnx_runtime_names_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "model.ort"
    path.write_bytes(b"\x18\0\0\0ORTM" + bytes(40))
    with pytest.raises(opscope.BadInput, match=r"an ONNX Runtime model: .*optimized_model_filepath"):
        opscope.open(path)


# -- made by hand -------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes | int | str) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content & (1 << 64) - 1)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(op: str, inputs: str, outputs: str, *more: bytes) -> bytes:
    listed = b"".join(field(1, name) for name in inputs.split()) + b"".join(field(2, name) for name in outputs.split())
    return field(1, listed + field(4, op) + b"".join(more))


def model(graph: bytes, *more: bytes) -> bytes:
    return field(1, 8) + field(2, "tests") + field(7, graph) + field(8, field(2, 21)) + b"".join(more)


def read(tmp_path: Path, data: bytes) -> opscope.Capture:
    path = tmp_path / "made.onnx"
    path.write_bytes(data)
    return opscope.open(path)


def test_weights_are_passed_over(tmp_path: Path) -> None:
    """Three gigabytes of zeros that are not on the disk either."""
    size = 3 << 30
    tensor = field(1, 1 << 15) + field(1, 24576) + field(2, 1) + field(8, "w")
    graph = node("MatMul", "x w", "y")
    inside = len(tensor) + 1 + len(varint(size)) + size
    around = len(graph) + 1 + len(varint(inside)) + inside
    begin = field(1, 8) + varint(7 << 3 | 2) + varint(around) + graph + varint(5 << 3 | 2) + varint(inside) + tensor
    begin += varint(9 << 3 | 2) + varint(size)
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.write(begin)
        file.seek(len(begin) + size)
        file.write(field(8, field(2, 21)))
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    graph_read = opscope.open(path).graph
    assert [value.name for value in graph_read.node(0).inputs if value] == ["x", "w"] or graph_read.n_nodes == 1
    assert graph_read.value(0).type.shape == (32768, 24576)
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_names_that_come_twice_or_never(tmp_path: Path) -> None:
    graph = node("Relu", "nowhere", "a") + node("Neg", "a", "a") + field(11, field(1, "x"))
    capture = read(tmp_path, model(graph))
    assert any("1 inputs name values that nothing makes" in text for text in capture.all_warnings())
    assert any("1 values have the name of an earlier one" in text for text in capture.all_warnings())


def test_functions_that_call_themselves_end(tmp_path: Path) -> None:
    call = node("f", "x", "y", field(7, "d"))
    function = field(1, "f") + field(4, "x") + field(5, "y") + field(7, call[2:]) + field(10, "d")
    capture = read(tmp_path, model(call + field(11, field(1, "x")), field(25, function)))
    assert len(capture.graph.bodies) == 1


def test_functions_that_double_are_refused(tmp_path: Path) -> None:
    """Thirty functions of which each calls the next one twice: a billion operators in two kilobytes."""
    functions = b""
    for i in range(30):
        calls = b"".join(field(7, node(f"f{i + 1}", "x", "y", field(7, "d"))[2:]) for _ in range(2))
        functions += field(25, field(1, f"f{i}") + field(4, "x") + field(5, "y") + calls + field(10, "d"))
    with pytest.raises(opscope.BadInput, match="functions that call functions: more than 30,000 calls"):
        read(tmp_path, model(node("f0", "x", "y", field(7, "d")) + field(11, field(1, "x")), functions))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (model(b"\x0a\xff\xff\xff\xff\x7f"), "bytes are announced"),
        (model(b"\x0b"), "a field of kind 3"),
        (model(b"\x08" + b"\xff" * 11), "a number of more than 64 bits"),
        (model(b"\x0d\x01"), "in the middle of a number"),
        (field(1, 8) + field(8, field(2, 21)), "it has no graph"),
    ],
)
def test_damage_is_said_in_one_line(data: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(opscope.BadInput, match=rf"made\.onnx: not a readable ONNX model: .*{words}"):
        read(tmp_path, data)


def test_messages_in_messages_end() -> None:
    schema = protobuf.Schema("A a=1:A")
    data = b""
    for _ in range(200):
        data = field(1, data)
    with pytest.raises(opscope.BadInput, match="messages in messages, more than 100"):
        protobuf.Reader(Whole(data), schema).message("A", 0, len(data))


def test_numbers_of_every_kind() -> None:
    schema = protobuf.Schema("A i=1:int u=2:uint f=3:float* d=4:double s=5:string* b=6:bytes skipped=7:span p=8:int*")
    data = field(1, -3) + field(2, 7) + field(3, struct.pack("<2f", 1, 2)) + b"\x1d" + struct.pack("<f", 3)
    data += b"\x21" + struct.pack("<d", 0.5) + field(5, "é") + field(5, "z") + field(6, b"\0\1") + field(7, b"long")
    data += field(8, b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") + field(99, b"unknown")
    reader = protobuf.Reader(Whole(data), schema)
    found = reader.message("A", 0, len(data))
    assert reader.read(found.pop("skipped")) == b"long"
    assert found == {
        "i": -3, "u": 7, "f": [1.0, 2.0, 3.0], "d": 0.5, "s": ["é", "z"], "b": b"\0\1", "p": [1, -1],
    }  # fmt: skip
