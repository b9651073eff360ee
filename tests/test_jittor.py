"""Jittor traces: the four files of the specification and a collection of odd ones, all real."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest

import opscope
from conftest import DATA
from golden import check
from opscope.ir import Graph, Node, Value
from opscope.readers import jittor

JITTOR = DATA / "jittor"
TRACES = sorted(path.relative_to(JITTOR).as_posix() for path in JITTOR.rglob("*.pkl"))


@pytest.mark.parametrize("trace", TRACES)
def test_golden(trace: str, overwrite: bool) -> None:
    check(JITTOR / trace, f"jittor/{Path(trace).stem}.txt", overwrite)


def graph_of(trace: str) -> Graph:
    return opscope.open(JITTOR / trace).graph


def warnings_of(trace: str) -> str:
    return "\n".join(opscope.open(JITTOR / trace).all_warnings())


def named(graph: Graph, name: str) -> list[Value]:
    return [value for value in graph.values if value.name == name]


# The figures of the raw dumps, counted here without opscope.
@pytest.mark.parametrize("trace", [t for t in TRACES if "level1" not in t])
def test_nothing_is_lost(trace: str) -> None:
    raw = pickle.loads((JITTOR / trace).read_bytes())
    ops = {i: n for i, n in raw["node_data"].items() if n["attrs"]["is_var"] == "0"}
    variables = {i for i, n in raw["node_data"].items() if n["attrs"]["is_var"] == "1"}
    read = [i for n in ops.values() for i in n["inputs"]]
    capture = opscope.open(JITTOR / trace)
    graph = capture.graph
    assert graph.n_nodes == len(ops)
    assert graph.n_values == len(variables | set(read))
    assert graph.n_edges == len(read)
    assert len(graph.groups["kernel"]) == len(raw["execute_op_info"])
    grads = [n["attrs"]["grad_op_id"] for n in ops.values() if "grad_op_id" in n["attrs"]]
    missing = [g for g in grads if int(g) not in ops]
    assert len(graph.links_of("grad")) == len(grads) - len(missing)
    for target in set(missing):
        assert f"of operator {target}, which is not in the trace" in warnings_of(trace)
    ids = capture.tables["jittor id by node"].columns["id"].values
    for node in graph.nodes:
        entry = ops[int(ids[node.index])]
        assert node.op == entry["attrs"]["name"]
        assert (node.phase == "backward") == ("grad_op_id" in entry["attrs"])


@pytest.mark.parametrize("trace", TRACES)
def test_rows_are_in_execution_order(trace: str) -> None:
    graph = graph_of(trace)
    for node in graph.nodes:
        for value in node.inputs:
            assert value is not None
            assert value.producer is None or value.producer.index < node.index
    seen: set[int] = set()
    first = (
        [n for n in graph.groups["kernel"].member.tolist() if not (n in seen or seen.add(n))] if graph.groups else []
    )
    assert first == list(range(graph.n_nodes))


def test_training_of_resnet() -> None:
    graph = graph_of("resnet_train.pkl")
    assert (graph.n_nodes, graph.n_values, graph.n_edges) == (3502, 3502, 4220)
    assert len(graph.groups["kernel"]) == 797
    assert len(graph.links["grad"]) == 1007
    assert Counter(node.phase for node in graph.nodes)["backward"] == 1010
    (warning,) = opscope.open(JITTOR / "resnet_train.pkl").all_warnings()
    assert "3 backward operators" in warning
    assert "3623" in warning


def test_scopes_and_frames() -> None:
    graph = graph_of("resnet_train.pkl")
    conv = next(n for n in graph.nodes if n.path == "resnet18/layer1/0/conv1" and n.phase == "forward")
    assert [(s.name, s.cls) for s in conv.scopes][:3] == [
        ("resnet18", "ResNet"),
        ("layer1", "Sequential"),
        ("0", "BasicBlock"),
    ]
    assert conv.frames[0].file.endswith("gen_seed.py")
    assert conv.frames[0].line == 105
    backward = {n.path for n in graph.nodes if n.phase == "backward"}
    assert "resnet18/layer1/0/conv1" in backward  # gradients are in the module they belong to


def test_details_from_the_jit_key() -> None:
    graph = graph_of("resnet_train.pkl")

    def of(path: str, op: str) -> Node:
        return next(n for n in graph.nodes if n.path == path and n.op == op and n.phase == "forward")

    # The first convolution of ResNet: 7×7, stride 2, padding 3.
    assert of("resnet18/conv1", "reindex").attrs["index"] == ["i0", "i2", "i3*2-3+i5*1", "i4*2-3+i6*1"]
    assert of("resnet18/conv1", "broadcast_to").attrs["broadcast_dims"] == [0, 3, 4]
    assert of("resnet18/conv1", "reduce.add").attrs == {"kind": "add", "dims": 7, "reduce_dims": [2, 5, 6]}
    assert "for (int i0=0" in of("resnet18/maxpool", "code").attrs["code"]
    assert {n.attrs.get("value") for n in graph.nodes if n.op == "array"} >= {0, 1, None}


def test_an_updated_parameter_is_the_same_parameter() -> None:
    graph = graph_of("quirks/two_steps_adam.pkl")
    versions = named(graph, "fc1.weight")
    assert len(versions) == 3  # as created, after the first step, after the second
    assert {value.role for value in versions} == {"parameter"}
    assert len({value.storage.index for value in versions}) == 1
    assert versions[0].storage == versions[0]
    assert {value.role for value in named(graph_of("resnet_train.pkl"), "bn1.running_mean")} == {"buffer"}


def test_parameters_whose_names_were_lost_are_kept_apart() -> None:
    graph = graph_of("quirks/localfirst_names_lost.pkl")
    assert len(named(graph, "weight")) == 4
    assert len({value.storage.index for value in named(graph, "weight")}) == 2
    assert "several parameters are called" in warnings_of("quirks/localfirst_names_lost.pkl")


def test_a_recording_that_began_midway() -> None:
    graph = graph_of("quirks/midway_step2_adam.pkl")
    before = [graph.value(i) for i in graph.inputs.tolist()]
    assert len(before) == 12
    assert {str(value.type) for value in before} == {"?"}
    assert sum(len(value.users) for value in before) == 20
    assert "12 variables" in warnings_of("quirks/midway_step2_adam.pkl")
    assert "read 20 times" in warnings_of("quirks/midway_step2_adam.pkl")


def test_what_a_live_capture_knows_of_earlier_variables() -> None:
    raw = pickle.loads((JITTOR / "quirks/midway_step2_adam.pkl").read_bytes())
    known = {1515: jittor.KnownVar("fc1.weight", "float32", (8, 4), "parameter")}
    capture = jittor.from_dump(raw, origin={}, known=known)
    value = capture.graph.value(int(capture.graph.inputs[0]))
    assert (value.name, str(value.type), value.role) == ("fc1.weight", "float32[8,4]", "parameter")
    assert "11 variables" in capture.stages[0].warnings[0]


def test_higher_order_gradients_are_chains_of_links() -> None:
    links = graph_of("quirks/second_order.pkl").links["grad"]
    second = set(links.source.tolist()) & set(links.target.tolist())
    assert len(second) > 5


def test_optimizer_steps_in_a_script_without_functions() -> None:
    """There Jittor calls every line with the optimizer `Adam_init`."""
    graph = graph_of("quirks/module_level_script.pkl")
    updates = [v.producer for v in graph.values if v.name == "0.weight" and v.storage != v]
    assert [node.phase for node in updates if node is not None] == ["optimizer"]
    lines = {node.frames[-1].line: node.phase for node in graph.nodes if node.path == "Adam_init"}
    assert set(lines.values()) == {"init", "optimizer"}


def test_an_optimizer_of_ones_own() -> None:
    raw = pickle.loads((JITTOR / "simple_model_train.pkl").read_bytes())
    for node in raw["node_data"].values():
        for entry in node["stacks"]:
            if entry["type"] == "SGD" and entry["name"] == "opt":
                entry["type"] = "MyMomentum"
    graph = jittor.from_dump(raw, origin={}).graph
    assert {n.phase for n in graph.nodes if n.path == "opt"} == {"optimizer"}


def test_level_1_and_3_say_what_they_lack() -> None:
    assert "the trace is empty" in warnings_of("quirks/level1_mlp_train.pkl")
    assert "module names are not in the trace" in warnings_of("quirks/level3_mlp_train.pkl")
    graph = graph_of("quirks/level3_mlp_train.pkl")
    assert Counter(n.phase for n in graph.nodes) == Counter(
        n.phase for n in graph_of("quirks/level2_mlp_train.pkl").nodes
    )
    assert graph.node(0).frames[-1].function == "random"


def test_values_of_variables() -> None:
    table = opscope.open(JITTOR / "quirks/vardata_mlp.pkl").tables["value statistics"]
    assert len(table.index) == 17
    graph = graph_of("quirks/vardata_mlp.pkl")
    row = next(i for i, v in enumerate(table.index.tolist()) if graph.value(v).name == "fc1.bias")
    assert table.columns["values"].values[row][:2] == [0.090154, 0.222683]
    assert table.columns["min"].values[row] == -0.373718


def test_times_of_kernels() -> None:
    table = opscope.open(JITTOR / "quirks/profiled_mlp_train.pkl").tables["times"]
    graph = graph_of("quirks/profiled_mlp_train.pkl")
    groups = graph.groups["kernel"]
    assert table.by == "group:kernel"
    random = [i for i in range(len(groups)) if graph.pools.strings[int(groups.name[i])] == "random"]
    assert [table.columns["time"].values[i] for i in random] == [605.0] * 4
    assert table.columns["time"].unit == "ns"
    ready_made = [i for i in range(len(groups)) if groups.attrs[i] == 0]
    assert not table.columns["time"].known[ready_made].any()  # numpy data: the profiler has no time for it


def test_a_report_is_only_taken_by_name_or_on_request(tmp_path: Path) -> None:
    trace = JITTOR / "quirks/level2_mlp_train.pkl"
    assert "times" not in opscope.open(trace).tables
    assert "times" in opscope.open(trace, profile=JITTOR / "quirks/profiled_report.json").tables
    other = tmp_path / "other.json"
    other.write_text('{"Name": 1}')
    with pytest.raises(opscope.BadInput, match=r"not a report of jt\.profile_scope"):
        opscope.open(trace, profile=other)


def test_sources_are_embedded() -> None:
    capture = opscope.open(JITTOR / "simple_model_train.pkl", sources=[JITTOR])
    script = next(text for path, text in capture.sources.items() if path.endswith("gen_seed.py"))
    node = next(n for n in capture.graph.nodes if n.path == "model/linear1" and n.op == "reduce.add")
    assert script.splitlines()[node.frames[-1].line - 1].strip() == "x = self.linear1(x)"
    groups = capture.graph.groups["kernel"]
    kernel = groups.of_node(node.index)[0]
    assert "void jittor::FusedOp::jit_run()" in capture.pools.strings[int(groups.code[kernel])]
    assert not opscope.open(JITTOR / "simple_model_train.pkl").sources


def test_sources_of_another_version_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "gen_seed.py").write_text("too short\n")
    capture = opscope.open(JITTOR / "simple_model_train.pkl", sources=[tmp_path])
    assert not capture.sources
    assert "another version" in "\n".join(capture.warnings)


def test_sources_that_fit_equally_well_but_differ_are_not_guessed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gen_seed.py").write_text(f"# {name}\n" * 200)
    assert not opscope.open(JITTOR / "simple_model_train.pkl", sources=[tmp_path]).sources
    (tmp_path / "jittor").mkdir()  # the capture names …/jittor/gen_seed.py: now one fits better
    (tmp_path / "jittor" / "gen_seed.py").write_text("# right\n" * 200)
    (text,) = opscope.open(JITTOR / "simple_model_train.pkl", sources=[tmp_path]).sources.values()
    assert text.startswith("# right")


def test_a_module_listed_twice_is_one_scope() -> None:
    """Jittor lists `ln1/ln1`; the name of the parameter it reads says that it is one module."""
    from opscope.readers.jittor.places import without_repeats

    twice = (("net", "Net"), ("ln1", "LayerNorm"), ("ln1", "LayerNorm"))
    assert without_repeats(twice, ["ln1.weight"]) == twice[:2]
    nested = (("net", "Net"), ("0", "Sequential"), ("0", "Sequential"))
    assert without_repeats(nested, ["0.0.weight"]) == nested
    assert without_repeats(nested, []) == nested  # no evidence: as recorded
