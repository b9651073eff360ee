"""Which reader takes a file, plugins, and what is said about files that none takes."""

from __future__ import annotations

import io
import sys
import zipfile
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import SimpleNamespace

import pytest

import opscope
from conftest import DATA
from opscope.readers import registry


@pytest.fixture
def plugin() -> None:
    """The reader of tests/plugin_example, installed as another package."""
    names = [entry.name for entry in entry_points(group=registry.GROUP)]
    assert "edges" in names, "the example plugin is not installed: python -m pip install ./tests/plugin_example"


@pytest.mark.usefixtures("plugin")
def test_a_plugin_reads_its_format(tmp_path: Path) -> None:
    path = tmp_path / "graph.whatever"
    path.write_text("#edges 1\nx relu a\na,x add y\n")
    graph = opscope.open(path).graph
    assert [node.op for node in graph.nodes] == ["relu", "add"]
    assert [value.name for value in graph.node(1).inputs if value] == ["a", "x"]


@pytest.mark.usefixtures("plugin")
def test_a_plugin_reports_bad_content(tmp_path: Path) -> None:
    path = tmp_path / "graph.edges"
    path.write_text("#edges 1\nonly two\n")
    with pytest.raises(opscope.BadInput, match=r"graph\.edges:2: expected 'inputs operator output'"):
        opscope.open(path)


@pytest.mark.parametrize("taken", ["jittor-trace", "twice"])
def test_two_readers_of_one_name_are_an_error(taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "twice_reader", SimpleNamespace(NAME="twice"))
    extra = [EntryPoint(name, "twice_reader", registry.GROUP) for name in (taken, "twice")]
    monkeypatch.setattr(registry, "entry_points", lambda group: extra)
    with pytest.raises(opscope.OpscopeError, match=f"two readers are called '{taken}'"):
        list(registry.readers())


def test_every_reader_has_the_name_that_it_is_listed_under() -> None:
    assert [reader.NAME for reader in registry.readers()][: len(registry.BUILT_IN)] == list(registry.BUILT_IN)


@pytest.mark.parametrize("module", [SimpleNamespace(NAME="theirs"), SimpleNamespace()])
def test_a_reader_of_another_name_is_an_error(module: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "some_reader", module)
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint("ours", "some_reader", group)])
    own = getattr(module, "NAME", None)
    with pytest.raises(opscope.OpscopeError, match=f"the reader 'ours' of a plugin has NAME = {own!r}"):
        list(registry.readers())


def test_a_plugin_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint("broken", "no.such.module", group)])
    with pytest.raises(opscope.OpscopeError, match="plugin 'broken' of a plugin cannot be loaded: No module"):
        list(registry.readers())


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/"), data)
    return out.getvalue()


ONNX = b"\x08\x09\x12\x07pytorch\x1a\x052.1.0:\x80\x01"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model.onnx", ONNX, r"an ONNX model, by its name: its content is not one: export or copy it again"),
        ("model.tflite", b"\x1c\x00\x00\x00TFL3" + bytes(20), "not a readable TensorFlow Lite model"),
        ("renamed", b"\x1c\x00\x00\x00TFL3" + bytes(20), "not a readable TensorFlow Lite model"),
        (
            "weights.pt",
            zipped(**{"archive__data.pkl": b"\x80\x02}."}),
            r"not a readable checkpoint: a pickle without a tensor that opscope knows",
        ),
        ("model.pt", zipped(**{"m__data.pkl": b"", "m__code__x.py": b""}), "a TorchScript archive"),
        ("weights.npz", zipped(**{"a.npy": b""}), "not readable numpy arrays: array 'a' has no header"),
        ("w.safetensors", b"\x40" + bytes(7) + b'{"a":{"dtype":"F32"}}', "safetensors weights: their header is none"),
        ("m.gguf", b"GGUF\x03", "not a readable GGUF file"),
        ("m.h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        ("m.mge", b"mgbtest0", "a MegEngine model"),
        ("x.json", b'{"a": 1}', "JSON of a kind opscope does not know"),
        ("hidet.json", b'{"graphs": [{"name": "", "inputs": [{"name": "x", "arguments": []}]}]}', "JSON of a kind"),
        ("x.gz", b"\x1f\x8b\x08", "a gzip file that is cut off or damaged"),
        ("empty.pkl", b"", r"an empty file \(0 bytes\)"),
        ("notes.txt", b"hello", "not a format opscope knows"),
        ("model.pb", b"\x0a\x0bhello", "a protocol buffer, by its name"),
        ("cut.zip", b"PK\x03\x04abc", "a zip file that is cut off or damaged"),
    ],
)
def test_known_files_without_a_reader_name_a_route(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(opscope.BadInput, match=words) as error:
        opscope.open(path)
    assert str(error.value).startswith(f"{path}: ")


def test_a_torch_checkpoint_in_the_old_format(tmp_path: Path) -> None:
    path = tmp_path / "old.pth"
    path.write_bytes(b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01.")
    with pytest.raises(opscope.BadInput, match=r"a pickle without a tensor .*OrderedDict.* nothing in it was run"):
        opscope.open(path)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(opscope.BadInput, match="no such file or folder"):
        opscope.open(tmp_path / "missing.pkl")
    with pytest.raises(opscope.BadInput, match="a folder without anything opscope knows"):
        opscope.open(tmp_path)
    with pytest.raises(opscope.BadInput, match="a device, not a file"):
        opscope.open("/dev/null")
    with pytest.raises(opscope.BadInput, match="cannot be read"):
        opscope.open("a\0b")
    with pytest.raises(opscope.BadInput, match="no such folder"):
        opscope.open(DATA / "jittor" / "simple_model.pkl", sources=[tmp_path / "missing"])
