"""TensorBoard logs, taken apart again without TensorBoard; tests/browser has the real one show them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope.cli import main
from opscope.export.tensorboard.wire import crc32c, number, record
from opscope.ir import Capture, GraphBuilder, Pools, Stage, Table, column
from opscope.ir.columns import frozen

DATA = Path(__file__).parent / "data"


# -- a reader of what was written: enough of protobuf to look at it -------------------------------------------


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 1:
            at += 8
            yield key >> 3, struct.unpack("<d", data[at - 8 : at])[0]
        else:
            assert kind == 2
            size = varint()
            at += size
            assert at <= len(data)
            yield key >> 3, data[at - size : at]


def of(data: bytes, field: int) -> list[Any]:
    return [value for number_, value in fields(data) if number_ == field]


def events(folder: Path) -> list[bytes]:
    (path,) = folder.glob("events.out.tfevents.*")
    data = path.read_bytes()
    found: list[bytes] = []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        found.append(data[12 : 12 + size])
        assert data[: 16 + size] == b"".join(record(found[-1]))  # the checksums too
        data = data[16 + size :]
    return found


def nodes(folder: Path) -> dict[str, dict[str, Any]]:
    """name -> op, inputs, attrs."""
    _, graph, *_ = events(folder)
    (encoded,) = of(graph, 4)
    found: dict[str, dict[str, Any]] = {}
    for node in of(encoded, 1):
        attrs = {of(entry, 1)[0].decode(): next(fields(of(entry, 2)[0]), (0, b""))[1] for entry in of(node, 5)}
        name = of(node, 1)[0].decode()
        assert name not in found
        found[name] = {"op": of(node, 2)[0].decode(), "inputs": [i.decode() for i in of(node, 3)], "attrs": attrs}
    return found


def shape(attr: bytes) -> list[list[int]]:
    """`_output_shapes`: a list of shapes."""
    return [[of(dim, 1)[0] for dim in of(encoded, 2)] for encoded in of(attr, 7)]


# -- tests ------------------------------------------------------------------------------------------------


def test_crc32c_and_varints() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720
    assert crc32c(bytes([0xFF] * 32)) == 0x62A8AB43
    assert number(1, 300) == b"\x08\xac\x02"
    assert number(1, -1) == b"\x08" + b"\xff" * 9 + b"\x01"


def test_a_model_with_scopes_shapes_outputs_and_figures(tmp_path: Path) -> None:
    opscope.open(DATA / "megengine" / "resnet18_w8.mge").save(tmp_path / "log", format=".tensorboard")
    found = nodes(tmp_path / "log")
    first, *_ = events(tmp_path / "log")
    assert of(first, 3) == [b"brain.Event:2"]
    assert len(found) == 147  # as many as MegEngine has operators
    conv = found["layer1/0/conv1/Convolution"]
    assert conv["op"] == "Convolution"
    assert conv["inputs"] == ["maxpool/Pooling", "layer1/0/conv1/weight"]
    assert conv["attrs"]["params"] == 8 * 8 * 3 * 3
    assert conv["attrs"]["stride_h"] == 1
    assert shape(conv["attrs"]["_output_shapes"]) == [[1, 8, 16, 16]]
    assert found["RELU"]["inputs"] == ["bn1/BatchNorm:3"]  # the fourth output
    assert found["data"]["op"] == "Placeholder"
    assert found["layer1/0/conv1/weight"]["op"] == "Parameter"
    names = set(found)
    assert all(source.split(":")[0] in names for node in found.values() for source in node["inputs"])


def test_every_sample_has_a_log(tmp_path: Path) -> None:
    """Any capture: of Jittor, of PyTorch; each input names a node that is there."""
    paths = [DATA / "jittor" / "simple_model_train.pkl", *sorted((DATA / "torch").glob("*.pt2"))]
    paths = [path for path in paths if path.exists()]
    assert len(paths) > 3
    for path in paths:
        capture = opscope.open(path)
        log = tmp_path / path.name
        capture.save(log, format=".tensorboard", stage=capture.stages[0].name)
        found = nodes(log)
        graph = capture.stages[0].graph
        assert len(found) == graph.n_nodes + sum(1 for v in graph.values if v.producer is None)
        for node in found.values():
            assert all(source.lstrip("^").rsplit(":", 1)[0] in found for source in node["inputs"])


def small(stages: int = 1, **tables: Table) -> Capture:
    pools = Pools()
    capture = Capture(pools=pools, tables=dict(tables))
    for i in range(stages):
        b = GraphBuilder(pools)
        x = b.input(pools.type("float32", (2, "s0")), name="a:b^c/d")
        split = b.node("split", [x], name="x", scope=pools.scope(0, "mod/ule"))
        parts = [b.output(split, pools.type("float32", (1, None))) for _ in range(2)]
        again = b.node("relu", [parts[1]], name="x", scope=pools.scope(0, "mod/ule"), attrs={"phase": [1, {"a": None}]})
        b.output(again, pools.type("odd", None))
        b.link("control", split, again)
        capture.stages.append(Stage(f"stage {i}", b.freeze()))
    return capture


def test_names_are_unique_and_mean_nothing_else(tmp_path: Path) -> None:
    opscope.export.registry.export(small(), tmp_path, format=".tensorboard")
    found = nodes(tmp_path)
    assert list(found) == ["a_b_c_d", "mod_ule/x", "mod_ule/x_1"]
    assert found["mod_ule/x_1"]["inputs"] == ["mod_ule/x:1", "^mod_ule/x"]
    assert found["mod_ule/x_1"]["attrs"]["phase (of the operator)"] == b'[1, {"a": null}]'
    assert shape(found["a_b_c_d"]["attrs"]["_output_shapes"]) == [[2, 2**64 - 1]]  # −1: not known
    assert found["mod_ule/x"]["attrs"]["flops"] is not None


def test_stages_become_runs(tmp_path: Path) -> None:
    opscope.export.registry.export(small(stages=2), tmp_path, format=".tensorboard")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["stage_0", "stage_1"]
    # Once more, for one of them: its log is replaced, and not doubled.
    opscope.export.registry.export(small(stages=2), tmp_path / "stage_0", format=".tensorboard", stage="stage 0")
    assert len(list((tmp_path / "stage_0").iterdir())) == 1


@pytest.mark.parametrize(("unit", "expected"), [("ns", 2), ("us", 2000), ("s", 2_000_000_000)])
def test_times_become_run_metadata(tmp_path: Path, unit: str, expected: int) -> None:
    times = Table(0, "node", frozen([0, 1]), {"time": column([2000.0, 0.0], unit, known=[True, False])}, "times")
    opscope.export.registry.export(small(times=times), tmp_path, format=".tensorboard")
    *_, last = events(tmp_path)
    (tagged,) = of(last, 8)
    assert of(tagged, 1) == [b"opscope"]
    (step,) = of(of(tagged, 2)[0], 1)
    (device,) = of(step, 1)
    (stats,) = of(device, 2)  # only the node whose time is known
    assert of(stats, 1) == [b"mod_ule/x"]
    assert of(stats, 5) == [expected]


def test_times_of_kernels_are_divided(tmp_path: Path) -> None:
    capture = opscope.open(next(DATA.rglob("profiled_mlp_train.pkl")))
    if not any(table.by.startswith("group:") for table in capture.tables.values()):
        pytest.skip("the sample has no times without its profile")
    capture.save(tmp_path, format=".tensorboard")
    assert len(events(tmp_path)) in (2, 3)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(DATA / "megengine" / "tiny.mge")
    with pytest.raises(SystemExit) as stop:
        main(["export", sample, "--tensorboard", str(tmp_path / "deep" / "log")])
    assert stop.value.code == 0
    assert "tensorboard --logdir" in capsys.readouterr().err
    assert len(nodes(tmp_path / "deep" / "log")) == 19
    with pytest.raises(SystemExit) as stop:
        main(["export", sample])
    assert stop.value.code == 2
    assert "--tensorboard" in capsys.readouterr().err
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stop:
        main(["export", sample, "--tensorboard", str(tmp_path / "file" / "log")])
    assert stop.value.code == 2
