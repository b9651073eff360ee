"""When things ran: the events of a profile, alone and joined, in files, and what follows from them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opscope
from commands import good
from conftest import DATA
from measured_files import nsight
from opscope.analysis.costs.devices import reported_as
from opscope.analysis.device import device_of, step_seconds
from opscope.analysis.gaps_in_time import gaps_between
from opscope.analysis.savings import SMALL, savings
from opscope.ir import verify_capture
from opscope.ir.cut import cut_capture
from opscope.ir.events import BY, GROUP_KERNEL, KERNEL, LAUNCH, NODE, OPERATOR, ROW, SCOPE, Events, events_of

PROFILES = DATA / "torch" / "profile"
EAGER, COMPILED, REPLAYED = (PROFILES / f"{name}.trace.json.gz" for name in ("eager", "compile", "cudagraph"))
CHAKRA = PROFILES / "eager.et.json.gz"
JOINED = [
    (CHAKRA, EAGER),
    (PROFILES / "compile.log.gz", COMPILED),
    (PROFILES / "cudagraph.log.gz", REPLAYED),
]


def trace(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def held(capture: opscope.Capture) -> Events:
    events = events_of(capture)
    assert events is not None
    return events


@pytest.mark.parametrize("path", [EAGER, COMPILED, REPLAYED], ids=lambda path: path.name)
def test_a_capture_holds_every_kernel_when_it_ran(path: Path) -> None:
    capture = opscope.open(path)
    verify_capture(capture)
    events = held(capture)
    expected = sorted((e["ts"], e["dur"], e["name"]) for e in trace(path) if e.get("cat") == "kernel")
    rows = np.flatnonzero(events.kind == KERNEL)
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    assert [events.names[int(name)][:400] for name in events.name[rows]] == [name[:400] for _, _, name in expected]
    assert events.time[rows] == pytest.approx([duration for _, duration, _ in expected])
    begins = np.array([begin for begin, _, _ in expected])
    assert events.start[rows] - events.start[rows][0] == pytest.approx(begins - begins[0], abs=1e-3)
    assert (events.by[rows] == GROUP_KERNEL).all()
    calls = [e for e in trace(path) if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver")]
    assert (np.isin(events.kind, (OPERATOR, 1, LAUNCH))).sum() == len(calls)


@pytest.mark.parametrize(("path", "profile"), JOINED, ids=lambda path: path.name)
def test_events_belong_to_the_graph_that_the_profile_was_joined_to(path: Path, profile: Path) -> None:
    capture = opscope.open(path, profile=profile)
    verify_capture(capture)
    events = held(capture)
    kernels = np.flatnonzero(events.kind == KERNEL)
    assert (events.by[kernels] != ROW).all()  # all of them are placed
    for row in kernels.tolist():
        graph = capture.stages[int(events.stage[row])].graph
        if events.by[row] == GROUP_KERNEL:
            assert events.index[row] < len(graph.groups["kernel"])
    names = {events.names[int(events.name[row])] for row in kernels if events.by[row] == GROUP_KERNEL}
    assert names


def test_modules_of_a_profile_are_those_of_the_graph() -> None:
    capture = opscope.open(CHAKRA, profile=EAGER)
    events = held(capture)
    rows = np.flatnonzero(events.by == SCOPE)
    assert len(rows) > 100
    scopes = capture.pools.scopes
    for row in rows.tolist():
        name = events.names[int(events.name[row])]
        if name.startswith("nn.Module: "):
            assert name.removeprefix("nn.Module: ").rpartition("_")[0] == scopes[int(events.index[row])].cls


def test_events_survive_a_file_and_a_cut(tmp_path: Path) -> None:
    capture = opscope.open(EAGER)
    capture.save(tmp_path / "step.opscope")
    again = opscope.open(tmp_path / "step.opscope")
    one, other = held(capture), held(again)
    for name in ("start", "time", "track", "kind", "by", "index"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert again.arrow("events").num_rows > 0
    assert again.arrow("tracks").num_rows == len(one.tracks)
    keep = np.zeros(capture.graph.n_nodes, dtype=bool)
    keep[:100] = True
    part = cut_capture(capture, lambda _: keep)
    verify_capture(part)
    left = held(part)
    assert 0 < len(left) < len(one)
    assert left.index[left.by == NODE].max() < 100


def test_too_many_events_lose_what_says_least_first() -> None:
    events = held(opscope.open(EAGER))
    cut = events.limited(5000)
    assert len(cut) == 5000
    assert cut.left_out == len(events) - 5000
    assert (cut.kind == KERNEL).sum() == (events.kind == KERNEL).sum()
    assert not (cut.kind == 4).any()  # calls of Python


def test_an_nsight_export_has_a_timeline(tmp_path: Path) -> None:
    nsight(tmp_path / "report.sqlite")
    events = held(opscope.open(tmp_path / "report.sqlite"))
    assert sorted(events.start[events.kind == KERNEL] - events.start.min()) == pytest.approx([4.1, 8.6])
    assert events.delay[events.kind == KERNEL] == pytest.approx([3.9, 7.4])


# -- what follows ----------------------------------------------------------------------------------------


def test_waiting_for_the_cpu_is_what_the_profile_said() -> None:
    """Two ways to one figure: from the events of the joined capture, and by the reader from the trace."""
    capture = opscope.open(CHAKRA, profile=EAGER)
    gaps = gaps_between(held(capture))
    split = capture.tables["split"]
    said = dict(zip(split.columns["name"].values, np.asarray(split.columns["time"].values), strict=True))
    assert gaps.length.sum() * 1e-6 == pytest.approx(said["idle on device 0"], rel=1e-6)
    assert gaps.waited.sum() * 1e-6 == pytest.approx(said["waiting for the CPU on device 0"], rel=1e-4)
    rows = [row for row in savings(capture) if row.kind == "launch-bound"]
    assert sum(row.seconds for row in rows) == pytest.approx(gaps.waited.sum() * 1e-6, rel=0.01)


def test_what_could_be_won_is_never_more_than_what_it_took() -> None:
    capture = opscope.open(CHAKRA, profile=EAGER)
    rows = savings(capture)
    kinds = {row.kind for row in rows}
    assert {"launch-bound", "conversions", "below-peak", "memory-bound"} <= kinds
    assert all(row.most is None or -1e-12 <= row.most <= row.seconds + 1e-12 for row in rows)
    work = [row for row in rows if row.kind not in ("launch-bound", "idle", "copies")]
    assert sum(row.seconds for row in work) <= 0.030559357  # each kernel is in one row
    head = next(row for row in rows if row.kind == "below-peak")  # the products of the vocabulary
    assert "50,257 is no multiple" in head.why
    small = next(row for row in rows if row.kind == "small-kernels")
    assert small.seconds / small.count < SMALL


def test_utilization_by_hand() -> None:
    """Two FLOPs for each multiply-accumulate, over the time of the step, over what an H200 does in bfloat16."""
    capture = opscope.open(CHAKRA, profile=EAGER)
    used = capture.utilization()
    assert used is not None
    assert used["device"] == "NVIDIA H200 SXM"
    wall = step_seconds(capture)
    assert wall is not None
    flops = 2 * capture.stats().total.macs
    assert used["mfu"] == pytest.approx(flops / wall / 989.4e12, rel=1e-6)
    assert used["mfu_busy"] == pytest.approx(flops / used["busy_seconds"] / 989.4e12, rel=1e-6)
    assert capture.utilization("h100")["mfu"] == pytest.approx(used["mfu"])  # type: ignore[index]
    assert used["bound_seconds"] < used["busy_seconds"] < wall


def test_shares_stand_in_the_tables_of_stats() -> None:
    stats = opscope.open(CHAKRA, profile=EAGER).stats()
    assert {"mfu", "bandwidth", "of_bound"} <= set(stats.by_module().report.columns)
    total = stats.to_dict()["total"]
    phases = {row["name"]: row for row in stats.by_phase().rows}
    assert phases["optimizer"]["mfu"] == 0.0
    assert phases["optimizer"]["bandwidth"] > 0.5
    weighted = sum(row["mfu"] * row["gpu_seconds"] for row in phases.values()) / total["gpu_seconds"]
    assert total["mfu"] == pytest.approx(weighted)
    nodes = stats.by_node().rows
    mm = next(row for row in nodes if row["node"] == 605)
    assert mm["of_bound"] == pytest.approx(mm["flops"] / 989.4e12 / mm["gpu_seconds"], rel=1e-6)


def test_without_a_device_nothing_is_said_of_peaks(tmp_path: Path) -> None:
    with gzip.open(EAGER) as file:
        whole = json.load(file)
    whole["deviceProperties"] = [{"id": 0, "name": "Some Accelerator 9"}]
    path = tmp_path / "other.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    capture = opscope.open(CHAKRA, profile=path)
    assert device_of(capture) is None
    used = capture.utilization()
    assert used is not None
    assert used["device"] is None
    assert used["mfu"] is None
    kinds = {row.kind for row in savings(capture)}
    assert "unknown-device" in kinds
    assert not {"below-peak", "memory-bound"} & kinds
    assert "mfu" not in capture.stats().by_module().report.columns
    assert savings(capture, reported_as("NVIDIA H200"))[0].kind == "launch-bound"


@pytest.mark.parametrize(
    ("name", "known"),
    [("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA A100-SXM4-80GB", "a100"), ("Tesla T4", "t4")],
)
def test_devices_are_known_by_what_drivers_call_them(name: str, known: str) -> None:
    found = reported_as(name)
    assert found is not None
    assert found.name == known
    assert reported_as("NVIDIA A100-PCIE-40GB") is None
    assert reported_as("NVIDIA H100 PCIe") is None


def test_info_tells_where_time_could_be_won() -> None:
    told = json.loads(good("info", CHAKRA, "--profile", EAGER, "--json"))
    assert told["utilization"]["device"] == "NVIDIA H200 SXM"
    first = told["savings"][0]
    assert first["kind"] == "launch-bound"
    assert first["at_most"] == first["seconds"] > 0.05
    assert first["module"]
    assert first["line"]
    text = good("info", CHAKRA, "--profile", EAGER)
    assert "Where time could be won" in text
    assert "MFU" in text


def test_every_table_of_events_names_what_it_is_by() -> None:
    capture = opscope.open(EAGER)
    assert {table.by for table in capture.tables.values() if table.fact == "events"} <= set(BY)
