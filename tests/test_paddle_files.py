"""PaddlePaddle's files, read without PaddlePaddle: backward dumps, logs, PIR programs. All samples are real.

`*.truth.json` is what Paddle 3.3.1 itself said of the same graphs: its walk, its dump and its log at level 7 agree.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import opscope
from conftest import DATA
from golden import check, round_trip
from opscope.analysis.costs.operators import node_costs
from opscope.ir import Graph
from opscope.ir.text import dump
from opscope.opening import from_bytes

PADDLE = DATA / "paddle"
FILES = [path.name for path in sorted(PADDLE.iterdir()) if path.is_file() and not path.name.endswith(".truth.json")]
LOGS = {level: f"example_v{level}.backward.log" for level in (3, 4, 5, 6, 7)}


@pytest.mark.parametrize("name", FILES)
def test_golden(name: str, overwrite: bool) -> None:
    check(PADDLE / name, f"paddle/{name}.txt", overwrite)


@pytest.mark.parametrize("name", ["example_dump", "stacks_dump"])
def test_golden_folder(name: str, overwrite: bool) -> None:
    golden = Path(__file__).parent / "golden" / "paddle" / f"{name}.txt"
    capture = opscope.open(PADDLE / name)
    if overwrite:
        golden.write_text(dump(capture), encoding="utf-8")
    assert dump(capture) == golden.read_text(encoding="utf-8")
    assert dump(round_trip(capture)) == dump(capture)


def edges(graph: Graph) -> Counter[tuple[Any, ...]]:
    """Between gradient nodes: names, and the type."""
    return Counter(
        (use.value.producer.op, node.op, use.value.type.dtype, use.value.type.shape)
        for node in graph.nodes
        for use in node.uses
        if node.phase == "backward" and use.value and use.value.producer and use.value.producer.phase == "backward"
    )


def truth(name: str) -> tuple[int, Counter[tuple[Any, ...]]]:
    told = json.loads((PADDLE / f"{name}.truth.json").read_text())
    nodes = told["nodes"]
    return len(nodes), Counter(
        (nodes[e["src"]]["name"], nodes[e["dst"]]["name"], e["tensor"]["dtype"], tuple(e["tensor"]["shape"]))
        for e in told["edges"]
        if e["dst"] is not None
    )


def without_final(found: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """With unique names Paddle writes `conv2d1GradNode` for what is otherwise `Conv2dGradNodeFinal`."""
    strip = re.compile(r"Final$")
    return Counter((strip.sub("", a), strip.sub("", b), *rest) for (a, b, *rest) in found.elements())


@pytest.mark.parametrize(
    ("file", "name"),
    [("resnet18.dot", "resnet18"), ("example_dump", "example"), (LOGS[6], "example"), (LOGS[7], "example")],
)
def test_edges_are_those_that_paddle_says(file: str, name: str):
    graph = opscope.open(PADDLE / file).graph
    count, expected = truth(name)
    assert sum(node.phase == "backward" for node in graph.nodes) == count
    assert without_final(edges(graph)) == without_final(expected)


def test_slots_of_the_log_are_those_that_paddle_says():
    capture = opscope.open(PADDLE / LOGS[7])
    table = capture.tables["gradients"]
    edges_told = json.loads((PADDLE / "example.truth.json").read_text())["edges"]
    told = [edge for edge in edges_told if edge["dst"] is not None]
    found = Counter(
        zip(table.columns["out_slot"].values, table.columns["in_slot"].values, strict=True)  # pyright: ignore
    )
    assert found == Counter((e["out_slot"], e["in_slot"]) for e in told)
    assert all(table.columns["out_slot"].known)
    assert set(table.columns["place"].values) == {"Place(cpu)"}


def test_a_dump_links_forward_and_backward():
    graph = opscope.open(PADDLE / "example_dump").graph
    links = graph.links_of("grad")
    pairs = Counter((graph.node(a).op, graph.node(b).op) for a, b in zip(links.source, links.target, strict=True))
    assert pairs[("conv2d", "Conv2dGradNodeFinal")] == 2
    assert len(links) == 20


def test_a_dump_has_source_lines():
    graph = opscope.open(PADDLE / "stacks_dump").graph
    (multiply,) = [node for node in graph.nodes if node.op == "MultiplyGradNode"]
    assert [(frame.file, frame.line) for frame in multiply.frames] == [("/home/user/stacks.py", 5)]
    (leaf,) = [node for node in graph.nodes if node.op == "GradNodeAccumulation"]
    assert len(leaf.uses) == 2, "a * a: two edges to the same leaf"


# -- logs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "count", "warning"),
    [(3, 0, "GLOG_v=4"), (4, 29, "no shapes"), (5, 29, "8 of 29 edges"), (6, 29, None), (7, 29, None)],
)
def test_levels(level: int, count: int, warning: str | None):
    capture = opscope.open(PADDLE / LOGS[level])
    assert capture.graph.n_nodes == 30
    assert sum(edges(capture.graph).values()) == count
    assert (warning in " ".join(capture.all_warnings())) if warning else not capture.all_warnings()


def test_saved_tensors_are_inputs():
    graph = opscope.open(PADDLE / LOGS[6]).graph
    convs = [node for node in graph.nodes if node.op == "Conv2dGradNode"]
    saved = [{use.arg for use in node.uses if not use.arg.startswith("grad")} for node in convs]
    assert saved == [{"input", "filter"}] * 2


def as_of_2023(text: str) -> str:
    text = re.sub(
        r"(\w+)\((0x\w+)\) Found pending node: (\w+)\((0x\w+)\)",
        r"Node: \1 addr:\2, Found pending node: \3 addr: \4",
        text,
    )
    return re.sub(r"(\w+)\((0x\w+)\) Preparing", r"Preparing GradNode:\1 addr:\2", text)


@pytest.mark.parametrize("level", [4, 6, 7])
def test_the_format_of_2023(level: int):
    text = as_of_2023((PADDLE / LOGS[level]).read_text())
    assert "begin run" in text
    text = "\n".join(line for line in text.splitlines() if "begin run" not in line)
    old = from_bytes("old.log", text.encode())
    assert edges(old.graph) == edges(opscope.open(PADDLE / LOGS[level]).graph)


@pytest.mark.parametrize("level", [4, 6, 7])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.8])
def test_a_log_cut_at_the_end(level: int, part: float):
    data = (PADDLE / LOGS[level]).read_bytes()
    capture = from_bytes("cut.log", data[: int(len(data) * part)])
    whole = edges(opscope.open(PADDLE / LOGS[level]).graph)
    found = Counter(edge[:2] for edge in edges(capture.graph).elements())
    assert 0 < capture.graph.n_nodes < 30
    assert found <= Counter(edge[:2] for edge in whole.elements()), "nothing that is not there"
    assert any("cut off" in warning for warning in capture.all_warnings())


def test_a_log_cut_at_the_beginning():
    data = (PADDLE / LOGS[6]).read_bytes()
    capture = from_bytes("cut.log", data[len(data) // 2 :])
    assert 0 < capture.graph.n_nodes < 30
    assert any("begins in the middle" in warning for warning in capture.all_warnings())


def test_a_log_mixed_with_other_output():
    lines = (PADDLE / LOGS[7]).read_text().splitlines()
    mixed: list[str] = []
    for number, line in enumerate(lines):
        if re.match(r"[IWEF]\d{4} ", line):
            mixed.append(f"epoch {number}: loss 0.1 { {'a': [1, 2]} }")
            mixed.append("\x1b[31mwarning\x1b[0m (0xdead) something")
        mixed.append(line)
    capture = from_bytes("mixed.log", "\n".join(mixed).encode())
    assert edges(capture.graph) == edges(opscope.open(PADDLE / LOGS[7]).graph)


def test_two_processes_in_one_log():
    first = (PADDLE / LOGS[4]).read_text().splitlines()
    second = [re.sub(r" (\d{5}) (\w+\.cc)", r" 99999 \2", line) for line in first]
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    capture = from_bytes("two.log", "\n".join(mixed).encode())
    assert [stage.graph.n_nodes for stage in capture.stages] == [30, 30]
    assert [sum(edges(stage.graph).values()) for stage in capture.stages] == [29, 29]


# -- PIR --------------------------------------------------------------------------------------------


def test_branches_and_loops_have_bodies():
    graph = opscope.open(PADDLE / "branches.json").graph
    (branch,) = [node for node in graph.nodes if node.op == "pd_op.if"]
    (loop,) = [node for node in graph.nodes if node.op == "pd_op.while"]
    assert [body.label for body in branch.bodies] == ["true", "false"]
    assert [node.op for node in branch.bodies[0].graph.nodes] == ["pd_op.matmul", "pd_op.add"]
    (body,) = loop.bodies
    bound = [(graph.value(outside).producer or graph.value(outside)) for _, outside in body.bindings]
    assert [getattr(found, "op", "") for found in bound] == ["pd_op.full", "pd_op.if"]


def test_a_program_with_gradients():
    graph = opscope.open(PADDLE / "example_train.json").graph
    links = graph.links_of("grad")
    backward = [node for node in graph.nodes if node.phase == "backward"]
    assert len(backward) == len(links) == 19
    for source, target in zip(links.source, links.target, strict=True):
        assert f"{graph.node(source).op}_grad" == graph.node(target).op
    (conv, _) = [node for node in graph.nodes if node.op == "pd_op.conv2d"]
    assert conv.path == "Sequential/Conv2D"
    assert conv.attrs["strides"] == [1, 1]
    assert [use.value.name for use in conv.uses if use.value] == ["img", "conv2d_0.w_0"]


def test_costs_are_exact():
    """Forward 371,856; each gradient once more, but for that of the image, which is not wanted."""
    graph = opscope.open(PADDLE / "example_train.json").graph
    found = node_costs(graph, "paddle")
    assert int(found.macs.sum()) == 3 * 371_856 - 145_800
    assert not found.unknown_ops


# -- what cannot be read ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"base_code":{"magic":"pir","version":4},"program":{}}', "without a block"),
        (b'{"base_code":{"magic":"pir","version":4},"program":[]}', "'program' is a list"),
        (b'{"base_code":{"magic":"pir","version":4},"pro', "cut off"),
        (b"I1115 17:46:37.637441 19121 backward.cc:243] ==RunBackward: Start Backward ==\n", "GLOG_v=4"),
        (b'digraph G {\n\tnode_1[label="A\\nPtr: 0x1', "cut off"),
    ],
)
def test_one_clear_line(data: bytes, says: str):
    with pytest.raises(opscope.OpscopeError, match=says) as caught:
        from_bytes("bad", data)
    assert str(caught.value).startswith("bad: ")
    assert "\n" not in str(caught.value)


def test_a_newer_program_is_read_with_a_warning():
    text = (PADDLE / "example.json").read_text().replace('"version":4', '"version":9')
    capture = from_bytes("new.json", text.encode())
    assert capture.graph.n_nodes == 30
    assert "newer" in capture.warnings[0]


def test_a_dump_that_was_cut_off(tmp_path: Path):
    shutil.copytree(PADDLE / "example_dump", tmp_path / "cut")
    (file,) = (tmp_path / "cut").glob("*_backward_graph.dot")
    file.write_text(file.read_text()[:-600])
    (forward,) = (tmp_path / "cut").glob("*_ref_forward_graph.dot")
    forward.unlink()
    capture = opscope.open(tmp_path / "cut")
    assert capture.graph.n_nodes == 30
    assert capture.graph.n_edges < 29
    assert any("cut off" in text for text in capture.all_warnings())
    assert any("is missing" in text for text in capture.all_warnings())
