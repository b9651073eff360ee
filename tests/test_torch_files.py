"""PyTorch's files, read without PyTorch: exported programs, TorchScript archives, Chakra traces. All samples are real.

`facts.json` is what torch said of each when it was made (tests/data/torch/make_samples.py).
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope
from conftest import DATA
from golden import check
from opscope.ir import Graph, Node, Value
from opscope.opening import from_bytes

TORCH = DATA / "torch"
FACTS: dict[str, Any] = json.loads((TORCH / "facts.json").read_text(encoding="utf-8"))
PT2 = sorted(path.name for path in TORCH.glob("*.pt2"))
SCRIPTS = sorted(name for name in FACTS if name.endswith(".pt"))
READABLE = [*PT2, *SCRIPTS, "mobile.ptl", "chakra.json"]


@pytest.mark.parametrize("name", READABLE)
def test_golden(name: str, overwrite: bool) -> None:
    check(TORCH / name, f"torch/{name}.txt", overwrite)


def graph_of(name: str) -> Graph:
    return opscope.open(TORCH / name).graph


def everything(graph: Graph) -> Iterator[Node]:
    """All nodes, also those in bodies."""
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from everything(body.graph)


def named(graph: Graph, name: str) -> Value:
    (found,) = [value for value in graph.values if value.name == name and value.producer is None]
    return found


def node_of(graph: Graph, name: str) -> Node:
    (found,) = [node for node in everything(graph) if node.name == name]
    return found


def used(node: Node) -> dict[str, str]:
    return {use.arg: use.value.name if use.value else "" for use in node.uses}


@pytest.mark.parametrize("name", READABLE)
def test_nothing_is_read_before_it_is_made(name: str) -> None:
    for stage in opscope.open(TORCH / name).stages:
        for node in everything(stage.graph):
            for value in node.inputs:
                assert value is None or value.producer is None or value.producer.index < node.index


def test_torch_is_not_needed() -> None:
    code = f"import sys, opscope; opscope.open({str(TORCH / 'net.pt2')!r}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- exported programs --------------------------------------------------------------------------------


def like_torch(graph: Graph, facts: dict[str, Any]) -> None:
    assert graph.n_nodes == facts["nodes"]
    assert len(graph.inputs) == len(facts["inputs"])
    assert len(graph.outputs) == facts["outputs"]
    ours = [node.op for node in graph.nodes]
    for op, target in zip(ours, facts["targets"], strict=True):
        short = target.removesuffix(".default")
        assert op.removeprefix("higher_order.") == short or f"<built-in function {op.partition('.')[2]}>" == short
    bodies = [body.graph for node in graph.nodes for body in node.bodies]
    assert len(bodies) == len(facts["bodies"])
    for body, expected in zip(bodies, facts["bodies"], strict=True):
        like_torch(body, expected)


@pytest.mark.parametrize("name", PT2)
def test_the_graph_is_what_torch_says(name: str) -> None:
    capture = opscope.open(TORCH / name)
    facts = FACTS[name]
    like_torch(capture.graph, facts)
    for place, fqn in facts.get("signature", {}).items():
        value = named(capture.graph, fqn)
        assert value.role == ("parameter" if place.startswith("p_") else "buffer")
    assert capture.origin.framework == "torch"
    assert capture.origin.version == facts.get("torch", "")


@pytest.mark.parametrize("name", ["net.pt2", "net_strict.pt2", "legacy.pt2"])
def test_modules_calls_and_lines(name: str) -> None:
    graph = graph_of(name)
    linear = node_of(graph, "linear_1")
    assert linear.path == "layers/1/fc"
    assert [scope.cls for scope in linear.scopes] == ["Sequential", "Block", "Linear"]
    assert (linear.frames[-1].file.endswith("torch/nn/modules/linear.py")) == (name != "net_strict.pt2")
    assert any(frame.file.endswith("make_samples.py") for frame in linear.frames)
    assert linear.frames[-1].function == "forward"
    assert used(linear) == {"input": "add_1", "weight": "layers.1.fc.weight", "bias": "layers.1.fc.bias"}
    assert [node_of(graph, f"linear_{i}").path for i in (2, 3)] == ["shared/fc", "shared#2/fc#2"]
    assert node_of(graph, "mul").path == ""
    cat = node_of(graph, "cat")
    assert used(cat) == {"tensors[0]": "getitem_1", "tensors[1]": "getitem"}
    assert cat.attrs == {"dim": -1}
    assert [str(value.type) for value in node_of(graph, "topk").outputs] == ["float32[2,3,2]", "int64[2,3,2]"]
    assert node_of(graph, "to").attrs == {"dtype": "bfloat16"}


def test_weights_that_are_one_share_a_storage() -> None:
    graph = graph_of("net.pt2")
    assert named(graph, "head.weight").storage == named(graph, "tok.weight")
    left, right = node_of(graph, "chunk").outputs
    assert left.storage == right.storage == node_of(graph, "add_4").outputs[0]
    assert node_of(graph, "detach_").outputs[0].storage == node_of(graph, "lift_fresh_copy").outputs[0]


def test_new_content_of_buffers_and_inputs() -> None:
    graph = graph_of("counter.pt2")
    (count,) = node_of(graph, "add").outputs
    assert (count.name, count.role, count.storage) == ("count", "buffer", named(graph, "count"))
    (cache,) = node_of(graph, "copy").outputs
    assert cache.storage == named(graph, "cache")
    norm = node_of(graph, "_native_batch_norm_legit_functional")
    assert [value.name for value in norm.outputs][3:] == ["bn.running_mean", "bn.running_var"]
    assert norm.outputs[0].storage == norm.outputs[0]


def test_symbolic_sizes() -> None:
    capture = opscope.open(TORCH / "sized.pt2")
    graph = capture.graph
    assert str(named(graph, "x").type) == "float32[s31,s27,4]"
    reshape = node_of(graph, "reshape")
    assert str(reshape.outputs[0].type) == "float32[s27*s31,4]"
    assert reshape.attrs == {"shape": ["s27*s31", 4]}
    assert used(reshape) == {"self": "x", "shape[0]": "mul"}
    assert str(node_of(graph, "new_full").outputs[0].type) == "float32[s31 + 1]"
    symbols = capture.stages[0].listings["symbols"].splitlines()
    assert symbols[:3] == ["1 <= u0 <= 64", "0 <= s31 <= 64", "2 <= s27"]
    assert "L['mask'].size()[0] == L['x'].size()[0]" in symbols


def test_branches_and_loops_of_programs() -> None:
    graph = graph_of("branches.pt2")
    outer = node_of(graph, "map_impl"), *(n for n in graph.nodes if n.op.endswith(("cond", "while_loop")))
    assert [[body.label for body in node.bodies] for node in outer] == [
        ["f"],
        ["true_fn", "false_fn"],
        ["cond_fn", "body_fn"],
    ]
    cond = outer[1]
    assert [use.arg for use in cond.uses] == ["pred", "operands[0]"]
    for body in cond.bodies:
        assert body.bindings == ((body.graph.inputs[0], cond.uses[1].value.index if cond.uses[1].value else -1),)
    (inner,) = [node for node in cond.bodies[0].graph.nodes if node.bodies]
    assert [[node.op for node in body.graph.nodes] for body in inner.bodies] == [["aten.sin"], ["aten.cos"]]


def test_forward_and_backward_in_one_program() -> None:
    capture = opscope.open(TORCH / "joint.pt2")
    graph = capture.graph
    phases = [node.phase for node in graph.nodes]
    assert phases == ["forward"] * 25 + ["backward"] * 54
    assert node_of(graph, "div").phase == "forward"  # the loss
    gradients = {value.name for value in graph.values if value.role == "gradient"}
    assert gradients == {f"net.{i}.{kind}.grad" for i in (0, 1, 3) for kind in ("weight", "bias")}
    assert not graph.links
    assert "no grad links" in capture.all_warnings()[0]


def test_the_json_inside_and_models_beside_each_other() -> None:
    with zipfile.ZipFile(TORCH / "net.pt2") as archive:
        text = archive.read("net/models/model.json")
    assert from_bytes("model.json", text).graph.n_nodes == 24
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("p/archive_format", "pt2")
        archive.writestr("p/models/encode.json", text)
        archive.writestr("p/models/decode.json", text)
    capture = from_bytes("two.pt2", out.getvalue())
    assert [(stage.name, stage.graph.n_nodes) for stage in capture.stages] == [("encode", 24), ("decode", 24)]


# -- TorchScript --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCRIPTS)
def test_operators_are_those_of_torch(name: str) -> None:
    """Counted against torch's own inlined graph. That still has the branches which literals or saved attributes
    rule out; where there are any, the operators that remain are at most as many."""
    ours = Counter(node.op.replace(".", "::") for node in everything(graph_of(name)))
    theirs = Counter(FACTS[name]["kinds"])
    ruled_out = {
        "scripted.pt": {"aten::relu_", "prim::If", "aten::len"},
        "frozen.pt": {"aten::len"},  # of a list that is written out
        "function.pt": {"aten::relu_", "prim::If"},
    }
    for kind in set(ours) | set(theirs):
        if not kind.startswith(("aten::", "quantized::", "prim::If", "prim::Loop")):
            continue
        if name == "recurrent.pt" or kind in ruled_out.get(name, ()):
            assert ours[kind] <= theirs[kind], kind
        else:
            assert ours[kind] == theirs[kind], kind


def test_what_torch_itself_scripts() -> None:
    """`forward(s, x)`, functions called through a name, an LSTM, branches that saved attributes choose."""
    capture = opscope.open(TORCH / "recurrent.pt")
    found = Counter(node.op for node in everything(capture.graph))
    assert {op: found[f"aten.{op}"] for op in ("lstm", "batch_norm", "adaptive_avg_pool2d", "transpose")} == {
        "lstm": 1, "batch_norm": 1, "adaptive_avg_pool2d": 1, "transpose": 1,
    }  # fmt: skip
    (lstm,) = [node for node in everything(capture.graph) if node.op == "aten.lstm"]
    assert lstm.path == "lstm"
    assert "lstm.weight_ih_l1" in used(lstm).values()
    (warning,) = capture.all_warnings()
    assert "branches that attributes of modules choose are shown as they were saved: training" in warning


@pytest.mark.parametrize("name", SCRIPTS)
def test_parameters_have_their_shapes(name: str) -> None:
    graph = graph_of(name)
    for kind, role in (("parameters", "parameter"), ("buffers", "buffer")):
        ours = {v.name: list(v.type.shape or ()) for v in graph.values if v.role == role and v.producer is None}
        # A traced module keeps a tied weight in one of its places only; named_parameters gives it there, too.
        assert ours == FACTS[name][kind]


def test_scripted_control_flow() -> None:
    capture = opscope.open(TORCH / "scripted.pt")
    graph = capture.graph
    assert [str(graph.value(int(i)).name) for i in graph.inputs[-4:]] == ["x", "n", "names", "other"]
    assert [str(graph.value(int(i)).type) for i in graph.inputs[-4:]] == ["?", "int[]", "Dict[str, Tensor][…]", "?"]
    loops = [node for node in graph.nodes if node.op == "prim.Loop"]
    assert [[use.arg for use in loop.uses] for loop in loops] == [
        ["max_trip_count", "x1", "total0"],
        ["cond", "carried[0]", "x4"],
        ["parts"],
    ]
    assert loops[2].attrs == {"max_trip_count": 3}  # the length of a list that was saved
    first = loops[0].bodies[0].graph
    (branch,) = [node for node in first.nodes if node.op == "prim.If"]
    assert [body.label for body in branch.bodies] == ["then", "else"]
    then, other = ([node.op for node in body.graph.nodes] for body in branch.bodies)
    assert then == ["aten.linear", "aten.relu", "aten.add"]
    assert other == ["aten.Float", "aten.mul", "aten.add", "aten.sum", "aten.add"]
    linear = branch.bodies[0].graph.node(0)
    assert linear.path == "block/fc"
    assert [scope.cls for scope in linear.scopes] == ["Block", "Linear"]
    assert len(graph.outputs) == 3
    # Everything a body reads is its own, or bound to what is outside.
    for node in everything(graph):
        for body in node.bodies:
            bound = {inside for inside, _ in body.bindings}
            free = [body.graph.value(int(i)) for i in body.graph.inputs if int(i) not in bound]
            assert len(free) <= (node.op == "prim.Loop" and node.uses[0].arg != "cond")


def test_scripted_code_leads_to_the_lines_that_the_user_wrote() -> None:
    capture = opscope.open(TORCH / "scripted.pt")
    source = (TORCH / "make_samples.py").read_text(encoding="utf-8").splitlines()
    (append,) = [node for node in everything(capture.graph) if node.op == "aten.append" and len(node.frames) == 1][:1]
    frame = append.frames[-1]
    assert source[frame.line - 1].strip() == "parts.append(helper(x, limit))"
    embedded = capture.sources[frame.file].splitlines()
    assert embedded[frame.line - 1] == source[frame.line - 1]
    (linear,) = [node for node in everything(capture.graph) if node.path == "more/1/fc"]
    assert [frame.function for frame in linear.frames] == ["forward"] * 3
    assert source[linear.frames[0].line - 1].strip() == "x = layer(x)"
    assert source[linear.frames[1].line - 1].strip() == "return x + self.act(self.fc(x))"
    code = capture.stages[0].listings["code"]
    assert "# code/__torch__.py\nclass Scripted(Module):" in code


def test_traced_models() -> None:
    capture = opscope.open(TORCH / "traced.pt")
    graph = capture.graph
    assert str(named(graph, "idx").type) == "int64[2,3]"  # what it was traced with
    linears = [node for node in graph.nodes if node.op == "aten.linear"]
    assert [node.path for node in linears] == ["layers/0/fc", "layers/1/fc", "shared/fc", "shared#2/fc#2", "head"]
    frames = linears[0].frames
    assert [frame.function for frame in frames][-2:] == ["forward", "forward"]
    assert frames[-1].file.endswith("nn/modules/linear.py")
    assert not any(frame.file.endswith("nn/modules/module.py") for frame in frames)
    constant = named(graph, "CONSTANTS.c0")
    assert (constant.role, constant.storage) == ("constant", constant)


# -- Chakra -------------------------------------------------------------------------------------------


def test_an_execution_trace() -> None:
    capture = opscope.open(TORCH / "chakra.json")
    graph = capture.graph
    raw = {n["id"]: n for n in json.loads((TORCH / "chakra.json").read_text())["nodes"]}
    assert FACTS["chakra.json"]["nodes"] == len(raw)
    for row, node in enumerate(graph.nodes):
        entry = raw[int(capture.tables["chakra ids"].columns["id"].values[row])]
        assert node.op.startswith(entry["name"].replace("::", "."))
    assert Counter(node.phase for node in graph.nodes) == {"forward": 16, "backward": 24, "optimizer": 18}
    assert Counter(graph.value(int(i)).role for i in graph.inputs) == {
        "parameter": 6, "state": 6, "constant": 6, "input": 4, "buffer": 1,
    }  # fmt: skip
    pairs = {
        (graph.node(int(s)).op, graph.node(int(t)).op)
        for s, t in zip(graph.links["grad"].source, graph.links["grad"].target, strict=True)
    }
    assert ("aten.native_batch_norm", "aten.native_batch_norm_backward") in pairs
    assert ("aten.addmm", "aten.mm") in pairs
    assert ("aten.relu", "aten.threshold_backward") in pairs
    steps = [node for node in graph.nodes if node.phase == "optimizer"]
    assert {node.path for node in steps} == {"training step/Optimizer.step#SGD.step"}
    assert all(node.outputs[0].storage != node.outputs[0] for node in steps)  # all in place
    (split,) = [node for node in graph.nodes if node.op == "aten.split.Tensor"]
    (cat,) = [node for node in graph.nodes if node.op == "aten.cat"]
    assert [use.value for use in cat.uses] == split.outputs
    assert [use.arg for use in cat.uses] == ["tensors[0]", "tensors[1]"]


def test_an_execution_trace_in_the_older_layout() -> None:
    raw = json.loads((TORCH / "chakra.json").read_text())
    for node in raw["nodes"]:
        node["parent"] = node.pop("ctrl_deps")
        node |= {attr["name"]: attr["value"] for attr in node.pop("attrs")}
        for kind in ("input", "output"):
            block = node.pop(f"{kind}s")
            node |= {f"{kind}s": block["values"], f"{kind}_shapes": block["shapes"], f"{kind}_types": block["types"]}
    old = from_bytes("old.json", json.dumps({**raw, "schema": "1.0.1"}).encode()).graph
    new = graph_of("chakra.json")
    assert (old.n_nodes, old.n_values, old.n_edges) == (new.n_nodes, new.n_values, new.n_edges)
    assert len(old.links["grad"]) == len(new.links["grad"])


# -- files that are not what they seem ----------------------------------------------------------------


def changed(name: str, change: Callable[[dict[str, bytes]], None]) -> bytes:
    with zipfile.ZipFile(TORCH / name) as archive:
        members = {info.filename: archive.read(info.filename) for info in archive.infolist()}
    change(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


def setting(member: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.update({member: content})


def replacing(member: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        assert old in members[member]
        members[member] = members[member].replace(old, new)

    return change


CODE = "scripted/code/__torch__.py"
DEEP = b'{"graph_module": ' + b"[" * 100_000
EVIL = b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R."
BOMB = b"\x80\x02}(" + b")" + b"\x86".join([b"2"] * 60) + b"\x86NK\x01u."


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("net.pt2", setting("net/models/model.json", b"{"), "bad JSON"),
        ("net.pt2", setting("net/models/model.json", b"[]"), "its JSON is a list"),
        ("net.pt2", setting("net/models/model.json", b"{}"), "graph_module is missing"),
        ("net.pt2", setting("net/models/model.json", DEEP), "nested too deep"),
        ("net.pt2", lambda m: m.pop("net/models/model.json"), r"no models/\*\.json in it"),
        ("net.pt2", lambda m: (m.clear(), m.update({"a/archive_format": b"", "a/data/aotinductor/m/x.so": b""})),
         "a compiled AOTInductor package"),
        ("net.pt2", setting("../x", b""), "points outside the file"),
        ("scripted.pt", setting("scripted/data.pkl", EVIL), "refused: data.pkl names 'os.system'"),
        ("scripted.pt", setting("scripted/constants.pkl", EVIL), "refused: constants.pkl names 'os.system'"),
        ("scripted.pt", setting("scripted/data.pkl", b"\x80\x02X\xff\xff\xff\x7fa."), "bytes are announced"),
        ("scripted.pt", setting("scripted/data.pkl", b"\x80\x02N."), "holds a NoneType, not a module"),
        ("scripted.pt", setting("scripted/data.pkl", BOMB), "not a readable pickle"),
        ("scripted.pt", lambda m: m.pop("scripted/code/__torch__.py"), "its code has no class '__torch__.Scripted'"),
        ("scripted.pt", replacing(CODE, b"if torch.gt(n, 3)", b"if torch.gt(n, 3"), "not code"),
        ("scripted.pt", replacing(CODE, b"torch.zeros([4])", b"a" + b".a" * 300_000), "too deep"),
        ("scripted.pt", replacing(CODE, b"torch.zeros([4])", b"(" * 150 + b")" * 150), None),
        ("scripted.pt", replacing(CODE, b"__torch__.helper(x7", b"self.forward(x7"), "nested more"),
    ],
)  # fmt: skip
def test_bad_files_get_one_clear_line(name: str, change: Any, words: str | None) -> None:
    data = changed(name, change)
    if words is None:
        from_bytes("bad", data)
        return
    with pytest.raises(opscope.BadInput, match=words) as error:
        from_bytes("bad", data)
    assert str(error.value).startswith("bad: ")
    assert "\n" not in str(error.value)


def test_code_that_multiplies_itself_is_stopped() -> None:
    """Each function calls the one before it twice: 2^60 operators, put in where they are called."""
    functions = "def f0(x: Tensor) -> Tensor:\n  return torch.relu(x)\n" + "".join(
        f"def f{i}(x: Tensor) -> Tensor:\n  return __torch__.f{i - 1}(__torch__.f{i - 1}(x, ), )\n"
        for i in range(1, 61)
    )
    data = changed(
        "function.pt",
        lambda m: m.update(
            {
                "function/code/__torch__.py": m["function/code/__torch__.py"].replace(
                    b"__torch__.torch.nn.functional.relu(x, False, )", b"__torch__.f60(x, )"
                )
                + functions.encode()
            }
        ),
    )
    with pytest.raises(opscope.BadInput, match="come to more than"):
        from_bytes("bad", data)


def test_what_is_not_understood_is_said() -> None:
    change = replacing("scripted/code/__torch__.py", b"total = torch.zeros([4])", b"total = [i for i in x0]")
    capture = from_bytes("odd.pt", changed("scripted.pt", change))
    assert "parts of the code were not understood and are left out: ListComp" in capture.all_warnings()[0]


def test_a_newer_schema_is_said(tmp_path: Path) -> None:
    change = replacing("net/models/model.json", b'"schema_version": {"major": 8', b'"schema_version": {"major": 9')
    capture = from_bytes("new.pt2", changed("net.pt2", change))
    assert "written with schema 9, newer than the 8" in capture.all_warnings()[0]
