"""The classic graphs: what each way gives, compared with torch's own objects."""

from __future__ import annotations

import inspect
import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from models import GPT, Branching, Choosing, Custom, Inner, ResNet18, Shared, Tagger

import opscope
from golden import GOLDEN, round_trip
from opscope.ir import Capture, lines_of, verify_capture
from opscope.ir.text import dump
from opscope.tracers.torch.graphs import WAYS, CannotCapture, capture, existing

MODELS = inspect.getsourcefile(Shared)
HERE = Path(__file__).parent


def captured(how: str, target, *args, **kwargs) -> Capture:
    found = capture(how, target, args, kwargs, caller=inspect.currentframe().f_back)
    verify_capture(found)
    assert found.origin.framework == "torch"
    assert found.origin.version == torch.__version__
    return found


def line_of(text: str) -> int:
    """The line of models.py that has this text."""
    lines = Path(MODELS).read_text("utf-8").splitlines()
    (found,) = [i for i, line in enumerate(lines, start=1) if text in line]
    return found


# -- goldens ----------------------------------------------------------------------------------------

X = torch.arange(12.0).view(3, 4) / 12

GOLDENS = [
    ("fx", Shared),
    ("export", Shared),
    ("export", Choosing),
    ("export-strict", Shared),
    ("jit-trace", Shared),
    ("jit-script", Branching),
    ("dynamo", Branching),
    ("joint", Shared),
    ("autograd", Custom),
]


@pytest.mark.parametrize(("how", "model"), GOLDENS, ids=lambda value: getattr(value, "__name__", value))
def test_golden(how: str, model: type, overwrite: bool):
    found = captured(how, model(), X)
    assert dump(round_trip(found)) == dump(found)
    text = readable(dump(found))
    path = GOLDEN / "torch" / f"{how}-{model.__name__}.txt"
    if overwrite:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} changed: pytest --overwrite, and look at the diff"


def readable(text: str) -> str:
    """Without what depends on the machine and on what ran before."""
    # A name in a table has quotes only if it needs them, as a folder with a space in its name does.
    text = re.sub(rf'(?<=: )"{re.escape(str(HERE))}/([\w.]+)"(?= \|)', r"\1", text)
    text = text.replace(f"{HERE}/", "").replace(torch.__version__, "VERSION")
    first = min(map(int, re.findall(r'"sequence": (\d+)', text)), default=0)
    return re.sub(r'"sequence": (\d+)', lambda match: f'"sequence": {int(match[1]) - first}', text)


# -- every way ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", WAYS)
def test_scopes_parameters_and_lines(how: str):
    """All ways know the modules, the full names of parameters, and the line of the user's code."""
    found = captured(how, Shared(), X)
    graph = found.stages[1 if how.startswith("jit") else 0].graph
    names = {value.name for value in graph.values if value.role in ("parameter", "buffer")}
    assert names >= {"inner.fc.weight", "inner.fc.bias", "more.0.fc.weight", "scale"}
    if how != "autograd":
        assert "inner.offset" in names
    paths = {node.path for node in graph.nodes}
    inside = {"inner/fc", "inner#2/fc", "more/0/fc"}
    assert paths >= inside | {"inner", "inner#2", "more/0"}
    assert inside <= {p for p in paths if p.endswith("fc")} <= inside | {"more/0/fc"}
    classes = {scope.cls for node in graph.nodes for scope in node.scopes}
    assert classes <= {"Inner", "Linear", "ModuleList", ""}
    line = line_of("torch.cat([a, b.flip(0)], 1)")
    lines = {frame.line for node in graph.nodes for frame in node.frames if frame.file == MODELS}
    assert {line, line_of("y = self.inner(self.inner(x))"), line_of("self.fc(x) + self.offset")} <= lines
    frames = [frame for node in graph.nodes for frame in node.frames]
    assert {frame.file for frame in frames} == {MODELS}
    assert found.sources[MODELS] == Path(MODELS).read_text("utf-8")


@pytest.mark.parametrize("how", WAYS)
def test_functions_work_too(how: str):
    def double_relu(x):
        return torch.relu(x * 2).sum()

    found = captured(how, double_relu, X.clone().requires_grad_())
    ops = " ".join(node.op.lower() for stage in found.stages for node in stage.graph.nodes)
    assert "relu" in ops
    assert "mul" in ops


@pytest.mark.parametrize("how", [how for how in WAYS if how not in ("dynamo", "joint", "autograd")])
def test_tied_weights_are_one_storage(how: str):
    graph = captured(how, GPT(), torch.zeros(2, 8, dtype=torch.long)).stages[-1].graph
    tied = [value for value in graph.values if value.name in ("tokens.weight", "head.weight")]
    assert len({value.storage.index for value in tied}) == 1
    others = [value for value in graph.values if value.role == "parameter" and value not in tied]
    assert len({value.storage.index for value in others}) == len(others)


@pytest.mark.parametrize("how", [how for how in WAYS if how != "jit-script"])
def test_everything_is_put_back_after_a_failure(how: str):
    class Failing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)
            self.drop = torch.nn.Dropout()

        def forward(self, x):
            x = self.drop(self.norm(x))
            self.eval()
            raise RuntimeError("no such luck")

    model = Failing()
    numbers = model.norm.running_mean.clone()
    state = torch.random.get_rng_state()
    with pytest.raises(CannotCapture, match=r"no such luck|Observed exception"):
        captured(how, model, X)
    assert model.training
    assert model.drop.training
    assert torch.equal(model.norm.running_mean, numbers)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("how", WAYS)
def test_arguments_by_name(how: str):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x, scale):
            return self.inner(x) * scale

    if how == "jit-script":
        pytest.skip("a class inside a function cannot be scripted")
    found = captured(how, Scaled(), X, scale=torch.ones(4))
    assert any("mul" in node.op.lower() for stage in found.stages for node in stage.graph.nodes)
    if how not in ("autograd", "jit-trace"):
        assert {"x", "scale"} <= {value.name for value in found.graph.values if value.role == "input"}


@pytest.mark.parametrize("how", WAYS)
def test_nothing_is_left_changed(how: str):
    model = ResNet18()
    model.layer1.eval()
    numbers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    modes = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    filters = list(warnings.filters)
    with torch.no_grad() if how != "autograd" else torch.enable_grad():
        captured(how, model, torch.zeros(2, 3, 32, 32))
        assert torch.is_grad_enabled() == (how == "autograd")
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), state)
    assert warnings.filters == filters
    assert all(p.grad is None for p in model.parameters())
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, numbers[name]), name
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_no_warning_of_torch_reaches_the_user():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured("jit-trace", Shared(), X)
        captured("jit-script", Inner(), X)


def test_what_the_users_code_warns_of_does_reach_him():
    def warning(x):
        warnings.warn("mind the gap", stacklevel=1)
        return x + 1

    with pytest.warns(UserWarning, match="mind the gap"):
        captured("jit-trace", warning, X)


@pytest.mark.parametrize("how", WAYS)
def test_lines_of_listings_name_their_nodes(how: str):
    """Listings point at lines that speak of the node."""
    found = captured(how, Shared(), X)
    checked = 0
    for number, stage in enumerate(found.stages):
        for kind, text in stage.listings.items():
            lines = text.splitlines()
            for line, node in lines_of(found, number, kind):
                op = stage.graph.node(node).op.lower().split(".")
                word = op[1] if op[0] in ("aten", "prim") else op[-1]
                said = lines[line - 1].lower()
                picks = re.search(r"getitem|\[\d\]", said)
                assert word in said or stage.graph.node(node).name in said or picks, (kind, said, word)
                checked += 1
    assert checked > 5


# -- failures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "model", "words"),
    [
        ("fx", Branching(), "control flow"),
        ("export", Branching(), "data-dependent"),
        ("export-strict", Branching(), "data-dependent"),
    ],
)
def test_a_failure_is_one_line_with_the_users_line(how: str, model, words: str):
    with pytest.raises(CannotCapture) as error:
        captured(how, model, X)
    failure = error.value
    assert words in failure.reason.lower()
    assert "\n" not in str(failure)
    assert len(str(failure)) < 600
    assert (failure.how, failure.file, failure.line) == (how, MODELS, line_of("if x.sum() > 0:"))
    assert f"{MODELS}:{failure.line}" in str(failure)
    assert "how='record'" in failure.instead


def test_script_names_the_line_it_cannot_read():
    def reads(x):
        return (lambda y: y + 1)(x)

    with pytest.raises(CannotCapture) as error:
        captured("jit-script", reads, X)
    assert error.value.file == __file__
    assert error.value.line == inspect.getsourcelines(reads)[1] + 1


@pytest.mark.parametrize("how", ["jit-trace", "export", "dynamo", "joint", "autograd"])
def test_a_model_that_fails_is_told_as_such(how: str):
    with pytest.raises(CannotCapture, match=r"mat1 and mat2|size mismatch|must match|same reduction dim"):
        captured(how, Inner(), torch.zeros(2, 7))


def test_dynamo_without_a_graph():
    def nothing(x):
        return x

    with pytest.raises(CannotCapture, match="no graph"):
        captured("dynamo", nothing, X)


def test_autograd_without_a_gradient():
    with pytest.raises(CannotCapture, match="nothing here requires a gradient"):
        captured("autograd", torch.zeros(3))


# -- fx -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "x"), [(ResNet18(), torch.zeros(2, 3, 32, 32)), (Shared(), X)])
def test_fx_has_the_edges_of_torch(model, x):
    found = captured("fx", model, x)
    theirs = torch.fx.symbolic_trace(model).graph
    calls = [node for node in theirs.nodes if node.op.startswith("call")]
    graph = found.graph
    assert [node.name for node in graph.nodes] == [node.name for node in calls]
    for node, their in zip(graph.nodes, calls, strict=True):
        read = [use.value for use in node.uses if use.value.role in ("activation", "input")]
        wanted = [other.name for other in their.all_input_nodes if other.op != "get_attr"]
        assert list(dict.fromkeys(value.name for value in read)) == wanted
    kinds = Counter(node.attrs["opcode"] for node in graph.nodes)
    assert kinds == Counter(node.op for node in calls)


def test_fx_without_arguments_has_no_shapes():
    found = captured("fx", Shared())
    assert {str(value.type) for value in found.graph.values if value.role == "activation"} == {"?"}
    assert not found.warnings


def test_fx_says_when_the_graph_does_not_run():
    found = captured("fx", Shared(), torch.zeros(3, 5))
    assert "shapes are not known" in found.warnings[0]


def test_fx_table_is_the_one_of_print_tabular():
    found = captured("fx", Shared(), X)
    rows = [line.split()[:2] for line in found.stages[0].listings["table"].splitlines()[2:]]
    theirs = torch.fx.symbolic_trace(Shared()).graph
    assert rows == [[node.op, node.name] for node in theirs.nodes]


# -- export -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
def test_export_has_the_edges_of_torch(strict: bool):
    x = torch.zeros(2, 3, 32, 32)
    model = ResNet18()
    found = captured("export-strict" if strict else "export", model, x)
    theirs = torch.export.export(ResNet18(), (x,), strict=strict).graph
    calls = [node for node in theirs.nodes if node.op == "call_function"]
    graph = found.graph
    assert [node.name for node in graph.nodes] == [node.name for node in calls]
    assert graph.n_edges == sum(len(node.all_input_nodes) for node in calls)
    assert {value.name for value in graph.values if value.role == "parameter"} == dict(model.named_parameters()).keys()


def test_export_of_a_program_with_symbols():
    dynamic = {"x": {0: torch.export.Dim("batch", min=2, max=64)}}
    program = torch.export.export(Inner(), (X,), dynamic_shapes=dynamic)
    found = existing(program)
    (x,) = [value for value in found.graph.values if value.role == "input"]
    assert x.type.shape[0] == "batch"  # as the user calls it; torch's name is beside it
    assert re.fullmatch(r"batch \(s\d+\): 2 to 64", found.stages[0].listings["symbols"])
    assert found.graph.node(0).outputs[0].type.shape == ("batch", 4)
    assert opscope.Capture.of(found).bind({"batch": 3}).graph.node(0).outputs[0].type.shape == (3, 4)


def test_higher_order_operators_hold_their_graphs():
    found = captured("export", Choosing(), X)
    (node,) = [node for node in found.graph.nodes if node.op == "higher_order.cond"]
    yes, no = node.bodies
    assert (yes.label, no.label) == ("true_fn", "false_fn")
    assert [inner.op for inner in no.graph.nodes] == ["aten.sin", "aten.sub.Tensor"]
    (inside, outside) = yes.bindings[0]
    assert yes.graph.value(inside).type == found.graph.value(outside).type
    assert found.graph.value(outside).producer.op == "aten.relu"


def test_several_outputs_are_values_and_not_getitems():
    found = captured("export", Custom(), X)
    (node,) = [node for node in found.graph.nodes if node.op == "aten.topk"]
    assert [str(value.type) for value in node.outputs] == ["float32[3,2]", "int64[3,2]"]
    assert not any("getitem" in node.op for node in found.graph.nodes)


def test_views_and_writes_share_a_storage():
    def written(x):
        y = x.view(4, 3)
        y.add_(1)
        return y

    graph = captured("export", written, X.clone()).graph
    view, add = graph.nodes
    assert view.outputs[0].storage.role == "input"
    assert add.outputs[0].storage.role == "input"


# -- TorchScript --------------------------------------------------------------------------------------


def kinds_of(block) -> Counter:
    found = Counter(node.kind() for node in block.nodes())
    for node in block.nodes():
        for inner in node.blocks():
            found += kinds_of(inner)
    return found


def ops_of(graph) -> Counter:
    found = Counter(".".join(node.op.split(".")[:2]) for node in graph.nodes)
    for body in graph.bodies:
        found += ops_of(body.graph)
    return found


PLUMBING = ("Constant", "GetAttr", "ListConstruct", "TupleConstruct", "ListUnpack", "TupleUnpack")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("how", "model", "x"),
    [
        ("jit-trace", ResNet18(), torch.zeros(2, 3, 32, 32)),
        ("jit-script", ResNet18(), torch.zeros(2, 3, 32, 32)),
        ("jit-trace", GPT(), torch.zeros(2, 8, dtype=torch.long)),
        ("jit-trace", Tagger(), torch.zeros(2, 5, 4)),
        ("jit-script", Tagger(), torch.zeros(2, 5, 4)),
        ("jit-script", Branching(), X),
    ],
)
def test_inlined_operators_are_those_of_torch(how: str, model, x):
    found = captured(how, model, x)
    script = torch.jit.trace(model, x) if how == "jit-trace" else torch.jit.script(model)
    theirs = kinds_of(script.inlined_graph)
    ours = ops_of(found.stages[1].graph)
    for kind, count in theirs.items():
        name = kind.replace("::", ".")
        if kind.removeprefix("prim::") not in PLUMBING:
            assert ours.pop(name) == count, kind
    assert {name.removeprefix("prim.") for name in ours} <= set(PLUMBING), ours
    assert not [text for text in found.warnings if "could not be followed" in text]
    unplaced = {node.op for node in found.stages[1].graph.nodes if not node.frames and node.op.startswith("aten.")}
    assert unplaced <= {"aten.ScalarImplicit", "aten.Int.Tensor"}  # torch puts these in itself
    hierarchical = found.stages[0].graph
    assert hierarchical.n_nodes == sum(1 for node in script.graph.nodes() if node.kind() != "prim::Constant")


def test_branches_and_loops_are_bodies():
    graph = captured("jit-script", Branching(), X).stages[1].graph
    (loop,) = graph.nodes
    assert loop.op == "prim.Loop"
    assert loop.attrs == {"trip_count": 3, "condition": True}
    (body,) = loop.bodies
    branch = next(node for node in body.graph.nodes if node.op == "prim.If")
    assert [inner.label for inner in branch.bodies] == ["then", "else"]
    linear = next(node for node in branch.bodies[0].graph.nodes if node.op == "aten.linear")
    assert linear.path == "inner/fc"
    assert [frame.line for frame in linear.frames] == [
        line_of("x = self.inner(x)"),
        line_of("self.fc(x) + self.offset"),
    ]
    weight = next(use.value for use in linear.uses if use.arg == "weight")
    assert (weight.name, weight.role, str(weight.type)) == ("inner.fc.weight", "parameter", "float32[4,4]")
    bound = dict(branch.bodies[0].bindings)[weight.index]
    assert body.graph.value(bound).name == "inner.fc.weight"


def test_traced_shapes_and_calls():
    found = captured("jit-trace", Shared(), X)
    hierarchical, inlined = (stage.graph for stage in found.stages)
    assert Counter(node.op for node in hierarchical.nodes)["prim.CallMethod"] == 3
    types = {str(value.type) for node in inlined.nodes for value in node.outputs}
    assert types <= {"float32[3,4]", "float32[3,2]", "float32[]"}
    (link,) = found.stage_links
    assert link.kind == "lowers"
    calls = {hierarchical.node(int(s)).op for s in link.source}
    assert "prim.CallMethod" in calls
    assert set(link.target.tolist()) == set(range(inlined.n_nodes))


def test_tracing_says_where_it_bakes_in_a_branch():
    found = captured("jit-trace", Branching(), X)
    assert any(f"{MODELS}:{line_of('if x.sum() > 0:')}: Converting a tensor" in text for text in found.warnings)


def test_script_modules_after_saving(tmp_path: Path):
    """Functions of a loaded module cannot be reached: torch's own inlined graph is used."""
    torch.jit.script(Shared()).save(tmp_path / "shared.pt")
    found = existing(torch.jit.load(tmp_path / "shared.pt"))
    verify_capture(found)
    names = {value.name for value in found.stages[1].graph.values if value.role == "parameter"}
    assert {"inner.fc.weight", "scale"} <= names


def test_code_listing_has_every_submodule():
    code = captured("jit-script", Branching(), X).stages[0].listings["code"]
    assert "# the module itself (Branching)" in code
    assert "# inner.fc (Linear)" in code
    native = captured("jit-script", Branching(), X).stages[0].listings["native"]
    assert "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor" in native


# -- Dynamo -------------------------------------------------------------------------------------------


def test_dynamo_breaks_are_those_of_explain():
    found = captured("dynamo", Branching(), X)
    torch._dynamo.reset()
    theirs = torch._dynamo.explain(Branching())(X)
    torch._dynamo.reset()
    assert len(found.stages) == theirs.graph_count
    assert {node.path for stage in found.stages for node in stage.graph.nodes} == {"inner", "inner/fc"}
    (warning,) = [text for text in found.warnings if "graph break" in text]
    assert warning.startswith(f"{MODELS}:{line_of('if x.sum() > 0:')}: ")
    assert "data-dependent branching" in warning.lower()
    (breaks,) = found.facts("breaks", 0)
    file, line, reason = (breaks.columns[name].values[0] for name in ("file", "line", "reason"))
    assert warning.startswith(f"{file}:{line}: graph break: {reason}")


def test_dynamo_graphs_flow_into_each_other():
    def broken(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y.sin() + y

    found = captured("dynamo", broken, X)
    assert [stage.name for stage in found.stages] == ["graph 1", "graph 2"]
    (link,) = found.stage_links
    assert (link.before, link.after, link.kind) == (0, 1, "flows")
    assert [found.stages[1].graph.node(int(t)).op for t in link.target] == ["Tensor.sin", "operator.add"]


def test_dynamo_recompiles_are_told():
    def twice(x):
        return helper(x) + helper(x[:2]).sum()

    def helper(x):
        torch._dynamo.graph_break()
        return x * x.shape[0]

    found = captured("dynamo", twice, X)
    assert any("was compiled again" in text and "size mismatch" in text for text in found.warnings)


def test_dynamo_leaves_its_own_things_alone():
    from torch._dynamo import symbolic_convert
    from torch._dynamo.utils import counters

    counters["opscope"]["kept"] = 3
    before = symbolic_convert.InstructionTranslatorBase.log_graph_break
    counted = {key: dict(value) for key, value in counters.items()}
    captured("dynamo", Branching(), X)
    assert {key: dict(value) for key, value in counters.items() if value} == {k: v for k, v in counted.items() if v}
    assert symbolic_convert.InstructionTranslatorBase.log_graph_break is before
    del counters["opscope"]


def test_what_the_user_compiled_still_works():
    model = Inner()
    compiled = torch.compile(model, backend="eager")
    expected = compiled(X)
    captured("dynamo", model, X)
    assert torch.equal(compiled(X), expected)


# -- joint --------------------------------------------------------------------------------------------


def test_joint_pairs_backward_with_forward():
    """On ResNet-18 every backward operator has the number of a forward one; eight only add up gradients."""
    found = captured("joint", ResNet18(), torch.zeros(2, 3, 32, 32))
    joint, forward, backward = (stage.graph for stage in found.stages)
    assert [stage.after for stage in found.stages] == [None, 0, 0]
    phases = Counter(node.phase for node in joint.nodes)
    links = joint.links_of("grad")
    pairs = list(zip(links.source.tolist(), links.target.tolist(), strict=True))
    assert phases == {"forward": 90, "backward": 111}
    assert len(pairs) == 103
    assert found.warnings == [
        "8 of 111 backward operators have no forward operator: they add up the gradients of values that are read "
        "more than once"
    ]
    assert {joint.node(source).phase for source, _ in pairs} == {"forward"}
    assert {joint.node(target).phase for _, target in pairs} == {"backward"}
    for source, target in pairs:
        assert joint.node(source).path == joint.node(target).path
    convolutions = [(s, t) for s, t in pairs if joint.node(t).op == "aten.convolution_backward"]
    assert len(convolutions) == 20
    assert {joint.node(source).op for source, _ in convolutions} == {"aten.convolution"}
    gradients = [value for value in joint.values if value.role == "gradient" and value.producer]
    assert len(gradients) == len(list(ResNet18().parameters()))
    lowered = {link.after: link for link in found.stage_links}
    assert set(lowered) == {1, 2}
    assert set(lowered[1].target.tolist()) == set(range(forward.n_nodes))
    assert set(lowered[2].target.tolist()) == set(range(backward.n_nodes))
    for after, link in lowered.items():
        for source, target in zip(link.source.tolist(), link.target.tolist(), strict=True):
            assert joint.node(source).op == found.stages[after].graph.node(target).op


def test_joint_counts_of_torch():
    """The figures of torch's own graphs, with a loss: nodes of fx, placeholders and getitems included."""
    model, labels = ResNet18(), torch.zeros(2, dtype=torch.long)

    def loss(x):
        return torch.nn.functional.cross_entropy(model(x), labels)

    found = captured("joint", loss, torch.zeros(2, 3, 32, 32))
    counts = [len(stage.listings["table"].splitlines()) - 2 for stage in found.stages]
    assert counts == [536, 322, 381]
    names = {value.name for value in found.graph.values if value.role == "parameter"}
    assert names == dict(model.named_parameters()).keys()


def test_joint_without_gradients_is_inference():
    found = captured("joint", lambda x: torch.relu(x) * 2, X)
    assert [stage.name for stage in found.stages] == ["inference"]
    assert "requires a gradient" in found.warnings[0]


# -- autograd -----------------------------------------------------------------------------------------


def walked(*roots) -> tuple[dict, list]:
    """Functions and edges, as torch has them."""
    found, edges, todo = {}, [], [root.grad_fn for root in roots]
    while todo:
        function = todo.pop()
        if function in found:
            continue
        found[function] = len(found)
        for following, slot in function.next_functions:
            edges.append((function, following, slot))
            if following is not None:
                todo.append(following)
    return found, edges


def test_autograd_has_the_edges_of_torch():
    model = ResNet18()
    result = model(torch.zeros(2, 3, 32, 32)).sum()
    found = captured("autograd", result)
    functions, edges = walked(result)
    graph = found.graph
    assert graph.n_nodes == len(functions)
    assert Counter(node.op for node in graph.nodes) == Counter(f.name().rpartition("::")[2] for f in functions)
    flowing = [
        (node.outputs[slot].producer.op, user.op)
        for node in graph.nodes
        for slot, value in enumerate(node.outputs)
        for user in value.users
    ]
    short = lambda f: f.name().rpartition("::")[2]  # noqa: E731
    assert Counter(flowing) == Counter((short(a), short(b)) for a, b, _ in edges if b is not None)
    nulls = sum(len(node.attrs.get("no_gradient", ())) for node in graph.nodes)
    assert nulls == sum(b is None for _, b, _ in edges)
    leaves = {u.value.name for n in graph.nodes if n.op == "AccumulateGrad" for u in n.uses if u.arg == "variable"}
    assert leaves == dict(model.named_parameters()).keys()
    for node in graph.nodes:  # executed after all that it waits for
        for use in node.uses:
            if use.value is not None and use.value.producer is not None:
                assert use.value.producer.index < node.index


def test_autograd_saved_tensors():
    model = Custom()
    found = captured("autograd", model, X)
    graph = found.graph
    (double,) = [node for node in graph.nodes if node.op == "DoubleBackward"]
    (saved,) = [use.value for use in double.uses if use.arg.startswith("saved")]
    assert (saved.role, str(saved.type)) == ("activation", "float32[3,4]")
    addmm = next(node for node in graph.nodes if node.op == "AddmmBackward0")
    by_name = {use.arg: use.value for use in addmm.uses}
    assert (by_name["saved_mat1"].name, by_name["saved_mat1"].role) == ("input", "input")
    assert {node.path for node in graph.nodes if node.op == "AddmmBackward0"} == {"fc"}
    assert len(graph.inputs) == 2


@pytest.mark.parametrize("shape", [tuple, list, lambda pair: dict(zip("ab", pair, strict=True))])
def test_autograd_of_several_tensors(shape):
    w = torch.ones(3, requires_grad=True)
    found = captured("autograd", shape([w * 2, (w * 3).sum()]))
    assert len(found.graph.inputs) == 2
    assert Counter(node.op for node in found.graph.nodes)["MulBackward0"] == 2


def test_autograd_names_leaves_by_the_users_variables():
    w = torch.ones(3, requires_grad=True)
    bias = torch.ones(3, requires_grad=True)
    found = capture("autograd", (w * bias).sum(), (), {}, caller=inspect.currentframe())
    assert {value.name for value in found.graph.values if value.role == "parameter"} == {"w", "bias"}


def test_autograd_of_a_long_chain():
    x = torch.ones(3, requires_grad=True)
    for _ in range(20_000):
        x = x + 1
    assert captured("autograd", x).graph.n_nodes == 20_001


def test_autograd_after_backward_says_what_is_gone():
    w = torch.ones(3, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    found = captured("autograd", loss)
    assert any("were freed by a backward pass" in text for text in found.warnings)


def test_autograd_does_not_unpack_what_hooks_have_packed():
    """With checkpointing, to look at a saved tensor would run the model once more."""
    model, runs = Inner(), []

    def counted(x):
        runs.append(1)
        return model(x)

    loss = torch.utils.checkpoint.checkpoint(counted, X, use_reentrant=False).sum()
    found = captured("autograd", loss)
    assert len(runs) == 1
    assert any("hooks have packed them" in text for text in found.warnings)
    loss.backward()
    assert model.fc.weight.grad is not None


def test_gradient_statistics_leave_grad_alone():
    model = Custom()
    result = model(X)["loss"]
    found = captured("autograd", result, statistics=True)
    assert all(p.grad is None for p in model.parameters())
    result.backward()  # the graph is still there
    table = found.tables["gradients"]
    rows = dict(zip(table.index.tolist(), range(len(table.index)), strict=True))
    graph = found.graph
    for node in graph.nodes:
        if node.op != "AccumulateGrad":
            continue
        gradient, variable = node.inputs
        expected = dict(model.named_parameters())[variable.name].grad
        norm = table.columns["norm"].values[rows[gradient.index]]
        np.testing.assert_allclose(norm, expected.double().norm().item(), rtol=1e-6)
        assert table.columns["nan"].values[rows[gradient.index]] == 0
    assert len(rows) == sum(
        len(n.outputs) - len(n.attrs.get("no_gradient", ())) for n in graph.nodes if n.op != "AccumulateGrad"
    )


def test_gradient_statistics_count_what_is_not_finite():
    w = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    found = captured("autograd", (torch.sqrt(w) * torch.tensor([0.0, 1.0, 1.0])).sum(), statistics=True)
    assert max(found.tables["gradients"].columns["nan"].values) == 1


# -- existing objects ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_existing_objects_are_taken_as_they_are():
    module = torch.fx.symbolic_trace(Shared())
    program = torch.export.export(Shared(), (X,))

    def plain(x):
        return torch.relu(x)

    objects = {
        "fx": [module, module.graph],
        "export": [program],
        "torchscript": [torch.jit.script(Branching()), torch.jit.trace(Shared(), X), torch.jit.script(plain)],
    }
    for how, given in objects.items():
        for value in given:
            found = existing(value)
            verify_capture(found)
            assert found.origin.how == how
            assert found.stages[-1].graph.n_nodes > 0
    assert existing(Shared()) is None
    assert existing(3) is None


@pytest.mark.parametrize("how", ["fx", "export", "export-strict", "jit-trace", "jit-script"])
def test_a_lazy_model_is_refused_with_what_to_do(how: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LazyLinear(8))
    with pytest.raises(CannotCapture, match=r"LazyLinear '1' has no weights before.*call the model once") as refused:
        opscope.trace(model, torch.randn(2, 4), how=how)
    assert "\n" not in str(refused.value)
    assert torch.nn.parameter.is_lazy(model[1].weight)
    with torch.no_grad():
        model(torch.randn(2, 4))
    assert opscope.trace(model, torch.randn(2, 4), how=how).graph.nodes
