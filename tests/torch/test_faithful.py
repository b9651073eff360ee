"""Whatever is captured, and however: what runs without us runs, nothing is changed, and what is said is true."""

from __future__ import annotations

import collections
import contextlib
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from models import GPT, Custom, Inner, Shared
from torch import Tensor, nn

import opscope
from opscope.tracers.torch.graphs import WAYS


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


# -- nothing of the user's is run --------------------------------------------------------------------


class Touched(Exception):
    pass


def untouchable(*bases: type) -> Any:
    """An object that raises whatever it is asked."""

    def refuse(*args: Any) -> Any:
        raise Touched

    names = ["__getattr__", "__iter__", "__len__", "__getitem__", "items", "values", "keys", "__str__", "__repr__"]
    return type("Odd", bases, {**dict.fromkeys(names, refuse), "__class__": property(refuse)})


def test_odd_objects_among_the_users_variables() -> None:
    odd_dict, odd_list, odd = untouchable(dict)(a=1), untouchable(list)([1]), untouchable()()
    ordered = untouchable(collections.OrderedDict)()
    half: Any = nn.Linear.__new__(nn.Linear)  # its __init__ has not run
    lazy, nested = nn.LazyLinear(4), torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    x = torch.ones(2, 8)

    def run(x: Tensor) -> Tensor:
        return x.exp() if (odd_dict, odd_list) is not None else odd

    assert opscope.trace(run, x).graph.n_nodes == 1
    with opscope.record(lazy) as cap:
        lazy(x)
    assert cap.graph.n_nodes
    assert {"weight", "bias"} <= {value.name for value in cap.graph.values}
    assert opscope.stats(mlp(), x).total.macs == 2 * 192
    assert (half, nested, ordered) is not None


@pytest.mark.parametrize("options", [{}, {"train": True}, {"fake": True}], ids=str)
def test_lazy_modules_are_counted_and_stay_lazy(options: dict[str, bool]) -> None:
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 2))
    random = torch.get_rng_state()
    stats = opscope.stats(model, torch.ones(4, 8), **options)
    forward, backward = 4 * 8 * 4 + 4 * 4 * 2, 4 * 8 * 4 + 2 * 4 * 4 * 2
    assert (stats.total.macs, stats.total.at_least) == (forward + backward * bool(options.get("train")), False)
    assert (stats.total.params, stats.parameters.unused) == (9 * 4 + 8 + 10, [])
    assert torch.nn.parameter.is_lazy(model[0].weight)
    assert torch.equal(torch.get_rng_state(), random)


# -- torch.compile stands aside where that is asked for --------------------------------------------------


def test_compiled_code_runs_as_written_and_is_not_compiled_again() -> None:
    compiled: list[Any] = []

    def backend(module: Any, examples: Any) -> Any:
        compiled.append(module)
        return module.forward

    torch._dynamo.reset()
    model, x = mlp(), torch.randn(4, 8)
    fast = torch.compile(model, fullgraph=True, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = opscope.trace(fast, x, how="record")
        fast(x)
        count = len(compiled)
        after = opscope.trace(fast, x, how="record")
        assert opscope.stats(fast, x).total.macs == 4 * 192
    fast(x)
    assert (count, len(compiled)) == (1, 1)
    for cap in (before, after):
        assert [node.op for node in cap.graph.nodes].count("aten.addmm") == 2
        assert any(warning.startswith("torch.compile was disabled") for warning in cap.all_warnings())
        assert cap.graph.node(0).attrs["compile"]
    assert torch._dynamo.eval_frame._stance.stance == "default"
    ways = opscope.ways(fast, x)
    assert all(way.works for way in ways), str(ways)


def test_flex_attention() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 2, 32, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cap = opscope.trace(lambda q: flex_attention(q, q, q), q)
    assert cap.stats().total.macs == 65_536
    assert not any("torch.compile" in warning for warning in cap.all_warnings())  # the user compiled nothing


def test_control_flow_whose_branches_hold_parameters() -> None:
    """`torch.cond` compiles its branches, also where the compiler is bypassed."""

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            return torch.cond(x.sum() > 0, lambda x: self.b(x), lambda x: x.sin(), (x,))

    model, x = Branches(), torch.randn(4, 8)
    expected = model(x)
    with opscope.record(model, how="record") as cap:
        found = model(x)
        found.sum().backward()
    assert torch.equal(found, expected)
    (branch,) = [node for node in cap.graph.nodes if node.op == "cond" and node.phase == "forward"]
    assert {"b.weight", "b.bias"} <= {value.name for value in branch.inputs if value is not None}
    for train in (False, True):
        assert opscope.stats(model, x, train=train).unknown_ops == {"cond": 1 + train}
    with opscope.record(model) as cap:
        model(x)
    assert not cap.all_warnings()


# -- the model is as before ------------------------------------------------------------------------------


class Restless(nn.Module):
    """Changes what a forward pass can change."""

    count = 0
    registry: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4, max_norm=0.5)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("ema", torch.zeros(()))
        self.wide = torch.zeros(1).expand(3)
        self.history: list[Any] = []
        self.cache: dict[str, Any] = {"deep": {"list": [1]}}
        self.generator = torch.Generator().manual_seed(3)
        self.last = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        type(self).count += 1
        self.registry["calls"] = self.registry.get("calls", 0) + 1
        y = self.norm(self.embedding(x))
        self.ema = self.ema * 0.9 + y.mean()
        self.history.append(y)
        self.cache["deep"]["list"].append(y)
        self.late = y
        with torch.no_grad():
            self.norm.weight.mul_(1.5)
            torch.rand(2, generator=self.generator)
        self.last.bias.requires_grad_(False)
        self.last.extra = nn.Linear(2, 2)
        self.last.register_forward_hook(lambda *args: None)
        self.eval()
        return self.last(y)


def state(module: Any) -> Any:
    """Everything that a module holds, as objects and as bits."""
    found: list[Any] = []
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            held = list(value.items()) if isinstance(value, dict) else list(value) if isinstance(value, list) else value
            found.append((path, name, id(value) if not isinstance(value, bool | int | float) else value, repr(held)))
    tensors = [*module.parameters(), *module.buffers()]
    found += [(id(t), t.requires_grad, id(t.grad), t._version, t.detach().numpy().tobytes()) for t in tensors]
    return found


CAPTURES: dict[str, Callable[..., Any]] = {
    **{how: lambda m, *x, how=how: opscope.trace(m, *x, how=how) for how in WAYS},
    "stats": lambda m, *x: opscope.stats(m, *x),
    "stats of training": lambda m, *x: opscope.stats(m, *x, train=True),
    "stats on fake tensors": lambda m, *x: opscope.stats(m, *x, fake=True),
    "ways": lambda m, *x: opscope.ways(m, *x),
}


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_restless_model_is_as_before(capture: str) -> None:
    model, x = Restless(), torch.tensor([0, 1, 4, 2])
    Restless.registry.clear()
    before, random, generator = state(model), torch.get_rng_state(), model.generator.get_state()
    counted = Restless.count
    with contextlib.suppress(opscope.OpscopeError, RuntimeError):  # a weight that backward needs was written
        CAPTURES[capture](model, x)
    assert state(model) == before
    assert (Restless.count, Restless.registry) == (counted, {})
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(model.generator.get_state(), generator)
    assert x.tolist() == [0, 1, 4, 2]


@pytest.mark.parametrize("make", [GPT, Shared, Custom, Inner], ids=lambda make: make.__name__)
def test_models_are_as_before_after_every_way(make: Any) -> None:
    model = make()
    x = torch.randint(0, 32, (2, 8)) if make is GPT else torch.randn(3, 4)
    before = state(model)
    for name, capture in CAPTURES.items():
        if name != "ways":  # the same ways, on copies
            try:
                capture(model, x)
            except opscope.OpscopeError:
                continue
            assert state(model) == before, name


class Made(nn.Module):
    """A forward pass of random steps, some of which write to the model."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self.steps = steps
        self.fc, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("kept", torch.ones(4))
        self.kept_views = self.kept[1:3]
        self.notes: list[Any] = []

    def forward(self, x: Tensor) -> Tensor:
        for step in self.steps:
            match step:
                case "fc":
                    x = self.fc(x)
                case "norm":
                    x = self.norm(x)
                case "assign":
                    self.kept = self.kept + x.detach().mean(0)
                case "write":
                    self.kept.mul_(2)
                case "part":
                    self.kept_views.add_(1)
                case "weight":
                    with torch.no_grad():
                        self.fc.weight[0].clamp_(-0.01, 0.01)
                case "data":
                    self.fc.bias.data = self.fc.bias.data.double().float() + 1
                case "note":
                    self.notes.append(x)
                case "drop":
                    x = F.dropout(x, training=self.training)
                case _:
                    self.train(not self.training)
        return x.sin()


STEPS = ["fc", "norm", "assign", "write", "part", "weight", "data", "note", "drop", "mode"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=8), st.booleans())
def test_models_that_write_to_themselves(steps: list[str], is_training: bool) -> None:
    torch.manual_seed(0)
    model, x = Made(steps).train(is_training), torch.randn(3, 4)
    before, random = state(model), torch.get_rng_state()
    for capture in ("stats", "stats of training", "fx", "jit-trace", "autograd"):
        # A weight that is written after it was read makes PyTorch's own backward pass fail.
        with contextlib.suppress(opscope.OpscopeError, RuntimeError):
            CAPTURES[capture](model, x)
        assert state(model) == before, capture
        assert torch.equal(torch.get_rng_state(), random)


# -- links, reasons, values ------------------------------------------------------------------------------


def pairs(run: Callable[[], Any]) -> tuple[set[tuple[str, str]], set[str]]:
    """Gradient functions with the operators that they are linked to, and the reasons of those without."""
    with opscope.record() as cap:
        run()
    graph, links = cap.graph, cap.graph.links_of("grad")
    nodes = [(graph.node(s), graph.node(t)) for s, t in zip(links.source.tolist(), links.target.tolist(), strict=True)]
    linked = {(target.attrs.get("autograd", ""), source.op) for source, target in nodes}
    return linked, {str(why) for node in graph.nodes if (why := node.attrs.get("unpaired"))}


def test_what_runs_for_an_operator_does_not_get_its_link() -> None:
    w = torch.randn(4, 4, dtype=torch.complex64, requires_grad=True)
    assert ("MulBackward0", "aten.mul.Tensor") in pairs(lambda: (w.conj() * 2).exp().abs().sum().backward())[0]
    model = mlp()

    def packed() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
            y = model(torch.randn(4, 8)).sum()
        y.backward()

    found, _ = pairs(packed)
    assert {op for function, op in found if function == "AddmmBackward0"} == {"aten.addmm"}


@pytest.mark.parametrize("transform", ["grad", "vmap", "jacrev", "hessian"])
def test_gradients_of_torch_func(transform: str) -> None:
    model, x = mlp(), torch.randn(4, 8)
    total = lambda x: model(x).square().sum()  # noqa: E731
    run: dict[str, Callable[[], Any]] = {
        "grad": lambda: torch.func.grad(total)(x),
        "vmap": lambda: torch.func.vmap(torch.func.grad(total))(x),
        "jacrev": lambda: torch.func.jacrev(model)(x[0]),
        "hessian": lambda: torch.func.hessian(total)(x[0]),
    }
    found, reasons = pairs(run[transform])
    assert ("ReluBackward0", "aten.relu") in found
    assert {op for function, op in found if function in ("MmBackward0", "AddmmBackward0")} <= {"aten.mm", "aten.addmm"}
    assert not any("before the recording" in why for why in reasons)


def test_views_that_autograd_makes_anew() -> None:
    def run() -> None:
        x = torch.randn(4, 4, requires_grad=True) * 1
        view = x[:, 1:3]
        x[0] = 0
        view.sum().backward()

    found, reasons = pairs(run)
    assert ("SumBackward0", "aten.sum") in found
    assert not any("before the recording" in why for why in reasons)
    assert any("recreated" in why for why in reasons)


def test_what_a_callback_of_backward_runs_is_called_so() -> None:
    def run() -> None:
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(
            lambda grad: torch.autograd.Variable._execution_engine.queue_callback(
                lambda: torch.zeros(5).copy_(torch.ones(5))
            )
        )
        y.sum().backward()

    _, reasons = pairs(run)
    assert "the gradient that backward() starts from" in reasons
    assert any(why.startswith("runs in a hook or a callback of backward()") for why in reasons)


def test_values_stand_at_their_own_tensors() -> None:
    norm, x = nn.BatchNorm1d(3), torch.randn(5, 3) * 2 + 7
    with opscope.record(norm, values=True) as cap:
        y = norm(x)
    table = cap.tables["value statistics"]
    numbers = dict(zip(table.index.tolist(), table.columns["values"].values, strict=True))
    outputs = next(node for node in cap.graph.nodes if "batch_norm" in node.op).outputs
    assert numbers[outputs[0].index] == y.flatten().tolist()
    named = {value.name: numbers[value.index] for value in outputs if value.name}
    assert named["running_mean"] == norm.running_mean.tolist()
    assert named["running_var"] == norm.running_var.tolist()


def test_fx_takes_what_is_given() -> None:
    class Either(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, ids: Any = None, embeds: Any = None, *, scale: bool = True) -> Tensor:
            if (ids is None) == (embeds is None):
                raise ValueError("both, or none")
            return self.fc(ids) * 2 if scale else self.fc(ids)

    graph = opscope.trace(Either(), ids=torch.randn(1, 2), scale=False, how="fx").graph
    assert [graph.value(v).name for v in graph.inputs] == ["ids"]
    assert graph.n_nodes == 1
    assert opscope.ways(Either(), torch.randn(1, 2))["fx"].works


def test_ways_says_which_graphs_have_no_backward_pass() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.a(x) if x.sum() > 0 else x

    note = opscope.ways(Branch(), torch.ones(3, 4))["joint"].note
    assert "the backward pass of 1 of them, in which nothing requires a gradient" in note
