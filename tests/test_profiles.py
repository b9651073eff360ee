"""Measured profiles: what a Kineto trace holds alone, and what of it finds its place in another graph."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opscope
from commands import bad, good
from conftest import DATA
from measured_files import HISTORY, event, nsight, snapshot
from opscope.analysis import summary
from opscope.analysis.joining.by_size import join_memory
from opscope.analysis.joining.sequences import aligned, shared_out
from opscope.analysis.times import clocks, in_seconds, shares
from opscope.errors import BadInput, OpscopeError
from opscope.ir import GraphBuilder, Origin, Pools, Stage, verify_capture
from opscope.ir.facts import TIMES
from opscope.readers.source import Source
from opscope.readers.torch import snapshot as snapshots
from opscope.readers.torch.kineto.stream import Trace

PROFILES = DATA / "torch" / "profile"  # a step of GPT-2 on an H200, torch 2.11: eager, compiled, as CUDA graphs
EAGER, COMPILED, REPLAYED = (PROFILES / f"{name}.trace.json.gz" for name in ("eager", "compile", "cudagraph"))
CHAKRA = PROFILES / "eager.et.json.gz"
LOGS = {COMPILED: PROFILES / "compile.log.gz", REPLAYED: PROFILES / "cudagraph.log.gz"}


def events(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def kernels(path: Path) -> list[dict[str, Any]]:
    return sorted((event for event in events(path) if event.get("cat") == "kernel"), key=lambda event: event["ts"])


# -- alone ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [EAGER, COMPILED, REPLAYED], ids=lambda path: path.name)
def test_every_kernel_is_on_the_call_that_started_it(path: Path) -> None:
    capture = opscope.open(path)
    verify_capture(capture)
    graph, expected = capture.graph, kernels(path)
    found = graph.groups["kernel"]
    assert [capture.pools.strings[name] for name in found.name.tolist()] == [event["name"] for event in expected]

    called = {event["args"]["External id"]: event for event in events(path) if event.get("cat") == "cpu_op"}
    by_id = [called[event["args"]["External id"]] for event in expected]
    own = [graph.node(node).op.replace(".", "::", 1) for node in found.member.tolist()]
    # Started by the operator that is shown, or by one inside of it.
    assert all(op == call["name"] or "::" in op for op, call in zip(own, by_id, strict=True))
    started = [op for op, call in zip(own, by_id, strict=True) if op == call["name"]]
    assert len(started) > 0.5 * len(expected)

    said = summary.info(capture)["profile"]
    assert said["kernels"] == said["placed"] == said["with_module"] == len(expected)
    assert said["seconds"] == pytest.approx(sum(event["dur"] for event in expected) * 1e-6, abs=1e-6)
    assert said["unplaced"] == []


def test_backward_operators_are_in_the_modules_of_their_forward_operators() -> None:
    graph = opscope.open(EAGER).graph
    links = graph.links["grad"]
    assert len(links) > 800
    places = zip(links.source.tolist(), links.target.tolist(), strict=True)
    assert all(graph.node_scope[forward] == graph.node_scope[backward] for forward, backward in places)
    phases = summary.phase_counts(graph)
    assert phases["forward"] > 600
    assert phases["backward"] > 700
    assert phases["optimizer"] > 1400
    layer_norm = next(node for node in graph.nodes if node.op == "aten.native_layer_norm")
    assert "GPT2Block_0" in layer_norm.path
    assert layer_norm.frames[-1].file.endswith("functional.py")


def trace_of(found: list[dict[str, Any]], **fields: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, **fields, "traceEvents": found}).encode()


def call(name: str, start: float, duration: float, ident: int, **more: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration}
    return event | {"args": {"External id": ident}} | more


def kernel(name: str, start: float, ident: int) -> dict[str, Any]:
    args = {"External id": ident, "device": 0, "stream": 7, "correlation": ident}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 2.0, "args": args}


def opened(path: Path, content: bytes) -> opscope.Capture:
    path.write_bytes(content)
    return opscope.open(path)


def test_a_list_of_events_is_a_trace_too(tmp_path: Path) -> None:
    found = [call("aten::mm", 0, 10, 1), kernel("gemm", 20, 1)]
    capture = opened(tmp_path / "t.json", json.dumps(found).encode())
    assert [node.op for node in capture.graph.nodes] == ["aten.mm"]


def test_a_trace_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = trace_of([call("aten::mm", 0, 10, 1), kernel("gemm", 20, 1), call("aten::add", 30, 10, 2)])
    capture = opened(tmp_path / "t.json", whole[: whole.index(b'"aten::add"') + 3])
    assert [node.op for node in capture.graph.nodes] == ["aten.mm"]
    assert any("cut off" in text for text in capture.all_warnings())


def test_a_kernel_that_nothing_started_is_an_operator_of_its_own(tmp_path: Path) -> None:
    capture = opened(tmp_path / "t.json", trace_of([call("aten::mm", 0, 10, 1), kernel("stray", 20, 9)]))
    assert [node.op for node in capture.graph.nodes] == ["aten.mm", "stray"]
    assert summary.info(capture)["profile"]["evidence"] == {"itself": 1}


def test_ids_of_several_processes_that_collide_are_refused(tmp_path: Path) -> None:
    found = [call("aten::mm", 0, 10, 1), call("aten::add", 0, 10, 1, pid=2), kernel("gemm", 20, 1)]
    with pytest.raises(BadInput, match="trace of each rank by itself"):
        opened(tmp_path / "t.json", trace_of(found))


def test_ids_that_collide_and_started_nothing_do_no_harm(tmp_path: Path) -> None:
    found = [call("aten::mm", 0, 10, 1), call("aten::add", 0, 10, 1, pid=2), call("aten::mm", 12, 10, 2)]
    capture = opened(tmp_path / "t.json", trace_of([*found, kernel("gemm", 20, 2)]))
    assert summary.info(capture)["profile"]["evidence"] == {"by id": 1}


def test_a_trace_of_another_tool_says_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [{"ph": "X", "cat": "hlo", "name": "fusion.3", "ts": 1, "dur": 2}]}')
    with pytest.raises(BadInput, match=r"1 hlo.*torch\.profiler did not write it"):
        opscope.open(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"schemaVersion": 1, "traceEvents": []}', "neither operators nor kernels ran"),
        (b'{"schemaVersion": 1, "traceEvents" [', "no ':' after the key"),
        (b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel"}]}', "neither operators nor kernels"),
        (b'[{"ph": "M", "name": "x"}]', "neither operators nor kernels ran"),
    ],
)
def test_bad_traces(content: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=says):
        opened(tmp_path / "t.json", content)


def test_events_come_one_by_one_whatever_the_window() -> None:
    """Every way of laying out the text gives the same events."""
    found = [call("aten::mm", i, 1, i, note="}, {" * (i % 3)) for i in range(500)]
    for text in (json.dumps(found), json.dumps({"traceEvents": found, "z": 1}, indent=2), json.dumps(found)[:-1]):
        assert list(Trace(Slow(text.encode()), "t").events()) == found


class Slow(io.BytesIO):
    """Gives a few bytes at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 1000) if size is not None and size > 0 else 1000)


# -- joined ---------------------------------------------------------------------------------------------


def test_an_execution_trace_is_joined_by_number() -> None:
    capture = opscope.open(CHAKRA, profile=EAGER)
    verify_capture(capture)
    said = summary.info(capture)["profile"]
    assert said["kernels"] == said["placed"] == said["with_module"] == said["with_line"] == len(kernels(EAGER))
    assert said["evidence"] == {"by id": said["kernels"]}
    alone = opscope.open(EAGER)
    # The same operators have the same kernels, though the two files were written by two mechanisms.
    for one in (capture, alone):
        assert len(one.graph.groups["kernel"]) == len(kernels(EAGER))
    ops = [
        Counter(one.graph.node(node).op.split(".")[1] for node in one.graph.groups["kernel"].member.tolist())
        for one in (capture, alone)
    ]
    assert ops[0] == ops[1]


@pytest.mark.parametrize(("path", "evidence"), [(COMPILED, "by name and order"), (REPLAYED, "by order")])
def test_compiled_graphs_are_joined_by_their_launches(path: Path, evidence: str) -> None:
    capture = opscope.open(LOGS[path], profile=path)
    verify_capture(capture)
    said = summary.info(capture)["profile"]
    expected = kernels(path)
    assert said["kernels"] == said["placed"] == len(expected)
    assert said["evidence"][evidence] == 612
    assert said["with_line"] >= 0.99 * len(expected)
    assert said["placed_seconds"] == pytest.approx(sum(event["dur"] for event in expected) * 1e-6, abs=1e-6)

    total, names = 0.0, Counter[str]()
    for number, stage in enumerate(capture.stages):
        if stage.name.startswith("kernels") or stage.name == "outside of compiled graphs":
            for table in capture.facts(TIMES.name, number):
                if table.by == "group:kernel":
                    found = stage.graph.groups["kernel"]
                    total += float(in_seconds(table.columns["time"]).sum())
                    names.update(capture.pools.strings[int(found.name[row])] for row in table.index)
    assert total == pytest.approx(said["seconds"], abs=1e-6)
    theirs = Counter(event["name"] for event in expected if event["name"].startswith("triton_"))
    assert {name: count for name, count in names.items() if name.startswith("triton_")} == theirs


def test_a_fused_kernel_is_never_split() -> None:
    capture = opscope.open(LOGS[COMPILED], profile=COMPILED)
    stage = next(i for i, stage in enumerate(capture.stages) if stage.name.startswith("post-grad forward"))
    graph, measured = capture.stages[stage].graph, clocks(capture, stage)
    assert measured is not None
    by_node = shares(measured, np.arange(graph.n_nodes), graph.n_nodes)
    fused = [k for k in range(len(measured.kernels)) if len(measured.kernels.members(k)) > 1]
    assert fused
    members = measured.kernels.members(fused[0])
    assert all(by_node.shared[node] >= measured.gpu[fused[0]] for node in members)
    alone = sum(measured.gpu[k] for k in range(len(measured.kernels)) if k not in set(fused))
    assert by_node.own.sum() == pytest.approx(alone)
    whole = shares(measured, np.zeros(graph.n_nodes, dtype=int), 1)
    assert whole.own[0] == pytest.approx(measured.gpu.sum())
    assert whole.shared[0] == 0


def test_statistics_have_the_times() -> None:
    found = opscope.open(CHAKRA, profile=EAGER).stats().to_dict(depth=2)
    total = found["total"]
    assert total["gpu_seconds"] == pytest.approx(0.030559357, abs=1e-9)
    rows = {row["path"]: row for row in found["rows"]}
    assert rows["step/AdamW"]["gpu_seconds"] == pytest.approx(3.48e-3, rel=0.01)
    assert all(row["cpu_seconds"] > 0 and row["shared_seconds"] == 0 for row in rows.values() if row["path"])
    for by in ("op", "kind", "phase", "node"):
        table = opscope.open(CHAKRA, profile=EAGER).stats().to_dict(by)
        assert sum(row["gpu_seconds"] for row in table["rows"]) == pytest.approx(total["gpu_seconds"])


def test_a_profile_of_another_program_is_refused() -> None:
    capture = opscope.open(DATA / "torch" / "net.pt2")
    with pytest.raises(OpscopeError, match="of another program"):
        capture.join(EAGER)


def test_the_command_line(tmp_path: Path) -> None:
    said = json.loads(good("info", str(CHAKRA), "--profile", str(EAGER), "--json"))
    assert said["profile"]["placed"] == 2179
    assert "GPU time" in good("stats", str(CHAKRA), "--profile", str(EAGER), "--depth", "1")
    other = DATA / "torch" / "net.pt2"
    assert "not a profile that can be joined" in bad("info", str(other), "--profile", str(other))


# -- sequences ------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_alignment_pairs_equal_items_in_order(left: list[str], right: list[str]) -> None:
    found = aligned(left, right)
    placed = [at for at in found if at >= 0]
    assert placed == sorted(set(placed))
    assert all(left[i] == right[at] for i, at in enumerate(found) if at >= 0)


@given(st.lists(st.integers(0, 200), min_size=1, max_size=200), st.data())
def test_alignment_finds_what_only_lost_a_piece(whole: list[int], data: st.DataObject) -> None:
    texts = [str(number) for number in whole]
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    part = texts[:start] + texts[stop:]
    assert all(at >= 0 for at in aligned(part, texts)[:start])


@given(st.integers(0, 12), st.integers(0, 8))
def test_sharing_out_is_monotone_and_leaves_no_place_empty(items: int, places: int) -> None:
    found = shared_out(items, places, lambda item, place: float((item * 7 + place * 3) % 5))
    assert len(found) == items
    if items and places:
        assert found == sorted(found)
        assert set(found) == set(range(min(items, places)))


def test_two_profiles_are_compared_by_operator_and_module(tmp_path: Path):
    from opscope.analysis.diff.limits import parse
    from opscope.analysis.diff.times import compare_times, exceeded_time

    eager = opscope.open(EAGER)
    compiled = opscope.open(LOGS[COMPILED], profile=COMPILED)
    found = compare_times(eager, compiled)
    assert found is not None
    assert found.clock == "gpu"
    assert found.before == pytest.approx(0.030559357, abs=1e-9)
    assert found.after == pytest.approx(0.0107469, abs=1e-9)
    # The rows are all of the time: nothing is counted twice.
    assert sum(row.before or 0 for row in found.operators) == pytest.approx(found.before)
    assert sum(row.after or 0 for row in found.operators) == pytest.approx(found.after)
    assert exceeded_time(parse("time>-10%"), eager, compiled) is None
    assert "30,559" in (exceeded_time(parse("time<-50%"), eager, compiled) or "")
    with pytest.raises(OpscopeError, match="nothing that fits"):
        exceeded_time(parse("time(op:no_such_operator)>+5%"), eager, compiled)


def small_step() -> opscope.Capture:
    """Two operators whose results have sizes of their own."""
    b = GraphBuilder(Pools())
    w = b.input(b.pools.type("float32", (64, 64)), name="w", role="parameter")
    x = b.input(b.pools.type("float32", (8, 64)), name="x")
    h = b.output(b.node("aten.mm", [x, w], phase="forward"), b.pools.type("float32", (8, 64)))
    y = b.output(b.node("aten.cat", [h, h, h], phase="forward"), b.pools.type("float32", (24, 64)))
    b.outputs.append(y)
    return opscope.Capture(b.pools, [Stage("step", b.freeze())], origin=Origin("test", "torch"))


def test_a_memory_snapshot_says_what_was_alive_at_the_peak(tmp_path: Path):
    path = tmp_path / "snapshot.pickle"
    rows = [*HISTORY, event("free_completed", 1 << 22, 999), event("free_completed", 1 << 20, 2048)]
    path.write_bytes(snapshot(rows, [(0, 16384), (1 << 21, 6144)]))
    found = summary.info(small_step().join(path))["memory"]
    assert found["peak_bytes"] == 16384 + 2048 + 6144 + 999
    assert found["classes"] == {"parameter": 16384, "activation": 8192, "unmatched": 999}
    assert found["evidence"] == {"by size": 16384, "by size and order": 8192}
    (lost,) = found["unmatched"]
    assert lost["stack"].splitlines() == ["aten.mm", "net.py:5 forward"]
    assert found["out_of_memory"] is None


def test_a_snapshot_of_a_failure_says_what_was_alive_and_what_was_refused(tmp_path: Path):
    path = tmp_path / "snapshot.pickle"
    rows = [*HISTORY[:1], {**event("oom", 0, 1 << 40, 7), "device_free": 5}, event("free_completed", 1 << 20, 2048)]
    path.write_bytes(snapshot(rows, [(0, 16384)]))
    found = summary.info(small_step().join(path))["memory"]
    assert found["peak_bytes"] == 16384 + 2048
    assert found["out_of_memory"] == {"bytes": 1 << 40, "stack": "aten.mm\nnet.py:7 forward"}


def test_a_snapshot_is_no_capture_and_runs_nothing(tmp_path: Path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(snapshot(HISTORY, []))
    assert "memory snapshot" in bad("info", path)
    path.write_bytes(b"\x80\x04cposix\nsystem\n(V# device_traces segments\ntR.")
    assert "refused" in bad("info", CHAKRA, "--profile", path) or "posix" in bad("info", CHAKRA, "--profile", path)


@given(st.data())
def test_damaged_snapshots_are_refused_or_read(data: st.DataObject):
    whole = bytearray(snapshot(HISTORY, [(0, 16384)]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        held = snapshots.allocations(Source("s.pickle", data=bytes(whole)))
        summary.info(join_memory(small_step(), held, "s.pickle"))
    except BadInput:
        pass


def test_the_time_of_a_device_is_told_apart():
    found = {row["name"]: row for row in summary.split(opscope.open(EAGER))}
    ran = [e for e in events(EAGER) if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    span = max(e["ts"] + e["dur"] for e in ran) - min(e["ts"] for e in ran)
    busy, idle = found["busy on device 0"]["seconds"], found["idle on device 0"]["seconds"]
    assert found["span on device 0"]["seconds"] == pytest.approx(span * 1e-6)
    assert busy + idle == pytest.approx(span * 1e-6)
    assert busy + found["overlap on device 0"]["seconds"] == pytest.approx(sum(e["dur"] for e in ran) * 1e-6)
    assert 0 < found["waiting for the CPU on device 0"]["seconds"] <= idle


def test_an_export_of_nsight_systems_is_a_profile(tmp_path: Path):
    path = tmp_path / "report.sqlite"
    nsight(path)
    cap = opscope.open(path)
    assert [node.op for node in cap.graph.nodes] == ["aten.mm", "aten.relu"]
    assert {cap.pools.scope_path(int(scope)) for scope in cap.graph.node_scope} == {"layer 1"}
    found = summary.profile(cap)
    assert found is not None
    assert (found["kernels"], found["placed"]) == (2, 2)
    assert found["seconds"] == pytest.approx(4.25e-6)
    assert summary.profile(small_step().join(path))["kernels"] == 2  # type: ignore[index]


def test_an_export_with_kernels_alone_says_that_nothing_started_them(tmp_path: Path):
    path = tmp_path / "report.sqlite"
    nsight(path)
    with contextlib.closing(sqlite3.connect(path)) as report:
        report.executescript("DROP TABLE NVTX_EVENTS; DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;")
    cap = opscope.open(path)
    assert [node.op for node in cap.graph.nodes] == ["gemm", "relu"]
    assert any("2 " in warning and "started" in warning for warning in cap.all_warnings()), cap.all_warnings()
    found = summary.profile(cap)
    assert found is not None
    assert (found["kernels"], found["seconds"]) == (2, pytest.approx(4.25e-6))


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_exports_are_refused_or_read(data: st.DataObject, tmp_path: Path):
    path = tmp_path / "report.sqlite"
    path.unlink(missing_ok=True)
    nsight(path)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(16, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    with contextlib.suppress(OpscopeError):
        opscope.open(path)


def test_every_step_beside_the_one_of_an_execution_trace_is_placed(tmp_path: Path) -> None:
    """The trace of one step, three times, each with ids and times of its own: the graph is that of the second."""
    trace = json.loads(gzip.decompress((PROFILES / "eager.trace.json.gz").read_bytes()))
    numbered = ("External id", "correlation", "Record function id", "Sequence number", "Python id", "Python parent id")
    events = trace["traceEvents"]
    trace["traceEvents"] = [
        {
            **event,
            "ts": float(event.get("ts", 0)) + step * 1e7,
            "args": {
                key: value + step % 3 * 10**7 if key in numbered and isinstance(value, int) else value
                for key, value in event.get("args", {}).items()
            },
        }
        for step in (-1, 0, 1)
        for event in (events if step == 0 else [one for one in events if one.get("cat") in ("cpu_op", "kernel")])
    ]
    path = tmp_path / "steps.json"
    path.write_text(json.dumps(trace))
    joined = opscope.open(CHAKRA, profile=path)
    found = summary.info(joined)["profile"]
    assert found["placed"] == found["kernels"] == 3 * 2179
    assert found["evidence"] == {"by id": 2179, "by name and order": 2 * 2179}
    assert found["seconds"] == pytest.approx(found["placed_seconds"])
