"""MegEngine's files, read without MegEngine: exactly what its own decoding says of them."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import opscope
from effort import PEAK
from golden import check
from opscope.errors import BadInput
from opscope.readers.megengine import decoded, flat
from opscope.readers.megengine.kinds import types_by_id, xxh64
from opscope.readers.megengine.model import DTYPES, Dtype, Model, Operator, decode
from opscope.readers.pages import Whole, mapped
from opscope.readers.source import Source

DATA = Path(__file__).parent / "data" / "megengine"
DECODED = sorted(p.name.removesuffix(".decoded.json") for p in DATA.glob("*.decoded.json"))


def model_of(path: Path) -> Model:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return decode(data, len(data))


# -- the same as MegEngine's own schema compiler decoded ----------------------------------------------------


def same(found: Any, expected: Any) -> bool:
    """Equal. What the file leaves at its default is given as text by those who decoded the sample."""
    if isinstance(expected, str) and not isinstance(found, str):
        if isinstance(found, bool):
            return expected == str(found).lower()
        return (int if isinstance(found, int) else float)(expected) == found
    if isinstance(expected, float):
        return abs(found - expected) <= 1e-6 * abs(expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    return bool(found == expected)


def dtype_of(raw: dict[str, Any] | None) -> Dtype | None:
    return None if raw is None else Dtype(DTYPES[raw["type"]])


def check_operator(found: Operator, expected: dict[str, Any]) -> None:
    assert found.type_id == expected["type_id"]
    assert found.name == expected.get("name", "")
    assert same(found.priority, expected["priority"])
    assert found.inputs == expected.get("inputs", [])
    assert found.output_dtype == dtype_of(expected.get("output_dtype"))
    assert list(found.devices) == [node["logical_locator"] for node in expected.get("comp_node", [])]
    assert (found.param is None) == ("param" not in expected)
    assert same(found.param or {}, expected.get("param", {})), (found.param, expected["param"])
    assert same(list(found.more_params), expected.get("additional_params", []))
    assert len(found.tensors) == len(expected.get("tensors", []))
    for tensor, raw in zip(found.tensors, expected.get("tensors", []), strict=True):
        assert tensor.name == raw.get("name", "")
        assert list(tensor.shape) == raw["shape"]
        assert tensor.dtype == dtype_of(raw["dtype"])
        if "data_size" in raw:
            assert (tensor.data.size if tensor.data else 0) == raw["data_size"]
        else:
            assert tensor.data == ((raw["data"]["at"], raw["data"]["bytes"]) if "data" in raw else None)


@pytest.mark.parametrize("name", DECODED)
def test_samples_decode_to_what_they_are(name: str) -> None:
    expected = json.loads((DATA / f"{name}.decoded.json").read_text("utf-8"))
    path = DATA / name
    model = model_of(path)
    assert model.version == expected.get("mge_version", expected.get("mgb_version"))
    assert model.format == expected["format"].removesuffix("(v1)")
    assert len(model.operators) == len(expected["oprs"])
    for found, raw in zip(model.operators, expected["oprs"], strict=True):
        check_operator(found, raw)
        if "type" in raw:
            assert (found.type, found.version) == (raw["type"], raw["opr_version"])
            assert found.outputs == raw["outputs"]
        else:
            assert [model.variables[number].name for number in found.outputs] == raw["output_name"]
    for number, raw in enumerate(expected.get("middle_tensors", [])):
        variable = model.variables[number]
        assert variable.name == raw["name"]
        assert list(variable.shape or ()) == raw.get("shape", [])
    assert model.outputs == [raw["compact_id"] for raw in expected["output_vars_idx"]]
    meta = expected["metadata"]
    assert model.metadata["is_valid"] == meta["is_valid"]
    assert model.metadata["optimize_options"] == meta["optimize_options"]
    span = model.metadata["user_info"]
    raw_info = path.read_bytes()[span.at : span.at + span.size]
    assert raw_info.decode("utf-8", "replace") == meta["user_info"]


@pytest.mark.parametrize("kind", ["opt", "default", "fbsv1"])
def test_the_others_of_their_kind_are_as_complete(kind: str) -> None:
    model = model_of(DATA / f"resnet18_w8.{kind}.mge.gz")
    listed = json.loads((DATA / f"resnet18_w8.visualize_{kind}_noinput.json").read_text("utf-8"))["stats_details"]
    *rows, _ = listed["activations"]
    assert len(model.operators) == len(rows)
    by_shape = sorted(row["shape"] for row in rows if row["class_name"] == "ImmutableTensor")
    assert sorted(list(o.tensors[0].shape) for o in model.operators if o.is_parameter) == by_shape
    assert not any(o.type.startswith("#") for o in model.operators)
    assert not model.warnings


@pytest.mark.parametrize("name", ["tiny.mge", "tiny.default.mge", "tiny.opt.mge", "tiny.fbsv1.mge", "resnet18_w8.mge"])
def test_golden(name: str, overwrite: bool) -> None:
    check(DATA / name, f"megengine/{name}.txt", overwrite)


def test_type_ids_are_hashes_of_names() -> None:
    model = model_of(DATA / "tiny.mge")
    assert {o.type_id for o in model.operators if o.type == "ImmutableTensor"} == {xxh64(b"ImmutableTensor\0")}
    assert types_by_id()[398888935463796127] == "ConvolutionV2"
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999  # from the specification of XXH64
    assert xxh64(b"a", 0) == 0xD24EC4F1A98C6E5B


def test_an_unknown_type_is_named_by_its_id() -> None:
    data = (DATA / "tiny.fbsv1.mge").read_bytes()
    known = struct.pack("<Q", 398888935463796127)
    assert data.count(known) == 1
    capture = opscope.open(_written(data.replace(known, struct.pack("<Q", 12345))))
    node = next(node for node in capture.graph.nodes if node.op == "#12345")
    assert node.attrs["type id"] == "12345"
    assert node.attrs["pad_h"] == 1  # its parameters are read all the same
    assert any("#12345" in text for text in capture.all_warnings())


def test_the_older_magic_and_the_test_prefix() -> None:
    first = (DATA / "tiny.fbsv1.mge").read_bytes()
    older = b"MGBS" + first[12:16] + first[16:]  # without feature bits
    model = decode(older, len(older))
    assert len(model.operators) == 19
    for data in (first, (DATA / "tiny.mge").read_bytes(), older):
        prefixed = b"mgbtest0" + bytes(4) + data
        assert opscope.open(_written(prefixed)).graph.n_nodes == 11


def test_scopes_shapes_roles_and_attributes() -> None:
    graph = opscope.open(DATA / "resnet18_w8.mge").graph
    node = next(n for n in graph.nodes if n.name == "layer2.0.downsample.0.Convolution")
    assert node.path == "layer2/0/downsample/0"
    assert node.attrs["stride_h"] == 2
    assert str(node.outputs[0].type) == "float32[1,16,8,8]"
    roles = {value.name: value.role for value in graph.values}
    assert roles["data"] == "input"
    assert roles["layer1.0.conv1.weight"] == "parameter"
    assert graph.value(int(graph.outputs[0])).name == "out"


def test_receptive_fields_know_pooling() -> None:
    """MegEngine leaves pooling out; a ResNet-18 sees 435 pixels before its last pooling (known from the literature)."""
    capture = opscope.open(DATA / "resnet18_w8.mge")
    table = capture.tables["receptive field"]
    names = [capture.graph.node(int(i)).name for i in table.index]
    row = names.index("layer4.1.ADD")
    assert table.columns["height"].values[row] == 435
    assert table.columns["stride_h"].values[row] == 32


def test_user_info_is_never_unpickled() -> None:
    """`user_info` that would raise if anything unpickled it."""
    data = (DATA / "tiny.mge").read_bytes()
    span = model_of(DATA / "tiny.mge").metadata["user_info"]
    assert data[span.at : span.at + span.size] == b"\x80\x04N."
    evil = data[: span.at] + b"\x80\x04\xff." + data[span.at + 4 :]
    capture = opscope.open(_written(evil))
    assert "4 bytes of pickle, which are not read" in capture.stages[0].listings["metadata"]


# -- files that lie -----------------------------------------------------------------------------------------

_here: list[Path] = []


@pytest.fixture(autouse=True)
def here(tmp_path: Path) -> None:
    _here[:] = [tmp_path]


def _written(data: bytes) -> Path:
    path = _here[0] / "x.mge"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["tiny.mge", "tiny.fbsv1.mge"])
def test_cut_off_anywhere(name: str) -> None:
    data = (DATA / name).read_bytes()
    for size in range(12, len(data), 97):
        with pytest.raises(BadInput, match=r"x\.mge: "):
            opscope.open(_written(data[:size]))


@pytest.mark.parametrize("word", [0xFFFFFFFF, 0xFFFFFFF0, 0x7FFFFFFF, 0x80000000, 0])
def test_offsets_and_sizes_out_of_range(word: int) -> None:
    """Every aligned word in turn. Either it is not one that matters, or one clear line says what is wrong."""
    data = (DATA / "tiny.mge").read_bytes()
    refused: list[str] = []
    magic: list[int] = []
    for at in range(0, 2500, 4):
        changed = data[:at] + struct.pack("<I", word) + data[at + 4 :]
        try:
            decoded(Source("x.mge", data=changed), changed, len(changed))
        except BadInput as error:
            refused.append(str(error))
        except KeyError:
            magic.append(at)  # no reader would have been asked
    assert magic == [8]
    assert len(refused) > 50
    assert all(text.startswith("x.mge: not a readable MegEngine model: ") and "\n" not in text for text in refused)


def test_tables_that_are_named_a_million_times_cost_nothing() -> None:
    """A vector of 400,000 operators that are all the same one, and each names a vector of 100,000 inputs."""
    inputs, operators = 100_000, 400_000
    out = bytearray()
    out += struct.pack("<I4s", 0, b"mgv2")  # root offset, to be filled in

    def align() -> None:
        out.extend(bytes(-len(out) % 4))

    vtable = len(out)  # of Model: oprs is in slot 2
    out += struct.pack("<HHHHH", 10, 8, 0, 0, 4)
    align()
    model = len(out)
    out += struct.pack("<iI", model - vtable, 0)
    struct.pack_into("<I", out, 0, model)
    struct.pack_into("<I", out, model + 4, len(out) - (model + 4))
    out += struct.pack("<I", operators)
    first = len(out)
    out += bytes(4 * operators)
    vtable = len(out)  # of Operator: inputs is in slot 7
    out += struct.pack("<2H8H", 20, 8, 0, 0, 0, 0, 0, 0, 0, 4)
    align()
    operator = len(out)
    out += struct.pack("<iI", operator - vtable, 4)
    out += struct.pack("<I", inputs) + bytes(4 * inputs)
    for i in range(operators):
        struct.pack_into("<I", out, first + 4 * i, operator - (first + 4 * i))
    data = struct.pack("<I", len(out)) + bytes(out)
    buffer = flat.Buffer(Whole(data), 4, len(data))
    oprs = buffer.root("v2.Model")["oprs"]
    assert len(oprs) == operators
    assert oprs[0] is oprs[-1]  # decoded once
    assert len(oprs[0]["inputs"]) == inputs


def test_overlapping_vectors_are_refused() -> None:
    """Every operator with a long vector of its own that overlaps the others: together more than the file has."""
    buffer = flat.Buffer(Whole(bytes(1000)), 0, 1000)
    buffer.once(0, "uint", 400, list)
    buffer.once(4, "uint", 400, list)
    buffer.once(4, "uint", 400, list)  # the same again: it is there already
    with pytest.raises(BadInput, match="overlap"):
        buffer.once(8, "uint", 400, list)


def test_weights_are_mapped_and_not_read() -> None:
    """A file of a gigabyte, nearly all of it weights (a hole on the disk), under a limit of memory."""
    data = bytearray((DATA / "tiny.fbsv1.mge").read_bytes())
    weights = int.from_bytes(data[16:24], "little")
    hole = 1 << 30
    path = _here[0] / "large.mge"
    with path.open("wb") as file:
        file.write(data[:16] + struct.pack("<Q", weights + hole) + data[24 : 24 + weights])
        file.seek(24 + weights + hole)
        file.write(data[24 + weights :])
    code = f"{PEAK}\nimport opscope\ncapture = opscope.open({str(path)!r})\nprint(capture.graph.n_nodes, peak())\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nodes, most = map(int, done.stdout.split())
    assert nodes == 11
    assert most < 300 * 1024  # kB: numpy and Python take about 60 MB


def test_mapped_bytes_are_those_of_the_file() -> None:
    path = DATA / "tiny.mge"
    with mapped(Source.of(path)) as (data, size):
        assert bytes(data[:size]) == path.read_bytes()
