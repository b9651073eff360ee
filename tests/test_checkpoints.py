"""Weights without a graph: trees of tensors, their statistics, on a graph, and compared."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden
import opscope
from commands import good
from conftest import DATA
from opscope import checkpoints
from opscope.analysis.onto import onto
from opscope.analysis.values import value_figures
from opscope.readers import registry
from opscope.readers.source import Options, Source

FILES = DATA / "checkpoints"
TORCH = DATA / "torch"


@pytest.mark.parametrize("name", ["blocks.gguf", "small.safetensors", "training.ckpt"])
def test_files_are_read_as_before(name: str, overwrite: bool) -> None:
    golden.check(FILES / name, f"checkpoints/{name}.txt", overwrite)


@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("state_dict.pt", ["fc.weight", "fc.bias"]),
        ("state_dict_old.pt", ["fc.weight", "fc.bias"]),
        ("module.pt", None),
    ],
)
def test_checkpoints_of_pytorch_are_followed_and_not_run(name: str, tensors: list[str] | None) -> None:
    capture = opscope.open(TORCH / name, weights=True)
    found = [value.name for value in capture.graph.values]
    assert tensors is None or found == tensors
    assert "weights without a graph" in capture.warnings[0]
    assert all(figure.known.all() for figure in [value_figures(capture, 0)["norm"]])


def test_a_module_that_was_pickled_whole_says_its_classes() -> None:
    capture = opscope.open(TORCH / "module.pt")
    assert "classes that the file names, none of which was imported" in " ".join(capture.warnings)
    assert {scope.cls for node in capture.graph.nodes for scope in node.scopes} - {""}


def test_blocks_are_counted_in_bytes_and_numbers() -> None:
    capture = opscope.open(FILES / "blocks.gguf")
    by_name = {value.name.rpartition("attn_")[2] or value.name: value for value in capture.graph.values}
    assert str(by_name["q4_0.weight"].type) == "q4_0[2,64]"
    total = capture.stats().to_dict()["total"]
    assert total["params"] == 8 * 128 + 4 * 512
    sizes = 128 * 4 + 2 * 256 + sum(4 * n for n in (18, 20, 22, 24, 34)) + 2 * (144 + 176 + 210 + 84)
    assert total["param_bytes"] == sizes


def safetensors(**tensors: Any) -> bytes:
    header: dict[str, Any] = {}
    data = b""
    for name, array in tensors.items():
        kind = {"float32": "F32", "float16": "F16", "int64": "I64"}[str(array.dtype)]
        places = [len(data), len(data) + array.nbytes]
        header[name.replace("__", ".")] = {"dtype": kind, "shape": list(array.shape), "data_offsets": places}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_two_checkpoints(tmp_path: Path) -> None:
    ones = np.ones((3, 4), np.float32)
    before, after = tmp_path / "a.safetensors", tmp_path / "b.npz"
    before.write_bytes(safetensors(a__w=ones, b__w=ones, c=ones, gone=ones))
    np.savez(after, **{"a.w": ones, "b.w": ones * 2, "c": ones.astype(np.float16), "new": ones})
    found = checkpoints.diff(before, after)
    assert (found.before, found.after, found.same) == (4, 4, 1)
    kinds = {one.name: one for one in found.each}
    assert {name: one.kind for name, one in kinds.items()} == {
        "b.w": "changed", "c": "retyped", "gone": "removed", "new": "added",
    }  # fmt: skip
    assert kinds["b.w"].apart == pytest.approx(12**0.5)
    assert kinds["b.w"].relative == 1
    assert kinds["b.w"].most == 1
    text = good("diff", before, after)
    assert "1 retyped, 1 changed, 1 removed, 1 added, 1 same" in text
    assert json.loads(good("diff", before, after, "--json"))["summary"]["changed"] == 1


def test_weights_on_a_graph() -> None:
    graph = opscope.open(DATA / "onnx" / "mobile.onnx")
    tensors = {f"module/{v.name}".replace(".", "__"): v for v in graph.graph.values if v.role == "parameter"}
    held = safetensors(
        **{name: np.full(v.type.shape, i, np.float32) for i, (name, v) in enumerate(tensors.items())},
        other=np.ones(3, np.float32),
    )
    weights = opscope.Capture.of(registry.read(Source("w.safetensors", data=held), Options(weights=True)))
    shown = onto(graph, weights, "w.safetensors")
    figures = value_figures(shown, 0)["mean"]
    assert [figures.numbers[v.index] for v in tensors.values()] == list(range(len(tensors)))
    assert any("are no parameters here: other" in text for text in shown.warnings)
    with pytest.raises(opscope.BadInput, match="weights of another model"):
        onto(opscope.open(DATA / "onnx" / "bodies.onnx"), weights, "w.safetensors")


def test_an_index_names_what_lies_beside_it(tmp_path: Path) -> None:
    ones = np.ones((2, 2), np.float32)
    (tmp_path / "model-1.safetensors").write_bytes(safetensors(layers__10__w=ones, layers__2__w=ones))
    index = {"layers.2.w": "model-1.safetensors", "layers.10.w": "model-1.safetensors", "x": "model-2.safetensors"}
    index["y"] = "../secret.safetensors"
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": index}))
    capture = opscope.open(path)
    assert [value.name for value in capture.graph.values] == ["layers.2.w", "layers.10.w", "x", "y"]
    assert "2 of 3 files are not there" in " ".join(capture.warnings)


def test_pickles_of_arrays(tmp_path: Path) -> None:
    """As Paddle, MegEngine and Jittor write them."""
    weights = {"fc.weight": np.ones((40, 40), np.float32), "bn._mean": np.zeros(3), "n": np.arange(3, dtype=">i2")}
    for protocol in (2, 4):
        path = tmp_path / f"model{protocol}.pdparams"
        path.write_bytes(pickle.dumps({**weights, "StructuredToParameterName@@": {"fc.weight": "w_0"}}, protocol))
        capture = opscope.open(path, weights=True)
        assert [str(value.type) for value in capture.graph.values] == ["float32[40,40]", "float64[3]", "int16[3]"]
        assert [value.role for value in capture.graph.values] == ["parameter", "buffer", "parameter"]


class Evil:
    def __reduce__(self) -> Any:
        return os._exit, (3,)  # which would be the end of this test


def test_nothing_is_run(tmp_path: Path) -> None:
    path = tmp_path / "evil.pdparams"
    held = OrderedDict(a=np.ones(2000, np.float32), b=Evil())
    path.write_bytes(pickle.dumps(held, 4))
    capture = opscope.open(path)
    assert "posix._exit" in " ".join(capture.warnings)


def test_lists_in_lists_are_looked_at_once(tmp_path: Path) -> None:
    deep: Any = [np.ones(4)]
    for _ in range(80):
        deep = [deep, deep]
    path = tmp_path / "laughs.pdparams"
    path.write_bytes(pickle.dumps({"a": deep}, 4))
    assert opscope.open(path).graph.n_nodes == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "tensors and 0 entries: it is damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 40), "a text of"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 9, 1 << 50),
            "list",
        ),
        (struct.pack("<Q", 30) + b'{"a": {"dtype": "F32"}, "b": 1', "bad JSON"),
        (safetensors(a=np.ones(4, np.float32))[:-4], "the file may be cut off"),
    ],
)
def test_damage_is_said_in_one_line(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(data)
    with pytest.raises(opscope.BadInput, match=words):
        opscope.open(path)


def test_archives_are_bounded(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", b"\x80\x02" + bytes(300 << 20))
    path = tmp_path / "bomb.pt"
    path.write_bytes(out.getvalue())
    with pytest.raises(opscope.BadInput, match="times the file: refused"):
        opscope.open(path)
