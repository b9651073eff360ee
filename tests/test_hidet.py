"""Hidet's files: graphs dumped as JSON and as text, and folders of passes, of 0.2.1 and of 0.6.1."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import golden
import opscope
from conftest import DATA
from opscope.analysis.costs.stats import GraphStats
from opscope.analysis.diff import Diff, stage_diffs, with_changes
from opscope.analysis.diff.report import Compared, lines
from opscope.cli import cli
from opscope.compat.hidet import dump
from opscope.ir import verify_capture
from opscope.ir.enumerations import CHANGE_CLASSES
from opscope.ir.text import dump as text_of
from opscope.readers.hidet.times import entries, fitted

HIDET = DATA / "hidet"
OLD, NEW = HIDET / "0.2.1", HIDET / "0.6.1"
FUSED = [
    "Reshape Rearrange BatchMatmul Reshape",
    "ReduceSum Add",
    "StridedSlice Reshape StridedSlice Rearrange Reshape PermuteDims Rearrange Reshape Reshape Rearrange Rearrange "
    "BatchMatmul Reshape",
    "ReduceSum DivideScalar Add",
    "Softmax Reshape Rearrange",
    "StridedSlice Reshape Rearrange Reshape Rearrange BatchMatmul Reshape",
    "ReduceSum Reshape Rearrange",
]


def same_as_golden(text: str, name: str, overwrite: bool) -> None:
    expected = golden.GOLDEN / name
    if overwrite:
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8"), f"{name} changed: pytest --overwrite, and look at the diff"


@pytest.mark.parametrize("version", ["0.2.1", "0.6.1"])
@pytest.mark.parametrize("name", ["attention-graph.json", "graph_before.txt", "graph_after.txt"])
def test_single_graphs(version: str, name: str, overwrite: bool) -> None:
    golden.check(HIDET / version / name, f"hidet/{version}-{name}.txt", overwrite)


@pytest.mark.parametrize("version", ["0.2.1", "0.6.1"])
def test_pass_folders(version: str, overwrite: bool) -> None:
    capture = opscope.open(HIDET / version / "outs")
    verify_capture(capture)
    same_as_golden(text_of(capture), f"hidet/{version}-passes.txt", overwrite)
    assert text_of(golden.round_trip(capture)) == text_of(capture)


def diffs(version: str) -> list[tuple[str, Diff]]:
    capture = opscope.open(HIDET / version / "outs")
    return [(capture.stages[after].name, diff) for _, after, diff in stage_diffs(capture)]


@pytest.mark.parametrize("version", ["0.2.1", "0.6.1"])
def test_what_the_passes_did(version: str, overwrite: bool) -> None:
    text = [line.text for name, diff in diffs(version) for line in lines(Compared("before", name, diff))]
    same_as_golden("\n".join(text) + "\n", f"hidet/{version}-diff.txt", overwrite)


def explained(diff: Diff) -> None:
    before = sorted([n for c in diff.changes for n in c.before] + diff.same.tolist())
    after = sorted([n for c in diff.changes for n in c.after] + diff.pairs[diff.same].tolist())
    assert before == list(range(diff.before.n_nodes))
    assert after == list(range(diff.after.n_nodes))


@pytest.mark.parametrize(
    ("version", "counts"),
    [("0.2.1", [20, 20, 19, 19, 35, 7, 7]), ("0.6.1", [24, 24, 30, 30, 30, 30, 8, 8])],
)
def test_every_operator_of_every_pass_is_explained(version: str, counts: list[int]) -> None:
    capture = opscope.open(HIDET / version / "outs")
    assert [stage.graph.n_nodes for stage in capture.stages] == counts
    for _, diff in diffs(version):
        explained(diff)
        assert all(change.kind != "moved" for change in diff.changes)


def test_fused_groups_are_as_hidet_names_them() -> None:
    (diff,) = [diff for name, diff in diffs("0.2.1") if name == "5_FuseOperatorPass"]
    groups = [" ".join(diff.before.node(n).op for n in change.before) for change in diff.changes]
    assert groups == FUSED == [node.attrs["fusion"] for node in diff.after.nodes]
    assert {change.kind for change in diff.changes} == {"fused"}


def test_the_merge_of_query_key_and_value_is_one_change() -> None:
    (diff,) = [diff for name, diff in diffs("0.2.1") if name == "2_SubgraphRewritePass"]
    (change,) = diff.changes
    assert (change.kind, change.sizes) == ("rewritten", "6→5")
    assert change.detail == "3 Matmul + 3 Add → Matmul + Add + 3 StridedSlice"
    assert change.evidence == "structure"


@pytest.mark.parametrize(("version", "label"), [("0.2.1", "fused, by structure"), ("0.6.1", "fused")])
def test_fused_operators_open(version: str, label: str) -> None:
    graph = opscope.open(HIDET / version / "outs").stages[-1].graph
    fused = [node for node in graph.nodes if node.op.startswith("Fused")]
    assert fused
    for node in fused:
        (body,) = node.bodies
        assert body.label == label
        assert len(body.bindings) == len(node.inputs)
        inner = [body.graph.value(int(v)) for v in body.graph.outputs]
        assert [v.type for v in inner] == [v.type for v in node.outputs]


def test_equal_stages_share_a_graph() -> None:
    stages = opscope.open(OLD / "outs").stages
    assert stages[0].graph is stages[1].graph
    assert stages[2].graph is stages[3].graph
    assert stages[1].graph is not stages[2].graph


@pytest.mark.parametrize("stage", ["0_Origin", "5_FuseOperatorPass"])
def test_native_text_is_as_hidet_prints(stage: str) -> None:
    capture = opscope.open(OLD / "outs")
    expected = "graph_before.txt" if stage == "0_Origin" else "graph_after.txt"
    assert capture.stage(stage).listings["native"] + "\n" == (OLD / expected).read_text()


def test_costs_do_not_change_by_what_a_compiler_does(overwrite: bool) -> None:
    rows: list[str] = []
    for version in ("0.2.1", "0.6.1"):
        for stage in opscope.open(HIDET / version / "outs").stages:
            total = GraphStats(stage.graph, "hidet").total
            rows.append(f"{version} {stage.name}: {total.macs} MACs, {total.other_flops} other, {total.at_least}\n")
            assert total.macs == 251658240
            assert not total.at_least
    same_as_golden("".join(rows), "hidet/stats.txt", overwrite)


# -- details of the formats -------------------------------------------------------------------------


SYMBOLIC = """Graph(x: float32[batch, 128][cpu]){
  c = Constant(float32[][cpu]) # hash: 00ff
  x_1: float32[batch, 64][cpu], x_2: int32[batch][cpu] = Split(x, c, parts=[64, batch], mode="a, b", z=8.0f)  # batch=n
  x_3: float32[batch, 64][cpu] = Relu(x_1)  # share_map={0: 0}
  return x_3, x_2
}"""


def test_symbols_several_outputs_and_shared_memory(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(f"Model(\n)\n{SYMBOLIC}\nsomething else\n{SYMBOLIC}\n")
    capture = opscope.open(path)
    assert [stage.name for stage in capture.stages] == ["graph", "graph 2"]
    split, relu = capture.graph.nodes
    assert str(capture.graph.value(0).type) == "float32[batch,128]"
    assert split.attrs == {"parts": [64, "batch"], "mode": "a, b", "z": "8.0f"}
    assert [str(v.type) for v in split.outputs] == ["float32[batch,64]", "int32[batch]"]
    assert relu.outputs[0].storage.index == split.outputs[0].index
    assert capture.tables["constants"].columns["hash"].values[0] == "00ff"
    assert capture.stages[0].listings["native"] == SYMBOLIC


def test_seconds_from_a_log_and_from_what_was_printed(tmp_path: Path) -> None:
    printed = "".join(
        f"{name:>50} started...\n\x1b[32m{name:>50} {seconds:.3f} seconds\x1b[0m\n"
        for name, seconds in [("APass", 0.5), ("BPass", 1.25), ("BPass", 0.0)]
    )
    assert entries(printed) == [("APass", 0.5), ("BPass", 1.25), ("BPass", 0.0)]
    assert fitted(["BPass", "BPass"], printed) == [1.25, 0.0]
    assert fitted(["BPass", "CPass"], printed) is None
    shutil.copytree(OLD / "outs", tmp_path / "outs")
    assert opscope.open(tmp_path / "outs").stages[1].seconds is None
    log = tmp_path / "stdout"
    names = [f.stem.partition("_")[2] for f in sorted((OLD / "outs").iterdir())][1:]
    log.write_text("".join(f"\x1b[32m{name:>50} 0.5 seconds\x1b[0m\n" for name in names))
    assert [s.seconds for s in opscope.open(tmp_path / "outs", profile=log).stages] == [None, *[0.5] * 6]
    log.write_text("nothing")
    with pytest.raises(opscope.BadInput, match="not the times of these passes"):
        opscope.open(tmp_path / "outs", profile=log)


def test_a_stage_that_is_missing_is_said(tmp_path: Path) -> None:
    shutil.copytree(NEW / "outs", tmp_path / "outs")
    (tmp_path / "outs" / "2_SubgraphRewritePass.json").unlink()  # its text is still there
    (tmp_path / "outs" / "4_SelectiveQuantizePass.json").unlink()
    (tmp_path / "outs" / "4_SelectiveQuantizePass.txt").unlink()
    capture = opscope.open(tmp_path / "outs")
    assert [stage.graph.n_nodes for stage in capture.stages] == [24, 24, 30, 30, 30, 8, 8]
    assert any("passes 4 are not" in warning for warning in capture.warnings)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.txt", "Graph(x: float32[1]){\n  what is this\n}", "line 2 is neither a constant nor an operator"),
        ("a.txt", "Graph(x: float32[1]){\n  x_1: float32[1] = Relu(x)\n", "the graph has no end"),
        ("a.txt", "Graph(x){\n}", "'x' is not `name: type`"),
        ("a.json", '{"graphs": [{"arguments": 1, "dataType": 2}]}', "graphs[0] has no list 'nodes'"),
        ("a.json", '{"graphs": [], "arguments": 1, "dataType": 2}', "'graphs' is missing or empty"),
        ("a.json", '{"graphs": [{"nodes": [{}]}], "arguments": 1, "dataType": 2}', "'type' of node 0"),
        ("a.json", '{"graphs": [{"nodes": [{}]}], "arguments": 1, "dataType": ', "bad JSON"),
    ],
)
def test_bad_files_give_one_line(name: str, text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(opscope.BadInput) as caught:
        opscope.open(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: not a Hidet graph: ")
    assert problem in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("version", "dialect", "name"),
    [("0.2.1", "0.2", "0_Origin"), ("0.6.1", "0.6", "0_Origin"), ("0.2.1", "0.2", "5_FuseOperatorPass")],
)
def test_dump_writes_what_hidet_writes(version: str, dialect: str, name: str) -> None:
    path = HIDET / version / "outs" / f"{name}.json"
    out = io.StringIO()
    dump(opscope.open(path), out, dialect=dialect)
    assert out.getvalue() == path.read_text()


def test_dump_of_fused_operators_is_read_again() -> None:
    before = opscope.open(NEW / "outs" / "6_FuseOperatorPass.json")
    out = io.StringIO()
    dump(before, out)
    again = opscope.opening.from_bytes("again.json", out.getvalue().encode())
    assert opscope.diff(before, again).is_empty


def test_any_capture_can_be_dumped() -> None:
    capture = opscope.open(DATA / "torch" / "net.pt2")
    out = io.StringIO()
    dump(capture, out)
    again = opscope.opening.from_bytes("again.json", out.getvalue().encode())
    assert again.graph.n_nodes == capture.graph.n_nodes
    with pytest.raises(opscope.OpscopeError, match="neither a hidet FlowGraph"):
        dump(3, out)


# -- what the page gets, and the command line -------------------------------------------------------


def test_captures_with_changes_say_what_each_stage_did() -> None:
    capture = with_changes(opscope.open(OLD / "outs"))
    verify_capture(capture)
    (changes,) = capture.facts("changes", 5)
    assert [CHANGE_CLASSES[i] for i in changes.columns["class"].values].count("fused") == 7
    (link,) = [link for link in capture.stage_links if link.after == 5]
    assert (link.kind, link.evidence, len(link.source)) == ("lowers", "structure", 35)
    links = len(capture.stage_links)
    assert len(with_changes(capture).stage_links) == links == 6
    assert text_of(golden.round_trip(capture)) == text_of(capture)


def run(*args: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(cli, [str(a) for a in args])
    return done.exit_code, done.stdout, done.stderr


def test_diff_along_the_stages() -> None:
    code, out, _ = run("diff", OLD / "outs")
    assert code == 0
    assert "3 Matmul + 3 Add → Matmul + Add + 3 StridedSlice" in out
    assert out.count("nothing changed") == 3
    code, out, _ = run("diff", OLD / "outs", "--json")
    stages = json.loads(out)["stages"]
    assert [len(stage["changes"]) for stage in stages] == [0, 1, 0, 3, 7, 0]


def test_diff_of_two_files_and_of_two_stages() -> None:
    code, out, _ = run("diff", OLD / "graph_before.txt", OLD / "outs" / "2_SubgraphRewritePass.json", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"changes", "summary"}
    (change,) = found["changes"]
    assert set(change) == {"class", "before", "after", "evidence", "detail"}
    assert [node["op"] for node in change["after"]] == ["Matmul", "Add", *["StridedSlice"] * 3]
    assert found["summary"]["same"] == 14
    code, out, _ = run("diff", OLD / "outs", "--from", "1_FoldConstantPass", "--to", "2_SubgraphRewritePass", "--json")
    assert json.loads(out)["summary"] == found["summary"]


def test_diff_as_a_page(tmp_path: Path) -> None:
    code, _, err = run("diff", NEW / "outs", "--html", tmp_path / "diff.html")
    page = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert code == 0
    assert "written" in err
    # It is the page itself, with every stage and what each changed inside.
    assert "opscope" in page
    assert "src=" not in page.partition("</head>")[0]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("nodes>+5%", 0),
        ("nodes<-50%", 1),
        ("nodes<0", 1),
        ("macs>+5%", 0),
        ("macs>=0", 1),
        ("params>0", 0),
        ("memory>1k", 1),
        ("changes>0", 1),
        ("moved>0", 0),
    ],
)
def test_conditions(condition: str, code: int) -> None:
    assert run("diff", OLD / "outs", "--fail-on", condition)[0] == code


@pytest.mark.parametrize(
    "args",
    [
        ["--fail-on", "nodes"],
        ["--fail-on", "speed>1"],
        ["--fail-on", "added>5%"],
        ["--from", "nowhere"],
        ["missing.json"],
    ],
)
def test_bad_usage_is_one_line_and_code_two(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from opscope.cli import main

    with pytest.raises(SystemExit) as stopped:
        main(["diff", str(OLD / "outs"), *args])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_printed_graphs_are_found_in_any_output(tmp_path: Path) -> None:
    """After megabytes of other text, indented, behind what a logger writes, and beside one that is cut off."""
    before, after = ((OLD / f"graph_{which}.txt").read_text() for which in ("before", "after"))
    log = tmp_path / "run.log"
    noise = "epoch 1, loss 0.25 (nothing of interest)\n" * 60_000
    indented = "".join(f"        {line}\n" for line in after.splitlines())
    log.write_text(
        f"{noise}[INFO] optimizing: {before}\nmore {{\n{indented}\nGraph(x: float32[1]){{\n  what is this\n}}\n"
    )
    found = opscope.open(log)
    assert [stage.graph.n_nodes for stage in found.stages] == [20, 7]
    assert found.origin.format == "hidet"
    assert [stage.listings["native"].rstrip() for stage in found.stages] == [before.rstrip(), after.rstrip()]
    (warning,) = found.all_warnings()
    assert "another graph in the text could not be read" in warning
    log.write_text(noise + "Graph(x) {\n  what is this\n")
    with pytest.raises(opscope.BadInput, match=r"run.log: not a Hidet graph: line 60001"):
        opscope.open(log)
    log.write_text(noise)
    with pytest.raises(opscope.BadInput, match="not a format opscope knows"):
        opscope.open(log)
