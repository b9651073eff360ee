"""TORCH_TRACE logs: every stage from Dynamo to the kernels, what each kernel computes, and where it is from."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

import opscope
from conftest import DATA
from golden import check
from opscope.analysis import summary
from opscope.ir import verify_capture
from opscope.readers.torch.compiler import kernels, log, printed, wrapper
from opscope.readers.torch.compiler.compilation import Part

LOGS = DATA / "torch" / "trace"
BLOCKS = LOGS / "blocks-cpu.log.gz"  # three blocks, forward and backward, torch 2.13 on the CPU
LOSS = LOGS / "loss-h200.log.gz"  # a loss on an H200, torch 2.11 with Triton, after three graph breaks

USER = LOGS / "user-h200.log.gz"  # a Triton kernel of the user's between a product and what Inductor fuses behind it


@pytest.mark.parametrize("path", [BLOCKS, LOSS], ids=lambda path: path.name)
def test_golden(path: Path, overwrite: bool) -> None:
    check(path, f"torch/{path.name.partition('.')[0]}.txt", overwrite)


def texts(path: Path) -> list[log.Entry]:
    with gzip.open(path) as file:
        return log.parse(file).entries


@pytest.mark.parametrize("path", [BLOCKS, LOSS], ids=lambda path: path.name)
def test_counts_are_those_of_the_text(path: Path) -> None:
    """Every line that assigns the result of a call is an operator, but for those that pick one of several results."""
    capture = opscope.open(path)
    by_name = {stage.name: stage.graph for stage in capture.stages}
    for kind, name in (("dynamo_output_graph", "dynamo"), ("aot_forward_graph", "forward")):
        (text,) = [entry.text for entry in texts(path) if entry.kind == kind]
        calls = re.findall(r"^ +\w+(?:: \"[^\"]*\")? = .*[(\[@+*/-].*$", text, re.MULTILINE)
        several = set(re.findall(r"^ +(\w+) = torch\.ops\.", text, re.MULTILINE))
        picks = [line for line in calls if (m := re.search(r" = (\w+)\[\d+\]", line)) and m[1] in several]
        assert by_name[name].n_nodes == len(calls) - len(picks), name


def test_stages_are_made_from_each_other() -> None:
    capture = opscope.open(BLOCKS)
    after = {stage.name: None if stage.after is None else capture.stages[stage.after].name for stage in capture.stages}
    assert after == {
        "dynamo": None,
        "pre-grad before": "dynamo",
        "pre-grad": "pre-grad before",
        "joint": "pre-grad",
        "forward": "joint",
        "backward": "joint",
        "post-grad before forward": "forward",
        "post-grad forward": "post-grad before forward",
        "kernels forward": "post-grad forward",
        "post-grad before backward": "backward",
        "post-grad backward": "post-grad before backward",
        "kernels backward": "post-grad backward",
    }
    graphs = {stage.name: stage.graph for stage in capture.stages}
    assert graphs["pre-grad"] is graphs["pre-grad before"] is graphs["dynamo"]  # equal graphs are stored once


def test_modules_are_those_of_the_source() -> None:
    """The text of the model: x = emb(i); per block x + fc2(gelu(fc1(ln(x)))); softmax(head(x))."""
    graph = opscope.open(BLOCKS).stage("dynamo").graph
    found = Counter(node.path for node in graph.nodes)
    expected = {"model/emb": 1, "model/head": 1, "model": 1}  # the softmax is in the model itself
    for block in range(3):
        path = f"model/blocks/{block}"
        expected |= {path: 2, **{f"{path}/{leaf}": 1 for leaf in ("ln", "fc1", "fc2")}}
    assert found == expected
    inputs = [graph.value(int(value)) for value in graph.inputs]
    assert {value.name for value in inputs if value.role == "parameter"} >= {"blocks.0.ln.weight", "head.bias"}


@pytest.mark.parametrize("path", [BLOCKS, LOSS], ids=lambda path: path.name)
def test_every_operator_is_in_a_kernel_or_moves_nothing(path: Path) -> None:
    capture = opscope.open(path)
    for stage in capture.stages:
        if not stage.name.startswith("post-grad ") or "before" in stage.name:
            continue
        groups = stage.graph.groups["kernel"]
        assert all(len(groups.members(i)) for i in range(len(groups))), stage.name
        inside = set(groups.member.tolist())
        outside = [
            node.op
            for node in stage.graph.nodes
            if node.index not in inside and any(True for out in node.outputs for _ in out.users)
        ]
        moved = {"aten.permute", "aten.reshape", "aten.view", "operator.getitem"}
        assert {op.partition(".default")[0] for op in outside} <= moved, stage.name
        line = {int(node) for node in stage.graph.node_stack}
        assert 0 not in line


def test_inductors_own_report_agrees_with_structure() -> None:
    """What is found without the report is what the report says."""
    entries = texts(LOSS)
    at = next(i for i, entry in enumerate(entries) if entry.kind == "inductor_output_code")
    graph = printed.parse(next(e.text for e in reversed(entries[:at]) if e.kind == "inductor_post_grad_graph"))
    mappings = next(e.text for e in entries[at:] if e.kind == "inductor_provenance_tracking_node_mappings")
    reported = json.loads(mappings)["cppCodeToPost"]
    output = wrapper.parse(entries[at].text)
    assert graph is not None
    assert reported
    for launch, placed in zip(output.launches, kernels.place(graph, output, Part()), strict=True):
        # `getitem` names one result of an operator with several: it is no operator of its own.
        assert {n for n in placed.nodes if "getitem" not in n} == {
            n for n in reported[launch.handle] if "getitem" not in n
        }


def test_kernels_have_the_operators_of_their_fragments() -> None:
    """Every Triton kernel, by its own comment; a kernel of the user's is the operator that launches it."""
    for path in (LOSS, USER):
        code = "\n".join(entry.text for entry in texts(path) if entry.kind == "inductor_output_code")
        fragments: dict[str, set[str]] = {}
        for comment, name in re.findall(r"((?:^#.*\n)+)^(\w+) = async_compile\.triton\(", code, re.MULTILINE):
            calls = re.findall(r"^#\s+%(\w+) : .* = call_function\[target=([\w.]+)\]", comment, re.MULTILINE)
            fragments[name] = {node for node, target in calls if not target.endswith("getitem")}
        seen = 0
        for stage in opscope.open(path).stages:
            groups = stage.graph.groups.get("kernel")
            if groups is None or not stage.name.startswith("post-grad"):
                continue
            for i, name in enumerate(stage.graph.pools.strings[int(name)] for name in groups.name):
                operators = {stage.graph.node(int(node)) for node in groups.members(i)}
                if name == "addmul_kernel_0":
                    assert {node.op for node in operators} == {"higher_order.triton_kernel_wrapper_mutation"}
                elif name in fragments:
                    assert {node.name for node in operators} == fragments[name], name
                    seen += 1
        assert seen == {LOSS: 4, USER: 1}[path]


def test_checkpoints_and_annotations_stand_before_the_line() -> None:
    """What torch writes between `#` and `File:` is who asked for the operator, and what is to be kept of it."""
    graph = printed.parse(
        "class GraphModule(torch.nn.Module):\n"
        '    def forward(self, primals_1: "f32[4, 8]"):\n'
        "        # Annotation: {'module_fqn': 'layers.0.mlp'} ac_graph_id: 4 - PREFER_RECOMPUTE "
        "File: /home/user/m.py:7 in forward, code: x.sin()\n"
        '        sin: "f32[4, 8]" = torch.ops.aten.sin.default(primals_1)\n'
        "        # recompute: MUST_SAVE No stacktrace found for following nodes\n"
        '        cos: "f32[4, 8]" = torch.ops.aten.cos.default(sin);  sin = None\n'
        "        return (cos,)\n"
    )
    assert graph is not None
    sin, cos = graph.nodes
    assert (sin.place and sin.place[:3], sin.policy, sin.module) == (
        ("/home/user/m.py", 7, "forward"), "prefer recompute (checkpoint 4)", "layers.0.mlp",
    )  # fmt: skip
    assert (cos.place, cos.policy, cos.module) == (None, "must save", "")


def test_kernels_have_code_and_buffers() -> None:
    capture = opscope.open(LOSS)
    graph = capture.stage("kernels forward").graph
    assert [node.op for node in graph.nodes] == [
        "triton_red_fused__log_softmax__to_copy_prepare_softmax_online_view",
        "triton_poi_fused_constant_pad_nd",
        "triton_red_fused__log_softmax__to_copy_clone_nll_loss_forward_slice_sub_view",
    ]
    groups = graph.groups["kernel"]
    assert "@triton.jit" in graph.pools.strings[int(groups.code[0])]
    (pad,) = next(node for node in graph.nodes if node.index == 1).outputs
    assert str(pad.type) == "int64[8,513]"
    assert [node.index for node in pad.users] == [2]


def test_breaks_and_coverage_are_in_the_json() -> None:
    from opscope.analysis import summary

    info = summary.info(opscope.open(LOSS))
    assert (info["breaks"], info["recompiles"]) == (3, 0)
    assert all("graph break: logging.Logger method" in warning for warning in info["warnings"])
    kernels_forward = next(stage for stage in info["stages"] if stage["name"] == "kernels forward")
    assert kernels_forward["coverage"]["kernels_with_line"] == kernels_forward["coverage"]["kernels"] == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'V1118 08:00:47.6 475 torch/x.py:1] {"str": ["a", 0]}\n', "it has no graph"),
        (b'V1118 08:00:47.6 475 torch/x.py:1] {"dynamo_start": {}}\n{', "it has no graph"),
    ],
)
def test_a_log_without_a_graph(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "trace.log"
    path.write_bytes(content)
    with pytest.raises(opscope.BadInput, match=message) as caught:
        opscope.open(path)
    assert "\n" not in str(caught.value)


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.log.gz"
    path.write_bytes(BLOCKS.read_bytes()[:2000])
    with pytest.raises(opscope.BadInput, match="gzip file that is cut off or damaged"):
        opscope.open(path)


@pytest.mark.parametrize("path", [BLOCKS, LOSS], ids=lambda path: path.name)
def test_damaged_logs_are_read_or_refused(path: Path, tmp_path: Path) -> None:
    """Lines are cut, lost, doubled, swapped and changed: the graph is smaller, or one line says why there is none."""
    lines = gzip.decompress(path.read_bytes()).split(b"\n")
    source = tmp_path / "trace.log"
    for seed in range(60):
        rng = random.Random(seed)
        changed = list(lines)
        for _ in range(rng.choice([1, 3, 30])):
            at = rng.randrange(len(changed))
            line = changed[at]
            cut = rng.randrange(len(line) + 1)
            other = rng.choice(changed)
            changed[at] = rng.choice(
                [b"", line[:cut], line[cut:], line[:cut] + other[cut:], other, line.replace(b"buf1", b"buf2"),
                 line.replace(b" = ", b" == "), line.replace(b"(", b"(("), line + b"\n" + line, b"\xff\x00" + line]
            )  # fmt: skip
        source.write_bytes(b"\n".join(changed))
        with contextlib.suppress(opscope.BadInput):  # any other exception is a defect
            verify_capture(opscope.open(source))


def test_a_log_for_each_rank() -> None:
    """A folder of two ranks: each has its stages; equal graphs are stored once; collectives name their group."""
    capture = opscope.open(DATA / "torch" / "ranks")
    verify_capture(capture)
    kernels = [stage for stage in capture.stages if stage.name.startswith("kernels")]
    assert [stage.name for stage in kernels] == ["kernels forward [rank 0 0/0]", "kernels forward [rank 1 0/0]"]
    assert kernels[0].graph is kernels[1].graph
    collectives = {node.op: node for node in kernels[0].graph.nodes if node.attrs.get("collective")}
    (reduced,) = (node for op, node in collectives.items() if "all_reduce" in op)
    assert (reduced.attrs["group"], reduced.attrs["reduction"], reduced.attrs["operators"]) == (
        "0",
        "sum",
        ["all_reduce"],
    )
    (gathered,) = (node for op, node in collectives.items() if "all_gather" in op)
    assert gathered.attrs["group"] == "0"
    for stage in summary.info(capture)["stages"]:
        coverage = stage["coverage"]
        assert coverage["kernels"] == coverage["kernels_with_module"] == coverage["kernels_with_line"]
